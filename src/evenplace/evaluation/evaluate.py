"""Hits → scores: ask an engine every query, say how often it was right, and where.

    Q queries · k hits · n shortlisted places
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import PhotoError
from evenplace.evaluation.predictions import Predictions
from evenplace.evaluation.scores import RANKS, Latency, Recalls, Scores, first_right, recalls
from evenplace.evaluation.truth import Truth, nearby
from evenplace.evaluation.uncertainty import Interval, interval
from evenplace.models.describe import Progress
from evenplace.photos.table import Photos
from evenplace.places.tiers import TIERS, query_tiers
from evenplace.search import Asked, Hits, Search, ask_photos

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Evaluation:
    """Scores, and the answers they were counted from."""

    scores: Scores
    predictions: Predictions


def evaluate(
    engine: Search,
    queries: Photos,
    *,
    radius: float = 25.0,
    heading: float | None = None,
    name: str = "run",
    progress: Progress | None = None,
) -> Evaluation:
    """Ask every query and score the answers within `radius` metres.

    heading: also require the database photo to look the same way, within so many degrees.
    """
    asked = ask_photos(engine, queries.paths, max(RANKS), progress=progress)
    if not len(asked.rows):
        raise PhotoError(f"none of the {len(queries)} queries could be read: {asked.skipped[:1]}")
    return score(engine, queries[asked.rows], asked, Truth(radius, heading), name)


def score(engine: Search, queries: Photos, asked: Asked, truth: Truth, name: str) -> Evaluation:
    """Count what was right.  queries: those that were answered, in order."""
    hits, database = asked.hits, engine.index.photos
    right = _right(truth, queries, database, hits.rows)
    places, tiers = query_places(engine, queries, truth.radius)
    spots = _spots(queries)
    first = first_right(right)
    pool = _any_right(truth, queries, database, hits.pools)
    by_tier = [recalls(first[tiers == t], spots[tiers == t]) for t in range(3)]
    counts = np.where(places >= 0, engine.index.places.counts[places], 0)
    split = query_tiers(counts)
    scores = Scores(
        name=name,
        overall=recalls(first, spots),
        head=by_tier[0],
        middle=by_tier[1],
        tail=by_tier[2],
        by_query={
            tier: recalls(first[split == t], spots[split == t]) for t, tier in enumerate(TIERS)
        },
        classifier=recalls(_first_centre(engine, queries, hits, truth.radius), spots),
        pool=recalls(np.where(pool, 0, -1), spots),
        answerable=int(truth.answerable(queries, database).sum()),
        untiered=int((tiers < 0).sum()),
        skipped=len(asked.skipped),
        pool_size=float(np.mean([len(rows) for rows in hits.pools])),
        unreachable=int((engine.labels < 0).sum()),
        latency=_latencies(hits),
        index_bytes=engine.index.bytes,
    )
    return Evaluation(scores, _predictions(engine, queries, hits, right, places, tiers, pool))


def compare(ours: Predictions, theirs: Predictions, tier: int | None = None) -> Interval:
    """Points of R@1 that `ours` wins over `theirs` on the same queries, with a paired interval."""
    if ours.paths != theirs.paths:
        raise PhotoError("two runs can only be compared on the same queries; evaluate both again")
    chosen = np.ones(len(ours), bool) if tier is None else ours.tiers == tier
    gain = (ours.first_right == 0).astype(float) - (theirs.first_right == 0)
    return interval(gain[chosen], ours.clusters[chosen])


def query_places(
    engine: Search, queries: Photos, radius: float
) -> tuple[Rows, NDArray[np.int8]]:
    """The place and tier of each query: its own cell, or else that of the nearest place.

    A query may stand just over the line of a cell nobody photographed; it then belongs to the
    place whose centre is nearest within the radius.  -1 where there is none.  (Q,), (Q,).
    """
    places = engine.index.places
    own = places.locate(queries).copy()
    lost = np.flatnonzero(own < 0)
    best = np.full(len(lost), radius)
    for asked, near in nearby(queries.positions[lost], places.centres, radius):
        gap = np.linalg.norm(queries.positions[lost][asked] - places.centres[near], axis=1)
        for query, place, metres in zip(asked, near, gap, strict=True):
            if metres <= best[query]:
                best[query], own[lost[query]] = metres, place
    return own, np.where(own >= 0, places.tiers[own], -1).astype(np.int8)


def _right(truth: Truth, queries: Photos, database: Photos, rows: Rows) -> NDArray[np.bool_]:
    asked = np.repeat(np.arange(len(rows)), rows.shape[1])
    return truth.right(queries, database, asked, rows.ravel()).reshape(rows.shape)


def _any_right(
    truth: Truth, queries: Photos, database: Photos, pools: tuple[Rows, ...]
) -> NDArray[np.bool_]:
    """Whether each query's pool holds a match at all.  (Q,)."""
    asked = np.repeat(np.arange(len(pools)), [len(rows) for rows in pools])
    right = truth.right(queries, database, asked, np.concatenate(pools))
    return np.bincount(asked[right], minlength=len(pools)) > 0


def _first_centre(engine: Search, queries: Photos, hits: Hits, radius: float) -> Rows:
    """Rank of the first shortlisted place whose centre lies within the radius (LR@N).  (Q,)."""
    centres = engine.index.places.centres[hits.shortlist]  # (Q, n, 2)
    away = np.linalg.norm(centres - queries.positions[:, None], axis=2)
    return first_right(away <= radius)


def _spots(queries: Photos) -> Rows:
    """Queries taken within the same 10 m square form one spot."""
    squares = np.floor(queries.positions / 10).astype(np.int64)
    _, which = np.unique(squares, axis=0, return_inverse=True)
    return which.ravel()


def _latencies(hits: Hits) -> dict[str, Latency]:
    return {
        stage: Latency(float(np.median(spent)), float(np.percentile(spent, 95)))
        for stage, spent in hits.elapsed_ms.items()
    }


def _predictions(
    engine: Search,
    queries: Photos,
    hits: Hits,
    right: NDArray[np.bool_],
    places: Rows,
    tiers: NDArray[np.int8],
    pool: NDArray[np.bool_],
) -> Predictions:
    names = np.array([*engine.index.photos.paths, ""], dtype=object)  # row -1 finds ""
    return Predictions(
        paths=queries.paths,
        positions=queries.positions,
        places=places,
        tiers=tiers,
        clusters=_spots(queries),
        first_right=first_right(right),
        in_pool=pool,
        confidence=hits.confidence,
        hit_paths=names[hits.rows].tolist(),
        hit_positions=engine.positions[hits.rows],
        hit_distances=hits.distances,
        hit_right=right,
    )


__all__ = ["Evaluation", "Recalls", "compare", "evaluate", "query_places", "score"]
