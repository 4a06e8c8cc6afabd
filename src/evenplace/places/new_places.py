"""Places that a database opens: cells nobody trained on, in the city itself or in another one.

# C places · N photos
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from evenplace.arrays import Bools, Doubles, Ints
from evenplace.photos.cities import APART, is_made_up, zone_name
from evenplace.photos.table import Photos
from evenplace.places.cities import join_places
from evenplace.places.given import Given
from evenplace.places.grid import Grid
from evenplace.places.maps import Map
from evenplace.places.table import Places

_TAIL = 2


@dataclass(frozen=True)
class Opened:
    """Places with new ones among them, and what the old ones are called there."""

    places: Places
    numbers: Ints  # (C of before,)

    @property
    def fresh(self) -> Bools:
        """Which places are new: (C,)."""
        new = np.ones(len(self.places), bool)
        new[self.numbers] = False
        return new


def unknown_cities(places: Places, photos: Photos) -> Bools:
    """Which photos are of cities where none of them lies in a known place: (N,)."""
    city = photos.city
    inside = np.bincount(city, places.locate(photos) >= 0, len(photos.cities))
    unknown: Bools = (inside == 0)[city]
    return unknown


def open_places(places: Places, photos: Photos) -> Opened:
    """Cut the map where these photos lie outside every place; every photo counts.

    The grid of the places goes on; where they were cut otherwise (a tree, given places) the data
    set's own places are taken if the photos have them, else cells of 20 metres.  A place
    opened on a known map is of the tail; those of a new map have tiers of their own.
    """
    outside = photos[places.locate(photos) < 0]
    if not len(outside):
        return Opened(places, np.arange(len(places)))
    fresh = database_places(outside, places)
    both = join_places([replace(one, labels=np.empty(0, np.int64)) for one in (places, fresh)],
                       [np.empty(0, np.int64)] * 2)  # fmt: skip
    home, maps = both.home.copy(), list(places.maps)
    own = fresh.tiers.copy()
    for number, one in enumerate(fresh.maps):
        here = fresh.centres[fresh.home == number]
        known = [at for at, old in enumerate(places.maps)
                 if _goes_on(old, one, places.centres[places.home == at], here)]  # fmt: skip
        home[both.home == len(places.maps) + number] = known[0] if known else len(maps)
        own[(fresh.home == number) & bool(known)] = _TAIL
        maps += [] if known else [replace(one, city=_free_name(one, maps))]
    extra = {
        name: np.concatenate([values, np.full(len(fresh), -1, values.dtype)])
        for name, values in places.extra.items()
    }
    ranked = np.concatenate([places.tiers, own])
    both = replace(both, tiers=ranked, maps=tuple(maps), home=home, extra=extra)
    order = np.lexsort((*both.ids.T[::-1], home))
    rank = np.argsort(order)
    grown = replace(both.take(order), labels=np.append(rank, -1)[places.labels])
    return Opened(grown, rank[: len(places)])


def database_places(photos: Photos, like: Places) -> Places:
    """The places of a database that nobody trained on, cut as others were, every photo counted."""
    rule = like.rule
    if isinstance(rule, Grid):
        known = np.isfinite(photos.heading).all()  # cells of one heading need headings
        bins = rule.heading_bins if known else 1
        same = replace(rule, min_photos=1, groups_in_use=None, heading_bins=bins,
                       heading_groups=rule.heading_groups if known else 1)  # fmt: skip
        return same.partition(photos)
    if isinstance(rule, Given) and rule.column in photos.table.column_names:
        return replace(rule, min_photos=1, boxes=()).partition(photos)
    return Grid().partition(photos)


def _goes_on(old: Map, new: Map, there: Doubles, here: Doubles) -> bool:
    """Whether a map is cut where another one ended: cells of one lattice in one zone and city.

    A name of ours counts the cities of the photos that were read together, so it says nothing of
    those read before: then their places, there and here, are within what parts two cities.
    """
    same = isinstance(old.rule, Grid) and isinstance(new.rule, Grid)
    if not same or (old.zone, old.width) != (new.zone, new.width):
        return False
    if not (len(there) and is_made_up(old.city) and is_made_up(new.city)):
        return old.city == new.city
    gaps = np.maximum(there.min(axis=0) - here.max(axis=0), here.min(axis=0) - there.max(axis=0))
    return bool(np.hypot(*np.maximum(gaps, 0)) <= APART)


def _free_name(new: Map, maps: Sequence[Map]) -> str:
    """The name of a map, or of ours the next that no other city has."""
    taken, names = {one.city for one in maps}, (f"{zone_name(new.zone)}-{n}" for n in count(2))
    if new.city not in taken or not is_made_up(new.city):
        return new.city
    return next(name for name in names if name not in taken)
