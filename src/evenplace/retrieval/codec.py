"""Descriptors in fewer bytes: turned onto fewer axes, then kept as halves, bytes or product codes.

    float16       2 D bytes a photo
    int8          D bytes: each number in 256 steps between the least and the greatest seen
    pca256        2 × 256 bytes: the 256 axes along which photos differ most, to unit length again
    pca256-int8   256 bytes
    white256      2 × 256 bytes: the axes of what parts photos from their mean, half-whitened, so
                  that the few that all streets share do not drown the rest
    learned256    the same, turned further to tell places apart (`learned_axes`)
    pq64          64 bytes: faiss's product quantiser on 256 axes, refined

    -refined      what was given is kept beside as float16, on disk, and the best candidates of a
                  query are compared with that

An index works in the numbers that are kept: prototypes, spectra and queries are turned too.

N photos · D numbers given · d numbers kept · W numbers on disk · M bytes of a product code
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from evenplace.arrays import Floats, unit
from evenplace.errors import SettingError, unknown_name
from evenplace.retrieval.array_files import (
    Column,
    Rows,
    compare_rows,
    map_array,
    widened,
    write_array,
)

SAMPLE = 16_384  # photos that a codec is fitted to
AXES_SAMPLE = 4096  # of them, for axes
_FEWEST = 256  # photos that product codes are fitted to
_SHORTEST = 128  # bytes below which product codes say more than so many numbers
_NAMES = ("float16", "int8", "pca256", "pca256-int8", "pca256-int8-refined", "pq64")
_PARTS = ("axes", "offset", "low", "step", "centroids")
REFINED = "-refined"
ALONG = {"half-whitened": "white1024", "learned": "learned1024"}  # what [search] axes comes to
WHITENED = ("white", "learned")  # fitted to fewer photos, and only as many axes as there are
_NOISE = 1e-4  # of the largest spread: axes that differ less are left out


@dataclass(frozen=True)
class Codec:
    """How descriptors are kept, and what they were measured to be good for."""

    name: str = "float16"
    axes: Floats | None = None  # (D, d) orthonormal, or half-whitened
    offset: Floats | None = None  # (d,) where the photos' mean is along them; 0 if None
    low: Floats | None = None  # (d,) what byte 0 stands for
    step: Floats | None = None  # (d,)
    centroids: Floats | None = None  # (M, 256, d / M)

    @classmethod
    def open(cls, name: str, files: Iterable[Path]) -> "Codec":
        """From the files that `write` wrote."""
        parts = {path.stem.partition("-")[2]: np.array(map_array(path)) for path in files}
        return cls(name, **parts)

    def write(self, folder: Path) -> None:
        for what in _PARTS:
            if getattr(self, what) is not None:
                write_array(folder / f"codec-{what}.npy", getattr(self, what))

    @property
    def refines(self) -> bool:
        """Whether what was given is kept beside, to compare the best candidates with."""
        return self.centroids is not None or self.name.endswith(REFINED)

    def turn(self, given: Floats) -> Floats:
        """Unit vectors along the axes that are kept.  (N, D) -> (N, d)."""
        if self.axes is None:
            return given
        short = given @ self.axes
        if self.offset is not None:
            short -= self.offset
        return unit(short)

    def encode(self, turned: Floats) -> NDArray[Any]:
        """(N, d) -> (N, W)."""
        if self.centroids is not None:
            codes: NDArray[Any] = self._product.compute_codes(np.ascontiguousarray(turned))
            return codes
        if self.low is None or self.step is None:
            return turned.astype(np.float16)
        steps: Floats = np.rint((turned - self.low) / self.step)
        return np.clip(steps, 0, 255).astype(np.uint8)

    def decode(self, kept: NDArray[Any]) -> NDArray[Any]:
        """What the codes stand for; halves stay halves.  (N, W) -> (N, d)."""
        if self.centroids is not None:
            whole: Floats = self._product.decode(np.ascontiguousarray(kept))
            return whole
        if self.low is None or self.step is None:
            return kept
        return kept.astype(np.float32) * self.step + self.low

    def weights(self, queries: Floats) -> tuple[Floats, Floats]:
        """What to multiply plain numbers on disk with, and what to add, for <query, photo>.

        Of bytes b the photo is low + step b, so <q, photo> = <q, low> + <q step, b>.  (Q, d), (Q,).
        """
        if self.low is None or self.step is None:
            return queries, np.zeros(len(queries), np.float32)
        return queries * self.step, np.vecdot(queries, self.low)

    @cached_property
    def _product(self) -> Any:
        import faiss

        assert self.centroids is not None
        many, count, width = self.centroids.shape
        product = faiss.ProductQuantizer(many * width, many, int(count).bit_length() - 1)
        faiss.copy_array_to_vector(self.centroids.ravel(), product.centroids)
        return product


class Descriptors:
    """The descriptors of an index: rows are read and decoded as they are asked for."""

    def __init__(self, column: Column, codec: Codec) -> None:
        self.column, self.codec = column, codec
        self.shape = (len(column), codec.decode(np.zeros((1, column.shape[1]), column.dtype)).size)

    def __len__(self) -> int:
        return len(self.column)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return self[:0].dtype

    def __getitem__(self, which: Any) -> NDArray[Any]:
        """Some rows, chosen as numpy chooses.  (P, d)."""
        kept = self.column[which]
        return self.codec.decode(kept) if kept.ndim > 1 else self.codec.decode(kept[None])[0]

    def compare(self, queries: Floats, rows: Rows, cuts: Rows) -> Floats:
        """<query, photo> of each query with its own photos, cuts[q] to cuts[q + 1].  -> (P,)."""
        if self.codec.centroids is not None:
            return compare_rows(self.__getitem__, queries, rows, cuts)
        weights, constants = self.codec.weights(queries)
        products = compare_rows(lambda some: widened(self.column[some]), weights, rows, cuts)
        return (
            products if self.codec.low is None else products + np.repeat(constants, np.diff(cuts))
        )

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:].astype(dtype or self.dtype, copy=False)


def codec_for(dim: int, size: int, count: int = SAMPLE) -> str:
    """The codec that keeps most within so many bytes a photo, fitted to so many photos."""
    if size < 1:
        raise SettingError(f"bytes={size} keeps nothing of a photo; use 1 or more")
    if size >= dim:
        return "float16" if size >= 2 * dim else "int8"
    if size >= _SHORTEST or count < _FEWEST:
        return f"pca{min(size, count)}-int8"
    return f"pq{size}"


def parse_codec(name: str) -> "re.Match[str]":
    """The numbers in a codec's name; an unknown one is refused."""
    named = re.fullmatch(
        rf"float16|int8|(?:pca|white|learned)(\d+)(-int8)?({REFINED})?|pq(\d+)", name
    )
    if not named:
        raise unknown_name("codec", name, _NAMES)
    return named


def fit_codec(name: str, sample: Floats) -> Codec:
    """Fit a codec to some photos.  sample: (N, D) unit."""
    named = parse_codec(name)
    axes, codec = int(named[1] or 0), Codec(name)
    if named[4]:
        axes = int(named[4]) * max(1, min(4, sample.shape[1] // max(int(named[4]), 1)))
    if white := name.startswith(WHITENED):
        axes = min(axes, *sample.shape)  # at most so many
    if axes:
        if not 0 < axes <= sample.shape[1]:
            raise SettingError(
                f"{name} keeps {axes} axes of descriptors of {sample.shape[1]} numbers; ask fewer"
            )
        some = sample[:AXES_SAMPLE]
        found = half_whitened(some, axes) if white else (principal_axes(some, axes),)
        codec = Codec(name, *found)
    turned = codec.turn(sample)
    if named[4]:
        return Codec(name, axes=codec.axes, centroids=_centroids(turned, int(named[4])))
    if "int8" in name:
        low, high = turned.min(axis=0, initial=1), turned.max(axis=0, initial=-1)
        margin = np.float32(0.05) * (high - low) + np.float32(1e-6)
        step = ((high - low) + 2 * margin) / np.float32(255)
        return replace(codec, low=low - margin, step=step)
    return codec


def half_whitened(sample: Floats, count: int) -> tuple[Floats, Floats]:
    """Axes along which photos part most from their mean, and where the mean is.  (D, d), (d,).

    Each is divided by the root of its standard deviation, as `project_onto_principal_axes` has it.
    """
    mean = sample.mean(axis=0)
    axes = principal_axes(sample - mean, count)
    spread = np.sqrt(np.square((sample - mean) @ axes).mean(axis=0))
    told = spread > _NOISE * spread[0]
    axes = axes * np.where(told, np.sqrt(spread[0] / np.where(told, spread, 1)), 0)
    return np.ascontiguousarray(axes, np.float32), np.asarray(mean @ axes, np.float32)


def principal_axes(sample: Floats, count: int) -> Floats:
    """The axes with most of the sample, from whichever of its two products is smaller.  (D, d)."""
    if len(sample) >= sample.shape[1]:
        vectors = np.linalg.eigh(sample.T @ sample).eigenvectors[:, ::-1]
        return np.ascontiguousarray(vectors[:, :count], np.float32)
    if len(sample) < count:
        raise SettingError(
            f"{count} axes need as many photos to be found by, not {len(sample)}; ask fewer"
        )
    found = np.linalg.eigh(sample @ sample.T)
    vectors = sample.T @ found.eigenvectors[:, ::-1][:, :count]
    return np.ascontiguousarray(np.linalg.qr(vectors).Q, np.float32)


def _centroids(turned: Floats, many: int) -> Floats:
    import faiss

    if len(turned) < _FEWEST:
        raise SettingError(
            f"product codes need {_FEWEST} photos to be fitted to, not {len(turned)}; use int8"
        )
    product = faiss.ProductQuantizer(turned.shape[1], many, 8)
    product.cp.seed, product.cp.niter, product.cp.min_points_per_centroid = 0, 10, 1
    product.train(np.ascontiguousarray(turned))
    flat: Floats = faiss.vector_to_array(product.centroids)
    return flat.reshape(many, 256, -1)
