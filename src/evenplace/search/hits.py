"""Answers: one hit for a person, arrays of hits for an evaluation.

Q queries · k hits · n shortlisted places
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STAGES = ("extract", "classify", "gather", "rank")


@dataclass(frozen=True)
class Hit:
    """One database photo that may show where the query was taken."""

    path: str
    position: tuple[float, float]  # east, north
    distance: float
    place: int
    confidence: float


@dataclass(frozen=True)
class Hits:
    """The answers to Q queries; rows and places are -1 where a pool held fewer than k photos."""

    rows: NDArray[np.int64]  # (Q, k) rows of the index
    distances: NDArray[np.float32]  # (Q, k) inf where there is no hit
    shortlist: NDArray[np.int64]  # (Q, n) places, best first
    confidence: NDArray[np.float32]  # (Q,)
    pools: tuple[NDArray[np.int64], ...]  # rows of each query's candidates
    elapsed_ms: dict[str, NDArray[np.float64]]  # (Q,) a stage

    def __len__(self) -> int:
        return len(self.rows)
