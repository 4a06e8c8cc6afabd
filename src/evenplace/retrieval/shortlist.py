"""Which places a query may show: the best by their prototypes, and how likely each is.

Q queries · C places · D descriptor · n shortlisted places
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenplace.retrieval.coarse import Found
from evenplace.retrieval.layout import Index
from evenplace.retrieval.rows import dots
from evenplace.retrieval.tuning import exact_pass

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Shortlist:
    """The n best places with photos.

    approximate: scan the codes of the prototypes and read the best of them whole, where the
    index has codes; else every prototype is read.  Places that changed since the bulk was
    written are always read whole.
    """

    index: Index
    n: int
    approximate: bool = True

    @cached_property
    def reachable(self) -> Rows:
        """Places with photos and a prototype to find them by."""
        held = np.flatnonzero(self.index.sizes)
        if self.index.coarse is not None:  # prototypes of zeros are no members
            known = np.append(self.index.numbers[self.index.coarse.members], self.fresh)
            return np.intersect1d(held, known)
        return held[self.index.prototypes[held].any(axis=1)]

    @cached_property
    def fresh(self) -> Rows:
        """Places with photos whose prototype is not the bulk's."""
        if self.index.delta is None:
            return np.empty(0, np.int64)
        touched = self.index.delta.touched
        return touched[self.index.sizes[touched] > 0]

    @cached_property
    def stale(self) -> Rows:
        """The bulk's numbers of places whose prototype there no longer counts."""
        if self.index.delta is None:
            return np.empty(0, np.int64)
        empty = np.flatnonzero(self.index.sizes == 0)
        home = self.index.home[np.union1d(self.index.delta.touched, empty)]
        return np.sort(home[home >= 0])

    def find(self, queries: Floats) -> Found:
        """The best places of each query and the log of the sum over all.  (Q, D)."""
        n = min(self.n, len(self.reachable))
        coarse, scale = self.index.coarse, self.index.scale
        if coarse is None or not self.approximate or 4 * n > len(coarse.members):
            return exact_pass(self.index.prototypes, self.reachable, queries, scale, n)
        if self.index.delta is None:
            return coarse.search(queries, self.index.base_prototypes, n, scale)
        asked = n + min(len(self.stale), 4 * n)
        found = coarse.search(queries, self.index.base_prototypes, asked, scale)
        gone = np.isin(found.places, self.stale)
        if (~gone).sum(axis=1).min() < n:
            return exact_pass(self.index.prototypes, self.reachable, queries, scale, n)
        return self._renewed(queries, found, gone, n)

    def scores(self, query: Floats, places: Rows) -> Floats:
        """<query, prototype> of some places.  (D,) -> (places,)."""
        scores = np.zeros(len(places), np.float32)
        home = self.index.home[places]
        scores[home >= 0] = self.index.base_prototypes[home[home >= 0]] @ query
        if self.index.delta is not None:
            touched = self.index.delta.touched
            at = np.minimum(np.searchsorted(touched, places), max(len(touched) - 1, 0))
            mine = touched[at] == places if len(touched) else np.zeros(len(places), bool)
            scores[mine] = self.index.delta.prototypes[at[mine]] @ query
        return scores

    def _renewed(self, queries: Floats, found: Found, gone: NDArray[np.bool_], n: int) -> Found:
        """Put the places that changed into what the codes of the bulk found."""
        delta, scale = self.index.delta, self.index.scale
        if delta is None:
            return found
        held = self.index.sizes[delta.touched] > 0
        fresh = dots(queries, delta.prototypes[held])  # (Q, fresh)
        scores = np.concatenate([np.where(gone, -np.inf, found.scores), fresh], axis=1)
        names = np.concatenate(
            [self.index.numbers[found.places], np.broadcast_to(self.fresh, fresh.shape)], axis=1
        )
        best = np.argsort(-scores, axis=1, kind="stable")[:, :n]
        old = dots(queries, self.index.base_prototypes[self.stale])  # (Q, stale)
        share = np.exp(np.minimum(scale * old - found.log_total[:, None], 0)).sum(axis=1)
        rest = found.log_total + np.log1p(-np.minimum(share, 0.999))
        total = np.logaddexp(rest, np.logaddexp.reduce(scale * fresh, axis=1, initial=-np.inf))
        return Found(
            np.take_along_axis(names, best, axis=1),
            np.take_along_axis(scores, best, axis=1).astype(np.float32),
            total.astype(np.float32),
        )


def cells_around(index: Index, places: Rows, metres: float) -> Rows:
    """Places with photos whose centre lies within some metres of the winner's, but not listed."""
    centres = index.places.centres
    near = np.abs(centres - centres[places[0]]).max(axis=1) <= metres
    rows = np.flatnonzero(near & (index.sizes > 0))
    away = np.hypot(*(centres[rows] - centres[places[0]]).T)
    return np.setdiff1d(rows[away <= metres], places)
