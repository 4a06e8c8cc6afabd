"""Which places a query may show, the best by their prototypes, and the photos of those places.

Q queries · C places · D descriptor · n shortlisted places · T candidates of a batch
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenplace.retrieval.arrays import Column, Floats, Rows, compare_rows, widened
from evenplace.retrieval.candidates import Pools, rank_pools
from evenplace.retrieval.coarse import Found
from evenplace.retrieval.index import Index
from evenplace.retrieval.shortlist_effort import exact_pass
from evenplace.retrieval.stores import Nearest, Store

_REFINED = 100  # candidates of a query


@dataclass(frozen=True)
class Shortlist:
    """The n best places with photos.

    approximate: scan the codes of the prototypes and read the best of them whole, where the
    index has codes; else every prototype is read.
    """

    index: Index
    n: int
    approximate: bool = True

    @cached_property
    def reachable(self) -> Rows:
        """Places with photos and a prototype to find them by."""
        if self.index.coarse is not None:
            return self.index.coarse.members
        held = np.flatnonzero(self.index.sizes)
        return held[self.index.prototypes[held].any(axis=1)]

    def find(self, queries: Floats) -> Found:
        """The best places of each query and the log of the sum over all.  (Q, D)."""
        n = min(self.n, len(self.reachable))
        index, coarse = self.index, self.index.coarse
        if index.levels is not None:
            return index.levels.find(queries, index.prototypes, self.reachable, index.scale, n)
        if coarse is None or not self.approximate or 4 * n > len(coarse.members):
            return exact_pass(index.prototypes, self.reachable, queries, index.scale, n)
        return coarse.search(queries, index.prototypes, n, index.scale)

    def scores(self, query: Floats, places: Rows) -> Floats:
        """Scores of some places, as `find` gives them.  (D,) -> (places,)."""
        index = self.index
        scores: Floats = index.prototypes[places] @ query
        if index.levels is not None:
            scores = index.levels.scores(query[None], index.prototypes, places, index.scale)[0]
        return scores


def cells_around(index: Index, places: Rows, metres: float) -> Rows:
    """Places with photos whose centre lies within some metres of the winner's, but not listed."""
    centres = index.places.points
    near = np.abs(centres - centres[places[0]]).max(axis=1) <= metres
    rows = np.flatnonzero(near & (index.sizes > 0))
    away = np.linalg.norm(centres[rows] - centres[places[0]], axis=1)
    return np.setdiff1d(rows[away <= metres], places)


def collect(
    shortlist: Shortlist,
    store: Store,
    sought: Floats,
    ranked: Floats,
    found: Found,
    neighbours: float = 0.0,
) -> Pools:
    """Collect the photos of the places, and how each resembles its query.

    sought: the queries as the shortlist sees them; ranked: as the store does.  neighbours: also
    the photos of the cells within so many metres of the winner.
    """
    scale = shortlist.index.scale
    asked, likely = list(found.places), list(scale * found.scores - found.log_total[:, None])
    if neighbours > 0:
        for query, own in enumerate(found.places):
            more = cells_around(shortlist.index, own, neighbours)
            extra = scale * shortlist.scores(sought[query], more) - found.log_total[query]
            asked[query] = np.append(own, more)
            likely[query] = np.append(likely[query], extra)
    return _pools(store, ranked, asked, likely)


def collect_around(
    shortlist: Shortlist,
    store: Store,
    sought: Floats,
    ranked: Floats,
    found: Found,
    nearest: Nearest,
) -> Pools:
    """The same around the photos most like each query, wherever they are.

    All photos of the places those are of, since some rules rank places; and those in no place,
    which count as less likely than every place of the pool.
    """
    index = shortlist.index
    labels = index.places_of(nearest.rows)  # (Q, k)
    there = nearest.rows >= 0
    asked = [np.unique(own[(own >= 0) & seen]) for own, seen in zip(labels, there, strict=True)]
    likely = [
        index.scale * shortlist.scores(sought[q], own) - found.log_total[q]
        for q, own in enumerate(asked)
    ]
    pools = _pools(store, ranked, asked, likely)
    query, column = np.nonzero(there & (labels < 0))
    if not len(query):
        return pools
    least = np.array([own.min(initial=0) for own in likely], np.float32)
    rows, cosines = nearest.rows[query, column], nearest.cosines[query, column]
    return pools.beside(query, rows, cosines, least[query])


def _pools(
    store: Store, ranked: Floats, asked: Sequence[Rows], likely: Sequence[NDArray[np.floating]]
) -> Pools:
    held = store.candidates(ranked, asked)
    return Pools(
        rows=held.rows,
        places=np.concatenate(asked)[held.of],
        cosines=held.cosines,
        log_posterior=np.concatenate(likely)[held.of].astype(np.float32),
        queries=ranked,
        cuts=held.cuts,
    )


def refined(pools: Pools, given: Floats, exact: Column) -> Pools:
    """The same, the best of each query compared with what was given, not with its code.

    given: (Q, D) queries; exact: (N, D) descriptors of the photos.
    """
    ranks = rank_pools(pools, -pools.cosines, by_place=False)
    best = np.concatenate([ranks[q].order[:_REFINED] + pools.cuts[q] for q in range(len(pools))])
    cuts = np.append(0, np.cumsum(np.minimum(pools.sizes, _REFINED)))
    cosines = pools.cosines.copy()
    cosines[best] = compare_rows(lambda some: widened(exact[some]), given, pools.rows[best], cuts)
    return replace(pools, cosines=cosines)
