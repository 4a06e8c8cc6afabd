"""Points of a picture that can be found again in another one, each with its own descriptor.

A network's descriptor says that two photos look alike; points that match say that they show the
same thing.  `sift` needs no weights, `xfeat` is a small network.  A package adds others:

    [project.entry-points."evenplace.local_features"]
    my-points = "my_package.points:MyPoints"

where MyPoints(count=…) is a `LocalFeatures`.

    K points · D descriptor
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evenplace.networks.registry import Registry
from evenplace.photos.pictures import open_within

if TYPE_CHECKING:
    from evenplace.networks.xfeat import XFeatNetwork

Floats = NDArray[np.float32]
LONGEST = 480  # pixels of the longer side of what is looked at
COUNT = 500  # points of a query


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
            return _nothing(self.dim, picture)
        order = np.argsort([-point.response for point in found], kind="stable")[: self.count]
        points = np.array([found[at].pt for at in order], np.float32)
        chosen = raw[order] / np.maximum(raw[order].sum(axis=1, keepdims=True), 1e-9)
        return _features(points, np.sqrt(chosen), picture)


@dataclass(frozen=True)
class XFeat:
    """XFeat, sparse: peaks of its point map, weighed by how reliable the spot is."""

    count: int = COUNT
    least: float = 0.05  # chance below which a pixel is no point
    name: str = "xfeat"
    dim: int = 64

    @cached_property
    def _network(self) -> "XFeatNetwork":
        import torch  # the only kind that needs it

        from evenplace.networks.xfeat import load_xfeat

        return load_xfeat().to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]

    def extract(self, picture: Image.Image) -> Features:
        import torch

        with torch.inference_mode():
            return self._extract(picture)

    def _extract(self, picture: Image.Image) -> Features:
        import torch
        from torch.nn import functional

        from evenplace.networks.xfeat import STRIDE

        width, height = (max(side // STRIDE, 1) * STRIDE for side in picture.size)
        grey = picture.convert("L").resize((width, height), Image.Resampling.BILINEAR)
        seen = self._network(torch.from_numpy(np.array(grey, np.float32))[None, None])
        chance = seen.points[0, 0]
        peak = chance == functional.max_pool2d(seen.points, 5, 1, 2)[0, 0]
        y, x = torch.nonzero(peak & (chance > self.least), as_tuple=True)
        if not len(x):
            return _nothing(self.dim, picture)
        at = torch.stack([2 * x / (width - 1) - 1, 2 * y / (height - 1) - 1], -1)[None, None]
        sampled = functional.grid_sample(seen.reliability, at, align_corners=False)[0, 0, 0]
        best = (chance[y, x] * sampled).argsort(descending=True, stable=True)[: self.count]
        described = functional.grid_sample(
            functional.normalize(seen.descriptors, dim=1),
            at[:, :, best],
            mode="bicubic",
            align_corners=False,
        )[0, :, 0].T  # (K, 64)
        points = torch.stack([x, y], -1)[best].float() * torch.tensor(
            [picture.width / width, picture.height / height]
        )
        return _features(points.numpy(), described.numpy(), picture)


LOCAL_FEATURES: Registry[type[Any]] = Registry(
    "kind of local features", "evenplace.local_features", {"sift": Sift, "xfeat": XFeat}
)


def build_local_features(name: str, **settings: Any) -> LocalFeatures:
    """Choose a kind of local features by name."""
    chosen: LocalFeatures = LOCAL_FEATURES.find(name)(**settings)
    return chosen


def features_of(kind: LocalFeatures, photo: str | Path | bytes | Image.Image) -> Features:
    """The points of a photo file, its bytes or a picture, seen with 480 pixels on the long side.

    Always that many: a photo and its thumbnail then show their points at one scale.
    """
    return kind.extract(open_within(photo, LONGEST))


def _features(points: Floats, descriptors: Floats, picture: Image.Image) -> Features:
    longest = max(picture.size)
    norms = np.maximum(np.linalg.norm(descriptors, axis=1, keepdims=True), 1e-9)
    return Features(
        points=np.asarray(points / longest, np.float32),
        descriptors=np.asarray(descriptors / norms, np.float32),
        width=picture.width / longest,
        height=picture.height / longest,
    )


def _nothing(dim: int, picture: Image.Image) -> Features:
    return _features(np.empty((0, 2), np.float32), np.empty((0, dim), np.float32), picture)
