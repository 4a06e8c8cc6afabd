"""The photos of shortlisted places as the pools of a batch of queries.

Q queries · D descriptor · n shortlisted places · T candidates of a batch
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenplace.retrieval.candidates import Pools, rank_pools
from evenplace.retrieval.coarse import Found
from evenplace.retrieval.column import Column
from evenplace.retrieval.row_products import compare_rows
from evenplace.retrieval.shortlist import Shortlist, cells_around
from evenplace.retrieval.stores import Nearest, Store

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
_REFINED = 100  # candidates of a query


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
    cosines[best] = compare_rows(exact, given, pools.rows[best], cuts)
    return replace(pools, cosines=cosines)
