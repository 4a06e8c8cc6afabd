"""What a search answers.

Q queries · k hits · n shortlisted places
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.retrieval.positions import Position

STAGES = ("extract", "classify", "gather", "rank", "verify")


@dataclass(frozen=True)
class Hit:
    """One database photo that may show where the query was taken."""

    path: str
    position: tuple[float, float]  # east, north
    distance: float  # as the rule measures it: less is better; fused is a score, below 0 too
    place: int
    confidence: float
    row: int  # of the index
    similarity: float  # cosine of the descriptors: 1 the same, 0 unlike
    inliers: int | None = None  # points that match the query's; None where nobody looked
    pairs: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)  # (M, 4)


@dataclass(frozen=True)
class Hits:
    """The answers to Q queries; rows are -1 where a pool held fewer than k photos."""

    rows: NDArray[np.int64]  # (Q, k) rows of the index
    distances: NDArray[np.float32]  # (Q, k) inf where there is no hit
    cosines: NDArray[np.float32]  # (Q, k) of the descriptors, nan where there is no hit
    inliers: NDArray[np.float32]  # (Q, k) points that match, nan where nobody looked
    looked: NDArray[np.int64]  # (Q,) candidates that were looked at a second time
    shortlist: NDArray[np.int64]  # (Q, n) places, best first
    posterior: NDArray[np.float32]  # (Q, n) p(place | query) of the shortlist
    confidence: NDArray[np.float32]  # (Q,) calibrated where the engine has a calibration
    positions: tuple[Position, ...]  # where each query was taken
    elapsed_ms: dict[str, NDArray[np.float64]]  # (Q,) a stage; of a batch, its share

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class PlaceGuess:
    """A place the classifier shortlisted."""

    place: int
    posterior: float
    centre: tuple[float, float]  # east, north
    photos: int  # in the database
    tier: str  # head, middle or tail


@dataclass(frozen=True)
class Answer:
    """All that is known of where one photo was taken."""

    hits: tuple[Hit, ...]  # best first
    places: tuple[PlaceGuess, ...]  # the shortlist, best first
    position: Position
    confidence: float
    calibrated: bool  # whether confidence is the probability that it is right
    doubt: str  # why it is not, in a clause; empty where it is
    abstains: bool
    reason: str  # why it abstains; empty when it answers
    elapsed_ms: dict[str, float]  # a stage
    looked: int = 0  # candidates that were looked at a second time


def join_hits(parts: Sequence[Hits]) -> Hits:
    """Batches of answers as one; at least one batch."""
    if len(parts) == 1:
        return parts[0]

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    stages = [stage for stage in STAGES if all(stage in part.elapsed_ms for part in parts)]
    return Hits(
        rows=joined("rows"),
        distances=joined("distances"),
        cosines=joined("cosines"),
        inliers=joined("inliers"),
        looked=joined("looked"),
        shortlist=joined("shortlist"),
        posterior=joined("posterior"),
        confidence=joined("confidence"),
        positions=tuple(position for part in parts for position in part.positions),
        elapsed_ms={s: np.concatenate([part.elapsed_ms[s] for part in parts]) for s in stages},
    )


def no_hits(k: int, places: int) -> Hits:
    """The answers to no queries: k hits and so many places each."""
    none, listed = np.empty((0, k), np.float32), np.empty((0, places), np.float32)
    return Hits(
        rows=none.astype(np.int64),
        distances=none,
        cosines=none,
        inliers=none,
        looked=np.empty(0, np.int64),
        shortlist=listed.astype(np.int64),
        posterior=listed,
        confidence=np.empty(0, np.float32),
        positions=(),
        elapsed_ms={},
    )
