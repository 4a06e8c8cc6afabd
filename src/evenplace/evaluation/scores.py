"""What a system is worth: recall with its intervals, overall and by tier, and what it costs.

Q queries · k hits
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.evaluation.predictions import Predictions, join_predictions
from evenplace.evaluation.uncertainty import Interval, interval
from evenplace.places.table import Places
from evenplace.places.tiers import TIERS, query_tiers

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
class Cost:
    """What answering takes, and what stayed out of reach."""

    answerable: int  # queries with a match in the database
    skipped: int  # queries that could not be read
    unreachable: int  # database photos in no place of the classifier
    pool_size: float  # mean candidates a query
    index_bytes: int
    latency: dict[str, Latency]


@dataclass(frozen=True)
class Scores:
    """One system on one set of queries; every figure says how many queries stand behind it.

    Tiers are by place (30/40/30 % of the places by photo count); `by_query` splits the queries
    instead.  Queries without any match in the database count as failures; `cost.answerable`
    says how many have one.
    """

    name: str
    overall: Recalls
    head: Recalls
    middle: Recalls
    tail: Recalls
    by_query: dict[str, Recalls]
    classifier: Recalls  # LR@N: the centre of a shortlisted place within the radius
    pool: Recalls  # a match anywhere in the pool: what no ranking can exceed
    untiered: int  # queries at no known place
    cost: Cost
    predictions: Predictions = field(repr=False, compare=False)  # what was counted
    places: Places = field(repr=False, compare=False)  # what the tiers are of

    @property
    def recall(self) -> dict[int, float]:
        return self.overall.recall

    def tier(self, name: str) -> Recalls:
        """The recalls of a tier by its name, or of all queries: "overall"."""
        found: Recalls = getattr(self, name)
        return found

    def as_dict(self) -> dict[str, Any]:
        """The figures alone; predictions and places have files of their own."""
        bare = replace(self, predictions=None, places=None)  # type: ignore[arg-type]
        return {f.name: asdict(bare)[f.name] for f in fields(self) if f.name not in _FILES}

    @classmethod
    def from_dict(cls, tree: dict[str, Any], predictions: Predictions, places: Places) -> "Scores":
        found = dict(tree)
        for name in ("overall", "head", "middle", "tail", "classifier", "pool"):
            found[name] = _recalls(found[name])
        found["by_query"] = {tier: _recalls(r) for tier, r in found["by_query"].items()}
        latency = {stage: Latency(**value) for stage, value in found["cost"]["latency"].items()}
        found["cost"] = Cost(**found["cost"] | {"latency": latency})
        return cls(**found, predictions=predictions, places=places)


_FILES = ("predictions", "places")


def _recalls(tree: dict[str, Any]) -> Recalls:
    found = {int(rank): Interval(**value) for rank, value in tree["intervals"].items()}
    return Recalls(tree["queries"], found)


def summarise(name: str, predictions: Predictions, places: Places, cost: Cost) -> Scores:
    """Count what was right, overall and by tier."""
    run = predictions

    def among(chosen: NDArray[np.bool_], ranks: NDArray[np.int64] = run.first_right) -> Recalls:
        return recalls(ranks[chosen], run.clusters[chosen])

    everyone = np.ones(len(run), bool)
    by_query = query_tiers(run.photographed)
    return Scores(
        name,
        overall=among(everyone),
        head=among(run.tiers == 0),
        middle=among(run.tiers == 1),
        tail=among(run.tiers == 2),
        by_query={tier: among(by_query == t) for t, tier in enumerate(TIERS)},
        classifier=among(everyone, run.first_centre),
        pool=among(everyone, np.where(run.in_pool, 0, -1)),
        untiered=int((run.tiers < 0).sum()),
        cost=cost,
        predictions=run,
        places=places,
    )


def join_scores(parts: Sequence[Scores]) -> Scores:
    """One system on several towns or seeds: all their queries together, the cost averaged.

    The places are the first one's; maps and curves of a joint score are not meaningful.
    """
    costs = [part.cost for part in parts]
    latency = {
        stage: Latency(
            float(np.mean([cost.latency[stage].median_ms for cost in costs])),
            float(np.mean([cost.latency[stage].p95_ms for cost in costs])),
        )
        for stage in costs[0].latency
    }
    cost = Cost(
        sum(cost.answerable for cost in costs),
        sum(cost.skipped for cost in costs),
        sum(cost.unreachable for cost in costs),
        float(np.mean([cost.pool_size for cost in costs])),
        max(cost.index_bytes for cost in costs),
        latency,
    )
    joined = join_predictions([part.predictions for part in parts])
    return summarise(parts[0].name, joined, parts[0].places, cost)


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
