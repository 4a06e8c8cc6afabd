"""What a system is worth: recall with its intervals, overall and by tier, and what it costs.

    Q queries · k hits
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.evaluation.uncertainty import Interval, interval

RANKS = (1, 5, 10, 20)


@dataclass(frozen=True)
class Recalls:
    """Recall@N of one set of queries, in percent, with intervals and the number it rests on."""

    queries: int
    intervals: dict[int, Interval]

    @property
    def recall(self) -> dict[int, float]:
        return {rank: found.mean for rank, found in self.intervals.items()}


@dataclass(frozen=True)
class Latency:
    """Milliseconds a query spends in one stage."""

    median_ms: float
    p95_ms: float


@dataclass(frozen=True)
class Scores:
    """One system on one set of queries; every figure says how many queries stand behind it.

    Tiers are by place (30/40/30 % of the places by photo count); `by_query` splits the queries
    instead.  Queries without any match in the database count as failures; `answerable` says
    how many have one.
    """

    name: str
    overall: Recalls
    head: Recalls
    middle: Recalls
    tail: Recalls
    by_query: dict[str, Recalls]
    classifier: Recalls  # LR@N: the centre of a shortlisted place within the radius
    pool: Recalls  # a match anywhere in the pool: what no ranking can exceed
    answerable: int
    untiered: int  # queries at no known place
    skipped: int  # queries that could not be read
    pool_size: float  # mean candidates a query
    unreachable: int  # database photos in no place of the classifier
    latency: dict[str, Latency]
    index_bytes: int

    @property
    def recall(self) -> dict[int, float]:
        return self.overall.recall

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, tree: dict[str, Any]) -> "Scores":
        fields = dict(tree)
        for name in ("overall", "head", "middle", "tail", "classifier", "pool"):
            fields[name] = _recalls(fields[name])
        fields["by_query"] = {tier: _recalls(r) for tier, r in fields["by_query"].items()}
        fields["latency"] = {stage: Latency(**value) for stage, value in fields["latency"].items()}
        return cls(**fields)


def _recalls(tree: dict[str, Any]) -> Recalls:
    found = {int(rank): Interval(**value) for rank, value in tree["intervals"].items()}
    return Recalls(tree["queries"], found)


def recalls(first_right: NDArray[np.int64], clusters: NDArray[np.int64]) -> Recalls:
    """Recall@1, 5, 10, 20 from the rank of each query's first right hit (0 = best, -1 = none)."""
    found = {
        rank: interval(((first_right >= 0) & (first_right < rank)).astype(float), clusters)
        for rank in RANKS
    }
    return Recalls(len(first_right), found)


def first_right(right: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Rank of the first right hit, -1 where none is.  right: (Q, k) -> (Q,)."""
    if not right.shape[1]:
        return np.full(len(right), -1, dtype=np.int64)
    return np.where(right.any(axis=1), right.argmax(axis=1), -1)
