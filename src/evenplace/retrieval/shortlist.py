"""Which places a query may show, the best by their prototypes, and the photos of those places.

Q queries · C places · D descriptor · n shortlisted places · T candidates of a batch
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evenplace.arrays import Floats, starts_of
from evenplace.retrieval.array_files import Column, Rows, compare_rows, widened
from evenplace.retrieval.candidates import Pools, rank_pools, sum_spans
from evenplace.retrieval.index import Index
from evenplace.retrieval.shortlist_codes import Found, exact_pass
from evenplace.retrieval.stores import Nearest, Store

_REFINED = 100  # candidates of a query
_STEP = np.float32(1e-6)  # two cosines so far apart are two distances


@dataclass(frozen=True)
class Shortlist:
    """The n best places with photos: by the codes of the prototypes where the index has them."""

    index: Index
    n: int

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
        if coarse is None or 4 * n > len(coarse.members):
            return exact_pass(index.prototypes, self.reachable, queries, index.scale, n)
        return coarse.search(queries, index.prototypes, n, index.scale)

    def scores(self, query: Floats, places: Rows) -> Floats:
        """Scores of some places, as `find` gives them.  (D,) -> (places,)."""
        index = self.index
        scores: Floats = index.prototypes[places] @ query
        if index.levels is not None:
            scores = index.levels.scores(query[None], index.prototypes, places, index.scale)[0]
        return scores


def collect(
    shortlist: Shortlist,
    store: Store,
    sought: Floats,
    ranked: Floats,
    found: Found,
    nearest: Nearest | None = None,
) -> Pools:
    """Collect the photos of the places, and how each resembles its query.

    sought: the queries as the shortlist sees them; ranked: as the store does.  nearest: photos
    most like each query, wherever they are: then all photos of the places those are of, since some
    rules rank places, and those in no place, which count as less likely than every place.
    """
    scale = shortlist.index.scale
    if nearest is None:
        return _pools(store, ranked, found.places, scale * found.scores - found.log_total[:, None])
    labels = shortlist.index.places_of(nearest.rows)  # (Q, k)
    there = nearest.rows >= 0
    asked = [np.unique(own[(own >= 0) & seen]) for own, seen in zip(labels, there, strict=True)]
    likely = [
        scale * shortlist.scores(sought[q], own) - found.log_total[q] for q, own in enumerate(asked)
    ]
    pools = _pools(store, ranked, asked, likely)
    query, column = np.nonzero(there & (labels < 0))
    if not len(query):
        return pools
    least = np.array([own.min(initial=0) for own in likely], np.float32)
    rows, cosines = nearest.rows[query, column], nearest.cosines[query, column]
    return pools.beside(query, rows, cosines, least[query])


def _pools(
    store: Store, ranked: Floats, asked: Sequence[Rows] | Rows, likely: Sequence[Floats] | Floats
) -> Pools:
    held = store.candidates(ranked, list(asked))
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

    given: (Q, D) queries; exact: (N, D) descriptors of the photos.  A code's cosine is another
    number than what it stands for, so the rest follows by the mean gap of those that were
    compared, and none of it before the last of them.
    """
    ranks = rank_pools(pools, -pools.cosines, by_place=False)
    best = np.concatenate([ranks[q].order[:_REFINED] + pools.cuts[q] for q in range(len(pools))])
    cuts = starts_of(np.minimum(pools.sizes, _REFINED))
    true = compare_rows(lambda some: widened(exact[some]), given, pools.rows[best], cuts)
    cosines, of = pools.cosines.copy(), pools.of[best]
    gap = sum_spans(true - cosines[best], cuts) / np.maximum(np.diff(cuts), 1)
    last = np.ones(len(pools), np.float32)
    np.minimum.at(last, of, true)
    np.minimum(cosines + gap.astype(np.float32)[pools.of], last[pools.of] - _STEP, out=cosines)
    cosines[best] = true
    return replace(pools, cosines=cosines)
