"""The photos of shortlisted places as the pools of a batch of queries.

Q queries · D descriptor · n shortlisted places · T candidates of a batch · C' reachable places
"""

import numpy as np
from numpy.typing import NDArray

from evenplace.retrieval.coarse import Found
from evenplace.retrieval.pools import Pools
from evenplace.retrieval.shortlist import Shortlist, cells_around
from evenplace.retrieval.stores import EmbeddedStore, Store

Floats = NDArray[np.float32]


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
    held = store.candidates(ranked, asked)
    return Pools(
        held.rows,
        np.concatenate(asked)[held.of],
        held.cosines,
        np.concatenate(likely)[held.of].astype(np.float32),
        ranked,
        held.cuts,
    )


def everything(shortlist: Shortlist, store: EmbeddedStore, sought: Floats, ranked: Floats) -> Pools:
    """The whole database as every query's pool."""
    index, reachable = shortlist.index, shortlist.reachable
    count, queries = len(index), len(sought)
    logits = index.scale * (sought @ index.prototypes[reachable].T)  # (Q, C')
    total = np.logaddexp.reduce(logits, axis=1) if logits.size else np.zeros(queries)
    least = logits.min(axis=1, initial=0) - total  # of photos in no place
    likely = np.repeat(least[:, None], len(index.places) + 1, axis=1)
    likely[:, reachable] = logits - total[:, None]
    return Pools(
        np.tile(np.arange(count), queries),
        np.tile(index.labels, queries),
        store.all_cosines(ranked).ravel(),
        likely[:, index.labels].ravel().astype(np.float32),
        ranked,
        np.arange(queries + 1) * count,
    )
