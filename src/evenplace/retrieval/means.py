"""The mean direction of each place's photos: its prototype where no classifier has one.

C places · D descriptor · B photos of a block
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


class PlaceMeans:
    """Adds up descriptors block by block."""

    def __init__(self, count: int, dim: int) -> None:
        self._sums = np.zeros((count + 1, dim), np.float32)

    def add(self, labels: Rows, descriptors: Floats) -> None:
        """labels: (B,) places in ascending order, `count` for none; descriptors: (B, D)."""
        if len(labels):
            first = np.flatnonzero(np.diff(labels, prepend=-1))
            self._sums[labels[first]] += np.add.reduceat(descriptors, first, axis=0)

    def directions(self) -> Floats:
        """Unit vectors; zero where a place has no photo.  (C, D)."""
        sums = self._sums[:-1]
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        means: Floats = sums / np.maximum(lengths, 1e-12)
        return means
