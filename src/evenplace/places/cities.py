"""Cutting the maps of several cities: each by itself, and then behind each other.

# N photos · C places
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evenplace.arrays import Array, Ints
from evenplace.errors import PhotoError
from evenplace.photos.table import Photos
from evenplace.places.maps import Sheet
from evenplace.places.table import Places
from evenplace.places.tiers import tiers


class CutByCity:
    """A rule that cuts the map of every city by itself."""

    def partition(self, photos: Photos) -> Places:
        """Cut the map where the photos are."""
        return cut_cities(photos, self._cut)

    def settings(self) -> dict[str, Any]:
        """What the rule was told, as plain data."""
        return dict(vars(self))

    def _cut(self, sheet: Sheet) -> Places:
        raise NotImplementedError


def cut_cities(photos: Photos, cut: Callable[[Sheet], Places]) -> Places:
    """Cut the map of every city, so that no place is in two of them."""
    if not len(photos):
        raise PhotoError("there are no photos to make places of; check what was skipped")
    names = photos.cities
    if len(names) == 1 and len(photos.zones) == 1:
        return cut(Sheet(photos, names[0], photos.zones[0]))
    parts, rows, city = [], [], photos.city
    for number, name in enumerate(names):
        mine = np.flatnonzero(city == number)
        zones = photos.zone[mine]
        for zone in np.unique(zones).tolist():
            rows.append(mine[zones == zone])
            parts.append(cut(Sheet(photos[rows[-1]], name, zone)))
    return join_places(parts, rows)


def join_places(parts: Sequence[Places], rows: Sequence[Ints]) -> Places:
    """Put the maps of several cities behind each other.  rows: which photos each was made from."""
    starts = np.cumsum([0, *(len(part) for part in parts)])
    labels = np.full(sum(len(one) for one in rows), -1, np.int64)
    for part, mine, first in zip(parts, rows, starts, strict=False):
        labels[mine] = np.where(part.labels >= 0, part.labels + first, -1)
    before = np.cumsum([0, *(len(part.maps) for part in parts)])

    def joined(name: str) -> Array:
        return np.concatenate([getattr(part, name) for part in parts])

    shared = set.intersection(*(set(part.extra) for part in parts))
    home = np.concatenate([part.home + first for part, first in zip(parts, before, strict=False)])
    return Places(
        labels=labels,
        ids=_side_by_side([part.ids for part in parts]),
        centres=joined("centres"),
        counts=joined("counts"),
        groups=joined("groups"),
        tiers=tiers(joined("counts")),
        areas=joined("areas"),
        maps=tuple(one for part in parts for one in part.maps),
        home=home.astype(np.int32),
        extra={name: np.concatenate([p.extra[name] for p in parts]) for name in sorted(shared)},
    )


def _side_by_side(ids: Sequence[Ints]) -> Ints:
    """Ids of maps that were cut differently, the shorter ones filled with zeros.  -> (C, k)."""
    width = max(one.shape[1] for one in ids)
    return np.concatenate([np.pad(one, ((0, 0), (0, width - one.shape[1]))) for one in ids])
