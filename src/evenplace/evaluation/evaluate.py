"""Hits → scores: ask an engine every query, say how often it was right, and where.

Q queries · k hits · n shortlisted places
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Bools, Doubles, Floats, Ints
from evenplace.describe.describer import Progress
from evenplace.errors import PhotoError, SettingError
from evenplace.evaluation.conditions import find_conditions
from evenplace.evaluation.confidence_curves import find_sources, refuse
from evenplace.evaluation.cost import TIMED, latencies, measure_cost, time_stages
from evenplace.evaluation.intervals import Interval, Paired, pair
from evenplace.evaluation.predictions import Predictions, find_spots
from evenplace.evaluation.scores import Scores, summarise
from evenplace.evaluation.truth import RANKS, Truth, first_right
from evenplace.photos.table import Photos
from evenplace.places.given import nearest_within
from evenplace.retrieval import Hits, Search
from evenplace.retrieval.answers import join_hits
from evenplace.retrieval.descriptor_files import given_rows

KEPT = 2**22  # numbers of all queries: 8 MiB beside their answers, for t-SNE


def evaluate(
    engine: Search,
    queries: Photos,
    *,
    radius: float = 25.0,
    heading: float | None = None,
    frames: int | None = None,
    name: str = "run",
    timed: int = TIMED,
    cache_folder: Path | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Ask every query and score the answers within `radius` metres.

    heading: also require the database photo to look the same way, within so many degrees.
    frames: count frames instead of metres (Nordland).  timed: how many queries are asked again
    one by one for the times.  cache_folder: where training kept the trunk's output.
    """
    truth = Truth(radius, heading, frames)
    if engine.describer is None:
        raise SettingError("this engine has no describer; score descriptors with `score`")
    network = engine.describer.network
    if cache_folder is None or network is None:  # a pair of networks has no trunk in common
        described = engine.describer.describe(queries.paths, progress=progress)
    else:
        from evenplace.training.trunk_cache import describe_cached  # needs torch, as the cache does

        described = describe_cached(network, queries.paths, cache_folder, progress)
    if not len(described.rows) and described.skipped:
        raise PhotoError(
            f"none of the {len(queries)} queries could be read: {described.skipped[0].reason}"
        )
    asked = Photos(queries[described.rows].table, queries.skipped + described.skipped)
    return score(engine, asked, described.descriptors, truth, name=name, timed=timed)


def score(
    engine: Search,
    queries: Photos,
    descriptors: Any,
    truth: Truth,
    *,
    name: str = "run",
    timed: int = 0,
) -> Scores:
    """Ask queries that are already descriptors.  descriptors: (Q, D), in the queries' order."""
    if not len(queries):
        raise PhotoError("there are no queries; name photos to ask with")
    truth.check_headings(queries, engine.index.photos)
    descriptors = np.asarray(given_rows(descriptors, len(queries))[:], np.float32)
    engine = engine.together(descriptors)
    asked = ask(engine, queries, descriptors, truth)
    guesses = engine.best_places(descriptors, max(RANKS))
    predictions = predict(engine, queries, truth, asked, guesses)
    latency = time_stages(engine, queries.paths, timed) or latencies(asked.hits.elapsed_ms)
    cost = measure_cost(
        engine,
        answerable=int((predictions.positives > 0).sum()),
        skipped=len(queries.skipped),
        pool_size=float(asked.pool_sizes.mean()),
        latency=latency,
    )
    found = summarise(name, predictions, engine.index.places, cost, truth, queries.skipped)
    return replace(found, moved=engine.moved)


@dataclass(frozen=True)
class Asked:
    """Answers, and what only the candidates tell, which were not kept."""

    hits: Hits
    in_pool: Bools  # (Q,) whether a match was among the candidates
    pool_sizes: Ints  # (Q,)
    sources: dict[str, Floats]  # (Q,) confidence by each source
    descriptors: NDArray[np.float16] | None  # (Q, D) as they were ranked, if they are few


def ask(engine: Search, queries: Photos, descriptors: Floats, truth: Truth) -> Asked:
    """Ask every query, a few at a time; candidates are judged and forgotten.

    An exact search compares the whole database, so every match is among its candidates.
    """
    hits, found, sizes, sources, ranked = [], [], [], [], []
    few = len(queries) * engine.ranking.dim <= KEPT
    database = engine.index.photos
    for batch in engine.batches(descriptors, max(RANKS), pictures=queries.paths):
        pools = batch.pools
        right = truth.right(queries, database, batch.first + pools.of, pools.rows)
        found.append(np.bincount(pools.of[right], minlength=len(pools)) > 0)
        sizes.append(pools.sizes)
        sources.append(find_sources(engine, batch))
        hits.append(batch.hits)
        if few:
            ranked.append(pools.queries.astype(np.float16))
    in_pool, pool_sizes = np.concatenate(found), np.concatenate(sizes)
    if engine.exact:
        in_pool = truth.positives(queries, database).counts > 0
        pool_sizes = np.full(len(queries), len(database))
    return Asked(
        hits=join_hits(hits),
        in_pool=in_pool,
        pool_sizes=pool_sizes,
        sources={n: refuse(np.concatenate([part[n] for part in sources])) for n in sources[0]},
        descriptors=np.concatenate(ranked) if few else None,
    )


def predict(
    engine: Search, queries: Photos, truth: Truth, asked: Asked, guesses: Ints
) -> Predictions:
    """Judge every hit: which are right, where the query belongs, under which conditions.

    guesses: (Q, n) the classifier's best places, of which the shortlist may keep fewer.
    """
    hits, database, known = asked.hits, engine.index.photos, engine.index.places
    of = np.repeat(np.arange(len(queries)), hits.rows.shape[1])
    right = truth.right(queries, database, of, hits.rows.ravel()).reshape(hits.rows.shape)
    positives = truth.positives(queries, database)
    places, tiers = query_places(engine, queries, truth.radius)
    names, spots = _hit_photos(engine, hits.rows)
    return Predictions(
        paths=queries.paths,
        positions=queries.positions,
        zones=queries.zone,
        places=places,
        tiers=tiers,
        photographed=np.where(places >= 0, known.counts[places], 0),
        clusters=find_spots(queries.positions, queries.zone),
        positives=positives.counts,
        first_right=first_right(right),
        first_centre=_first_centre(engine, queries, guesses, truth.radius),
        in_pool=asked.in_pool,
        confidence=hits.confidence,
        estimates=np.array([(at.east, at.north) for at in hits.positions]).reshape(-1, 2),
        hit_paths=names,
        hit_positions=spots,
        hit_zones=np.append(database.zone, 0).astype(np.int8)[hits.rows],
        hit_distances=hits.distances,
        hit_right=right,
        sources=asked.sources,
        conditions=find_conditions(queries, database, positives),
        descriptors=asked.descriptors,
    )


def compare(ours: Predictions, theirs: Predictions, tier: int | None = None) -> Interval:
    """Points of R@1 that `ours` wins over `theirs` on the same queries, with a paired interval."""
    return compare_pairs(ours, theirs, tier).gain


def compare_pairs(
    ours: Predictions, theirs: Predictions, tier: int | None = None, *, rank: int = 1
) -> Paired:
    """What `ours` wins over `theirs` in R@rank: interval, queries won and lost, McNemar's p."""
    if ours.paths != theirs.paths:
        raise PhotoError("two runs can only be compared on the same queries; evaluate both again")
    chosen = np.ones(len(ours), bool) if tier is None else ours.tiers == tier
    good = [(run.first_right >= 0) & (run.first_right < rank) for run in (ours, theirs)]
    return pair(good[0][chosen], good[1][chosen], ours.clusters[chosen])


def query_places(engine: Search, queries: Photos, radius: float) -> tuple[Ints, NDArray[np.int8]]:
    """The place and tier of each query: its own cell, or else that of the nearest place.

    A query may stand just over the line of a cell nobody photographed; it then belongs to the
    place whose centre is nearest within the radius.  -1 where there is none.  (Q,), (Q,).
    """
    places = engine.index.places
    own = places.locate(queries).copy()
    centres = Photos.at(places.centres, places.zones)
    own[own < 0] = nearest_within(centres, queries[own < 0], radius)
    return own, np.where(own >= 0, places.tiers[own], -1).astype(np.int8)


def _hit_photos(engine: Search, rows: Ints) -> tuple[NDArray[np.object_], Doubles]:
    """Paths and positions of hits; empty and nan where there is none.  (Q, k), (Q, k, 2)."""
    there = rows >= 0
    names = np.full(rows.shape, "", dtype=object)
    names[there] = engine.index.paths(rows[there])
    spots = np.full((*rows.shape, 2), np.nan)
    spots[there] = engine.index.spots(rows[there])[:, :2]
    return names, spots


def _first_centre(engine: Search, queries: Photos, guesses: Ints, radius: float) -> Ints:
    """Rank of the first place whose centre lies within the radius (LR@N).  (Q, n) -> (Q,)."""
    east, north = (axis[guesses] for axis in engine.index.places.centres.T)  # (Q, n)
    away = np.hypot(east - queries.east[:, None], north - queries.north[:, None])
    here = engine.index.places.zones[guesses] == queries.zone[:, None]
    return first_right((away <= radius) & here)
