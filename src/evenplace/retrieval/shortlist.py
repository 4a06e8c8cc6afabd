"""Which places a query may show: the best by their prototypes, and how likely each is.

Q queries · C places · D descriptor · n shortlisted places
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenplace.retrieval.coarse import Found
from evenplace.retrieval.index import Index
from evenplace.retrieval.shortlist_effort import exact_pass

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


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
