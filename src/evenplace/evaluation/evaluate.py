"""Hits → scores: ask an engine every query, say how often it was right, and where.

Q queries · k hits · n shortlisted places
"""

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import PhotoError
from evenplace.evaluation.predictions import Predictions
from evenplace.evaluation.scores import RANKS, Cost, Latency, Scores, first_right, summarise
from evenplace.evaluation.truth import Truth
from evenplace.evaluation.uncertainty import Interval, interval
from evenplace.models.describe import Progress
from evenplace.photos.nearby import find_nearby
from evenplace.photos.table import Photos
from evenplace.search import Asked, Hits, Search, ask_photos

Rows = NDArray[np.int64]


def evaluate(
    engine: Search,
    queries: Photos,
    *,
    radius: float = 25.0,
    heading: float | None = None,
    name: str = "run",
    progress: Progress | None = None,
) -> Scores:
    """Ask every query and score the answers within `radius` metres.

    heading: also require the database photo to look the same way, within so many degrees.
    """
    asked = ask_photos(engine, queries.paths, max(RANKS), progress=progress)
    if not len(asked.rows):
        raise PhotoError(f"none of the {len(queries)} queries could be read: {asked.skipped[:1]}")
    return score(engine, queries[asked.rows], asked, Truth(radius, heading), name)


def score(engine: Search, queries: Photos, asked: Asked, truth: Truth, name: str) -> Scores:
    """Score answers.  queries: those that were answered, in order."""
    cost = Cost(
        answerable=int(truth.answerable(queries, engine.index.photos).sum()),
        skipped=len(asked.skipped),
        unreachable=int((engine.labels < 0).sum()),
        pool_size=float(np.mean([len(rows) for rows in asked.hits.pools])),
        index_bytes=engine.index.bytes,
        latency=_latencies(asked.hits),
    )
    return summarise(
        name, _predictions(engine, queries, asked.hits, truth), engine.index.places, cost
    )


def compare(ours: Predictions, theirs: Predictions, tier: int | None = None) -> Interval:
    """Points of R@1 that `ours` wins over `theirs` on the same queries, with a paired interval."""
    if ours.paths != theirs.paths:
        raise PhotoError("two runs can only be compared on the same queries; evaluate both again")
    chosen = np.ones(len(ours), bool) if tier is None else ours.tiers == tier
    gain = (ours.first_right == 0).astype(float) - (theirs.first_right == 0)
    return interval(gain[chosen], ours.clusters[chosen])


def query_places(engine: Search, queries: Photos, radius: float) -> tuple[Rows, NDArray[np.int8]]:
    """The place and tier of each query: its own cell, or else that of the nearest place.

    A query may stand just over the line of a cell nobody photographed; it then belongs to the
    place whose centre is nearest within the radius.  -1 where there is none.  (Q,), (Q,).
    """
    places = engine.index.places
    own = places.locate(queries).copy()
    lost = queries[own < 0]
    centres = Photos.from_arrays(
        east=places.centres[:, 0], north=places.centres[:, 1], zone=places.zone
    )
    near = find_nearby(centres, lost, radius)
    asked = np.repeat(np.arange(len(lost)), np.diff(near.starts))
    gap = np.linalg.norm(lost.positions[asked] - places.centres[near.rows], axis=1)
    nearest = np.full(len(lost), -1)
    farthest_first = np.argsort(-gap, kind="stable")  # so that the nearest is written last
    nearest[asked[farthest_first]] = near.rows[farthest_first]
    own[own < 0] = nearest
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


def _predictions(engine: Search, queries: Photos, hits: Hits, truth: Truth) -> Predictions:
    database, known = engine.index.photos, engine.index.places
    right = _right(truth, queries, database, hits.rows)
    places, tiers = query_places(engine, queries, truth.radius)
    names = np.array([*database.paths, ""], dtype=object)  # row -1 finds ""
    return Predictions(
        paths=queries.paths,
        positions=queries.positions,
        places=places,
        tiers=tiers,
        photographed=np.where(places >= 0, known.counts[places], 0),
        clusters=_spots(queries),
        first_right=first_right(right),
        first_centre=_first_centre(engine, queries, hits, truth.radius),
        in_pool=_any_right(truth, queries, database, hits.pools),
        confidence=hits.confidence,
        hit_paths=names[hits.rows].tolist(),
        hit_positions=engine.positions[hits.rows],
        hit_distances=hits.distances,
        hit_right=right,
    )
