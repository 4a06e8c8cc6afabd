"""What a set of queries has in common that the database has not: season, light, camera.

Queries of another day differ from the database all in one way, and that way hides in which they
differ from one another.  So the mean of the set is moved to the database's before anything is
compared.  A set of one street has its own mean too: it is moved only by what the photos it is most
like, or a part of the database with as many places, do not differ from the whole anyway.

    Q queries · S photos of the database, spread over it · D descriptor
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Floats, evenly, unit
from evenplace.retrieval.array_files import Column, Rows
from evenplace.retrieval.codec import Descriptors
from evenplace.retrieval.index import Index

LEAST = 20  # queries; a mean of fewer is a mean of what they show
_PHOTOS, _ASKED = 8192, 1024  # photos that stand for the database, queries that stand for the set
_PASSES = 4
_PARTS, _MOST = 32, 0.9  # parts of the database that are tried; the share of them to exceed


def shift_of(index: Index, queries: Floats, kept: Descriptors | Column | None = None) -> Floats:
    """What to add to each query before it is made unit again; 0 where nothing sets them apart.

    queries: (Q, D) unit, as `kept` has the photos, which is as the index compares them unless told.
    -> (D,).
    """
    if len(queries) < LEAST or len(index) < LEAST:
        return np.zeros(queries.shape[1], np.float32)
    rows = evenly(len(index), _PHOTOS)
    photos = np.asarray((index.descriptors if kept is None else kept)[rows], np.float32)
    database = _Database(photos, index.labels[rows], index.spots(rows))
    away = database.mean - queries.mean(axis=0)  # (D,)
    chance = (1 - np.square(queries.mean(axis=0)).sum()) / len(queries)  # of so few queries
    asked, share = queries[evenly(len(queries), _ASKED)], 0.0
    for _ in range(_PASSES):  # moved, they are like more of the database
        own = database.differs(unit(asked + share * away)) + chance
        share = max(0.0, 1 - float(own / max(np.square(away).sum(), 1e-12)))
    shift: Floats = (share * away).astype(np.float32)
    return shift


@dataclass(frozen=True)
class _Database:
    """Photos that stand for all."""

    photos: Floats  # (S, D)
    labels: Rows  # (S,)
    spots: NDArray[np.float64]  # (S, 3)

    @cached_property
    def mean(self) -> Floats:
        mean: Floats = self.photos.mean(axis=0)
        return mean

    def differs(self, queries: Floats) -> float:
        """By how much what queries are most like differs from the whole: a squared distance."""
        alike = (queries @ self.photos.T).argmax(axis=1)
        own = float(np.square(self.photos[alike].mean(axis=0) - self.mean).sum())
        return max(own, self._part_differs(len(np.unique(self.labels[alike]))))

    def _part_differs(self, places: int) -> float:
        """The same of parts with so many places, each around a photo: of some nearly the most."""
        found = []
        for photo in evenly(len(self.photos), _PARTS):
            order = np.argsort(np.square(self.spots - self.spots[photo]).sum(axis=1), kind="stable")
            firsts = np.sort(np.unique(self.labels[order], return_index=True)[1])
            part = order[: firsts[places]] if places < len(firsts) else order
            found.append(np.square(self.photos[part].mean(axis=0) - self.mean).sum())
        return float(np.quantile(found, _MOST))
