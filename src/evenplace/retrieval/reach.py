"""By which places a database is searched: the classifier's where it was trained, its own elsewhere.

A city of the database is known where any of its photos lies in a place of the run.  In the others
places are cut from the database, and a place's prototype is the mean of its photos' descriptors.

N photos · C places · D descriptor
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenplace.photos.table import Photos
from evenplace.places.opened import database_places, open_places, unknown_cities
from evenplace.places.table import Places

Floats = NDArray[np.float32]
MEANS = "means"  # column of `Places.extra`: 1 where a place's prototype is a mean


@dataclass(frozen=True)
class Reach:
    """Places to search by, and their prototypes: (C, D), nan where a mean is wanted; None: all."""

    places: Places
    prototypes: Floats | None


def reach(places: Places, prototypes: Floats | None, photos: Photos, *, own: bool = False) -> Reach:
    """The classifier's places and, in cities it was not trained in, the database's.

    prototypes: (C, D) of a classifier; None for a network that only ranks.  own: take the
    database's places everywhere.
    """
    unknown = np.ones(len(photos), bool) if own else unknown_cities(places, photos)
    if not unknown.any():
        return Reach(places, prototypes)
    if unknown.all():
        return Reach(database_places(photos, places), None)
    opened = open_places(places, photos[unknown])
    if prototypes is None:
        return Reach(opened.places, None)
    grown = np.full((len(opened.places), prototypes.shape[1]), np.nan, np.float32)
    grown[opened.numbers] = prototypes
    return Reach(mark_means(opened.places, opened.fresh), grown)


def mark_means(places: Places, which: NDArray[np.bool_] | bool = True) -> Places:
    """The places, with a note of those whose prototype is a mean."""
    noted = np.broadcast_to(np.asarray(which, np.int64), len(places)).copy()
    return replace(places, extra={**places.extra, MEANS: noted})


def fill_means(prototypes: Floats | None, means: Floats) -> Floats:
    """Prototypes with means where they are nan, as long as the others are.  (C, D)."""
    if prototypes is None:
        return means
    prototypes = np.asarray(prototypes, np.float32)
    wanted = np.isnan(prototypes[:, 0])
    lengths = np.linalg.norm(prototypes, axis=1)
    length = 1.0 if np.all(wanted) else float(np.nanmedian(lengths))
    filled: Floats = np.where(wanted[:, None], means * np.float32(length), prototypes)
    return filled
