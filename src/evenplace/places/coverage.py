"""From which sides and in which years places were seen, and where new photos would help most.

# N photos · C places · H heading bins
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import PlaceError
from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.places.tiers import TIERS

Ints = NDArray[np.int64]
HEADINGS = 12  # bins of 30°


@dataclass(frozen=True)
class Coverage:
    """Photos by tier and heading, by tier and year, and the sides each place was seen from."""

    headings: Ints  # (3, H) photos; empty when no heading is known
    years: Ints  # (Y,) ascending
    by_year: Ints  # (3, Y) photos
    sides: Ints  # (C,) heading bins with a photo


@dataclass(frozen=True)
class Need:
    """A block of the map where places are photographed less than the median place."""

    centre: tuple[float, float]  # east, north
    city: str
    zone: int
    places: int
    below: int  # of them, with fewer photos than the median place
    photos: int  # that would bring them all to the median


def cover(photos: Photos, places: Places) -> Coverage:
    """Count photos by tier, heading and year; photos outside every place do not count."""
    check_same(photos, places)
    inside = places.labels >= 0
    labels = places.labels[inside]
    tier = places.tiers[labels]
    heading = photos.heading[inside]
    known = np.isfinite(heading)
    side = np.minimum(heading[known] * (HEADINGS / 360), HEADINGS - 1).astype(np.int64)
    headings = _count_pairs(tier[known], side, len(TIERS), HEADINGS)
    time = photos.time[inside]
    dated = ~np.isnat(time)
    year = time[dated].astype("datetime64[Y]").astype(np.int64) + 1970
    years, at = np.unique(year, return_inverse=True)
    return Coverage(
        headings=headings if known.any() else headings[:, :0],
        years=years,
        by_year=_count_pairs(tier[dated], at, len(TIERS), len(years)),
        sides=_distinct_of(labels[known], side, len(places)),
    )


def find_needs(places: Places, block: float = 200.0, most: int = 12) -> list[Need]:
    """The blocks of `block` metres where the fewest walks would lift the most of the tail.

    A place lacks as many photos as it has fewer than the median place; blocks are ranked by the
    number of places that lack some, then by the photos they lack.
    """
    if not len(places):
        return []
    target = int(np.median(places.counts))
    lack = np.maximum(target - places.counts, 0)
    cells = np.floor(places.centres / block).astype(np.int64)
    cells = np.column_stack([places.home, cells])
    found, at = np.unique(cells, axis=0, return_inverse=True)
    total, below, photos = (
        np.bincount(at, weights, len(found)).astype(np.int64) for weights in (None, lack > 0, lack)
    )
    order = np.lexsort((*found.T[::-1], -photos, -below))
    at = at.ravel()
    return [
        Need(
            centre=_centre(places, at == row),
            city=places.maps[found[row, 0]].city,
            zone=places.maps[found[row, 0]].zone,
            places=int(total[row]),
            below=int(below[row]),
            photos=int(photos[row]),
        )
        for row in order[:most]
        if below[row]
    ]


def check_same(photos: Photos, places: Places) -> None:
    """Refuse places of other photos."""
    if len(photos) != len(places.labels):
        raise PlaceError(
            f"the places were made from {len(places.labels)} photos and here are {len(photos)}; "
            "cut the map again for these"
        )


def _centre(places: Places, mine: NDArray[np.bool_]) -> tuple[float, float]:
    east, north = places.centres[mine].mean(axis=0)
    return float(east), float(north)


def _count_pairs(first: NDArray[np.integer], second: Ints, rows: int, columns: int) -> Ints:
    flat = first.astype(np.int64) * columns + second
    return np.bincount(flat, minlength=rows * columns).reshape(rows, columns)


def _distinct_of(labels: Ints, kinds: Ints, count: int) -> Ints:
    """How many different kinds each place has: (C,)."""
    seen = np.zeros((count, int(kinds.max(initial=0)) + 1), bool)
    seen[labels, kinds] = True
    return np.asarray(seen.sum(axis=1), np.int64)
