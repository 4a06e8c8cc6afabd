"""Held-out photos ask: what the fused score would weigh for them, and what they are answered.

V photos that ask
"""

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Ints
from evenplace.evaluation.evaluate import query_places
from evenplace.photos.nearby import turn
from evenplace.retrieval import Search
from evenplace.retrieval.answers import join_hits
from evenplace.retrieval.candidates import Pools
from evenplace.retrieval.learned_weights import Evidence, count_queries
from evenplace.retrieval.rehearsal import KINDS
from evenplace.retrieval.rerank import Fused
from evenplace.run.folds import RIGHT, Fold
from evenplace.run.scenarios import in_other_light, off_the_map
from evenplace.training.specs import SearchSpec

CANDIDATES = 1 << 24  # that fit the weights, at most: 17 bytes each
_CONSIDERED = 15_000  # photos whose day or pass is hidden, of whom some ask
_NOWHERE = 1e6  # metres off, of no answer


def limit_queries(folds: list[Fold], dice: np.random.Generator) -> list[Fold]:
    """The folds with as many queries as any rehearsal will need."""
    most = int(_CONSIDERED / max(len(folds), 1))
    return [fold.only(draw_queries(fold, most, dice)) for fold in folds]


def draw_queries(fold: Fold, most: int, dice: np.random.Generator) -> Ints:
    """All queries in their order, or some at random where there are more."""
    many = len(fold.rows)
    return np.arange(many) if many <= most else dice.permutation(many)[:most]


def ask_all_ways(
    fold: Fold, spec: SearchSpec, rule: str | Fused, most: int, dice: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    """What one fold answers, photo by photo, in every way of asking that it has."""
    asked = fold.only(draw_queries(fold, most, dice))
    lit = in_other_light(asked)
    ways = [("taken", asked), ("away", off_the_map(asked))]
    ways += [] if lit is None else [("light", lit)]
    parts = [rehearsed(way, spec, rule, KINDS.index(kind)) for kind, way in ways if len(way.rows)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def rehearsed(
    fold: Fold, spec: SearchSpec, rule: str | Fused, kind: int
) -> dict[str, NDArray[np.float64]]:
    """The answers of one way of asking, column by column as a `Rehearsal` has them."""
    engines = [
        Search(
            fold.index,
            shortlist=spec.shortlist,
            rerank=rule,
            confidence=spec.confidence,
            exact=spec.exact,
            facing=facing,
        )
        for facing in (False, True)
    ]
    found, facing = (
        join_hits([batch.hits for _, batch in fold.search(engine)]) for engine in engines
    )
    rows = found.rows[:, 0]
    answer = fold.index.photos[np.maximum(rows, 0)]
    metres = np.linalg.norm(answer.positions - fold.queries.positions, axis=1)
    metres = fold.metres_off(np.arange(len(rows)), metres)
    metres[(rows < 0) | (answer.zone != fold.queries.zone)] = _NOWHERE
    columns = {
        "confidence": found.confidence,
        "facing": facing.confidence,
        "metres": metres,
        "degrees": np.nan_to_num(turn(answer.heading, fold.queries.heading)),
        "likeness": np.nan_to_num(found.cosines[:, 0]),
        "tier": query_places(engines[0], fold.queries, RIGHT.radius)[1],
        "kind": np.full(len(rows), kind),
    }
    return {name: np.asarray(column, np.float64) for name, column in columns.items()}


def evidence(
    fold: Fold, spec: SearchSpec, chosen: Ints | None = None, most: int = CANDIDATES
) -> Evidence:
    """What the fused score would weigh for each photo that asks, of `most` candidates or so."""
    engine = Search(fold.index, shortlist=spec.shortlist, exact=spec.exact)
    places = query_places(engine, fold.queries, RIGHT.radius)[0]
    counts = count_queries(places, spec.favour)
    parts, held = [], 0
    for some, batch in fold.search(engine, chosen):
        parts.append(_weigh(fold, some, batch.pools, counts[some]))
        held += len(parts[-1].right)
        if held > most:
            break
    return Evidence.join(parts)


def _weigh(fold: Fold, asked: Ints, pools: Pools, counts: NDArray[np.float32]) -> Evidence:
    log_sizes = np.log(np.maximum(fold.index.sizes, 1)).astype(np.float32)
    return Evidence(
        cosines=pools.cosines,
        impostors=np.asarray(fold.index.impostors[pools.rows], np.float32),
        log_posterior=pools.log_posterior,
        log_sizes=np.append(log_sizes, np.float32(0))[pools.places],  # place -1 finds the last
        right=RIGHT.right(fold.queries, fold.index.photos, asked[pools.of], pools.rows),
        cuts=pools.cuts,
        counts=counts,
    )
