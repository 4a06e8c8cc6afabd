"""Points of a picture that can be found again in another one, each with its own descriptor.

A network's descriptor says that two photos look alike; points that match say that they show the
same thing.  `sift` needs no weights, `xfeat` is a small network, `aliked` and `disk` are larger
ones with a network that matches.  A package adds others:

    [project.entry-points."evenplace.local_features"]
    my-points = "my_package.points:MyPoints"

where MyPoints(count=…) is a `LocalFeatures`; one that knows better than nearest neighbours which
points are the same is a `Matching` too.

    K points · L points of a candidate · M matches · D descriptor
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from PIL import Image

import evenplace.networks
from evenplace.arrays import Floats
from evenplace.describe.onnx_engine import SharedNetwork
from evenplace.errors import SettingError
from evenplace.networks.registry import Registry
from evenplace.photos.pictures import open_within
from evenplace.retrieval.array_files import Rows

LONGEST = 640  # pixels of the longer side of what is looked at
COUNT = 1_000  # points of a query at most; as many are compared as are kept of a photo
XFEAT = Path(evenplace.networks.__path__[0]) / "embedded" / "xfeat.onnx"
_STRIDE = 32  # of the coarsest map of XFeat and ALIKED: sides must be multiples


@dataclass(frozen=True)
class Features:
    """The points of one picture, best first.

    Lengths are shares of the longer side, so that a photo and its thumbnail agree.
    """

    points: Floats  # (K, 2) x to the right, y down
    descriptors: Floats  # (K, D) unit
    width: float = 1.0
    height: float = 1.0

    def __len__(self) -> int:
        return len(self.points)

    @classmethod
    def nothing(cls, dim: int) -> "Features":
        return cls(np.empty((0, 2), np.float32), np.empty((0, dim), np.float32))

    def best(self, count: int) -> "Features":
        return Features(self.points[:count], self.descriptors[:count], self.width, self.height)


class LocalFeatures(Protocol):
    """Finds and describes points; `name` and `dim` say with what kept ones can be compared."""

    @property
    def name(self) -> str: ...

    @property
    def dim(self) -> int: ...

    def extract(self, picture: Image.Image) -> Features:
        """The points of an RGB picture, best first; none where it is blank."""
        ...


@runtime_checkable
class Matching(Protocol):
    """What local features may bring beside: their own way to match points."""

    def match(self, query: Features, candidate: Features) -> tuple[Rows, Rows]:
        """Rows of points that are the same.  K points, L points -> (M,), (M,)."""
        ...


@dataclass(frozen=True)
class Sift:
    """SIFT by OpenCV, as RootSIFT: no weights, and the slower of the two."""

    count: int = COUNT
    name: str = "sift"
    dim: int = 128

    @cached_property
    def _finder(self) -> Any:
        import cv2

        return cv2.SIFT.create(self.count)

    def extract(self, picture: Image.Image) -> Features:
        found, raw = self._finder.detectAndCompute(np.asarray(picture.convert("L")), None)
        if raw is None:
            return Features.nothing(self.dim)
        order = np.argsort([-point.response for point in found], kind="stable")[: self.count]
        points = np.array([found[at].pt for at in order], np.float32)
        chosen = raw[order] / np.maximum(raw[order].sum(axis=1, keepdims=True), 1e-9)
        return as_features(points, np.sqrt(chosen), picture)


@dataclass(frozen=True)
class XFeat:
    """XFeat, sparse: peaks of its point map, weighed by how reliable the spot is.

    Potje et al., "XFeat: Accelerated Features for Lightweight Image Matching", CVPR 2024.  The
    network and its weights are the authors' (github.com/verlab/accelerated_features, Apache-2.0)
    as one ONNX file: `tests/networks/xfeat_in_torch.py` wrote it and is its oracle.  Of its 64
    numbers a point the 32 principal axes are kept, 96 % of what points of two cities are, turned
    so that all say as much and four bits lose little.  More points then fit: on Cambridge 800 of
    them tell 51 % of the right candidates from 99 % of the wrong ones, 240 of 64 numbers 35 %.
    """

    count: int = COUNT
    least: float = 0.05  # chance below which a pixel is no point
    name: str = "xfeat"
    dim: int = 32

    @cached_property
    def _network(self) -> SharedNetwork:
        return SharedNetwork(XFEAT)

    def extract(self, picture: Image.Image) -> Features:
        grey = in_strides(picture.convert("L"))
        if is_blank(grey):
            return Features.nothing(self.dim)
        width, height = grey.size
        seen = {"grey": np.asarray(grey, np.float32)[None, None]}
        described, peaks, reliability = (one[0] for one in self._network.run(seen))
        found = np.flatnonzero(peaks[0] > self.least)
        y, x = np.divmod(found, width)
        if not len(found):
            return Features.nothing(self.dim)
        # as the authors: pixels spread from edge to edge, cells of the maps from middle to middle
        spots = np.stack([x / (width - 1), y / (height - 1)], axis=1).astype(np.float32)  # (K, 2)
        sure = peaks[0, y, x] * sample(reliability[0, ..., None], spots, cubic=False)[:, 0]
        best = np.argsort(-sure, kind="stable")[: self.count]
        shares = picture.width / width, picture.height / height
        points = (np.stack([x, y], axis=1)[best] * shares).astype(np.float32)
        cells = np.ascontiguousarray(described.transpose(1, 2, 0))  # (h, w, D)
        return as_features(points, sample(cells, spots[best], cubic=True), picture)


def sample(cells: Floats, spots: Floats, *, cubic: bool) -> Floats:
    """Read a map between its cells; nothing lies beyond its edges.

    cells: (h, w, D), spots: (K, 2) x and y as shares of the sides -> (K, D).  As torch's
    grid_sample without align_corners, linear or cubic (a = -0.75).
    """
    around = (-1, 0, 1, 2) if cubic else (0, 1)
    rows, weights = [], []
    for axis, side in ((1, cells.shape[0]), (0, cells.shape[1])):
        at = spots[:, axis, None] * np.float32(side) - np.float32(0.5)  # (K, 1)
        near = np.floor(at).astype(np.int64) + around  # (K, T)
        gap = np.abs(at - near).astype(np.float32)
        share = _cubic(gap) if cubic else 1 - gap
        rows.append(np.clip(near, 0, side - 1))
        weights.append(np.where((near >= 0) & (near < side), share, 0).astype(np.float32))
    found = cells[rows[0][:, :, None], rows[1][:, None, :]]  # (K, T, T, D)
    shares = weights[0][:, :, None] * weights[1][:, None, :]  # (K, T, T)
    size = len(around) ** 2
    read: Floats = (shares.reshape(-1, 1, size) @ found.reshape(-1, size, cells.shape[2]))[:, 0]
    return read


def _cubic(gap: Floats, a: float = -0.75) -> Floats:
    """The weight of a cell so far away, up to two cells."""
    inner = ((a + 2) * gap - (a + 3)) * gap**2 + 1
    outer = ((a * gap - 5 * a) * gap + 8 * a) * gap - 4 * a
    return np.where(gap <= 1, inner, outer)


def _glued(name: str, **settings: Any) -> LocalFeatures:
    from evenplace.retrieval.lightglue import Glued

    return Glued(name, **settings)


LOCAL_FEATURES: Registry[Callable[..., LocalFeatures]] = Registry(
    "kind of local features", "evenplace.local_features",
    {"sift": Sift, "xfeat": XFeat} | {name: partial(_glued, name) for name in ("aliked", "disk")},
)  # fmt: skip


def build_local_features(name: str, **settings: Any) -> LocalFeatures:
    """Choose a kind of local features by name."""
    kind = LOCAL_FEATURES.find(name)(**settings)
    if kind.name != name:  # an index keeps points by name: they would not be found again
        raise SettingError(f"the local features {name!r} call themselves {kind.name!r}; rename one")
    return kind


def features_of(kind: LocalFeatures, photo: str | Path | bytes | Image.Image) -> Features:
    """The points of a photo file, its bytes or a picture, seen with 640 pixels on the long side.

    Always that many: a photo and its thumbnail then show their points at one scale.
    """
    return kind.extract(open_within(photo, LONGEST))


def in_strides(picture: Image.Image) -> Image.Image:
    """A picture with sides that a network of this stride takes, at least one of it."""
    width, height = (max(side // _STRIDE, 1) * _STRIDE for side in picture.size)
    return picture.resize((width, height), Image.Resampling.BILINEAR)


def is_blank(picture: Image.Image) -> bool:
    """Whether all of it has one colour."""
    return all(low == high for low, high in np.reshape(picture.getextrema(), (-1, 2)))


def as_features(points: Floats, descriptors: Floats, picture: Image.Image) -> Features:
    """Points in pixels of a picture and what describes them, as shares and unit."""
    longest = max(picture.size)
    norms = np.maximum(np.linalg.norm(descriptors, axis=1, keepdims=True), 1e-9)
    return Features(
        points=np.asarray(points / longest, np.float32),
        descriptors=np.asarray(descriptors / norms, np.float32),
        width=picture.width / longest,
        height=picture.height / longest,
    )
