"""Local features of a photo in at most 16 kB, one row of bytes of an index's column.

    count, width, height   three uint16
    points                 (K, 2) uint16, shares of the longer side
    descriptors            (K, D) integers of four bits, two a byte

Twice the points of eight bits: what four lose of a match is less than what more points find.

K points · D descriptor, H half of it · W bytes a photo
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from evenplace.arrays import Bytes
from evenplace.describe.describer import Progress
from evenplace.errors import IndexFileError, PhotoError
from evenplace.retrieval.array_files import Column
from evenplace.retrieval.index import Index
from evenplace.retrieval.local_features import Features, LocalFeatures, features_of

KnownRows = dict[str, Bytes]  # by the photo's path
MOST = 16_384  # bytes a photo
_HEAD = 6
_UNIT = 65_535  # of the longer side
_BLOCK = 64  # photos at a time
_LEVELS, _REACH = 7, 2.5  # levels on each side of 0; deviations of a unit vector's numbers there


@dataclass(frozen=True)
class Packing:
    """How many points of so many numbers fit into a row."""

    dim: int
    most: int = MOST

    @property
    def count(self) -> int:
        return (self.most - _HEAD) // (4 + self._half)

    @property
    def width(self) -> int:
        """Bytes a photo."""
        return _HEAD + self.count * (4 + self._half)

    @property
    def _half(self) -> int:
        return (self.dim + 1) // 2

    def pack(self, features: Features) -> Bytes:
        """A photo's best points as one row.  -> (W,)."""
        kept = features.best(self.count)
        points = np.zeros((self.count, 2), "<u2")
        points[: len(kept)] = np.clip(np.rint(kept.points * _UNIT), 0, _UNIT)
        levels = np.rint(kept.descriptors * (np.sqrt(self.dim) * _LEVELS / _REACH))
        nibbles = np.zeros((self.count, 2 * self._half), np.uint8)
        nibbles[: len(kept), : self.dim] = np.clip(levels, -_LEVELS, _LEVELS) + _LEVELS
        sides = np.rint(np.array([kept.width, kept.height]) * _UNIT)
        head = np.array([len(kept), *sides], "<u2")
        halves = nibbles[:, 0::2] | nibbles[:, 1::2] << 4  # (K, H)
        return np.concatenate([head.view(np.uint8), points.view(np.uint8).ravel(), halves.ravel()])

    def unpack(self, row: Bytes) -> Features:
        """The points of a row.  (W,) -> K points."""
        count, width, height = np.ascontiguousarray(row[:_HEAD]).view("<u2").tolist()
        middle = _HEAD + 4 * self.count
        points = np.ascontiguousarray(row[_HEAD:middle]).view("<u2").reshape(-1, 2)[:count]
        halves = np.asarray(row[middle:]).reshape(-1, self._half)[:count]
        levels = np.stack([halves & 15, halves >> 4], axis=2).reshape(count, 2 * self._half)
        descriptors = levels[:, : self.dim].astype(np.float32) - _LEVELS
        norms = np.linalg.norm(descriptors, axis=1, keepdims=True)
        return Features(
            points=points.astype(np.float32) / np.float32(_UNIT),
            descriptors=descriptors / np.maximum(norms, 1e-9),
            width=width / _UNIT,
            height=height / _UNIT,
        )


def pack_photos(
    kind: LocalFeatures,
    paths: Sequence[str],
    *,
    known: KnownRows | None = None,
    workers: int = 2,
    progress: Progress | None = None,
) -> Iterator[Bytes]:
    """Rows of photos, some at a time, in their order; a photo that cannot be read has no point.

    known: rows that were found before.  -> blocks of (…, W).
    """
    packing, known = Packing(kind.dim), known or {}

    def row(path: str) -> Bytes:
        if path in known:
            return known[path]
        try:
            return packing.pack(features_of(kind, path))
        except PhotoError:
            return np.zeros(packing.width, np.uint8)

    with ThreadPoolExecutor(workers) as pool:
        for first in range(0, len(paths), _BLOCK):
            yield np.stack(list(pool.map(row, paths[first : first + _BLOCK])))
            if progress:
                progress(min(first + _BLOCK, len(paths)), len(paths))


def kept_points(index: Index, kind: LocalFeatures) -> Column | None:
    """The rows that an index keeps of a kind, None where it keeps none.  (N, W)."""
    kept, width = index.columns.get(kind.name), Packing(kind.dim).width
    if kept is not None and kept.shape[1] != width:
        raise IndexFileError(
            f"{index.folder} keeps {kind.name} points in {kept.shape[1]} bytes a photo, this "
            f"version reads {width}; index the photos again"
        )
    return kept
