"""From which sides and in which years places were seen, how alike their photos look to a model
(the green band of the paper's Figure 1), and where new photos would help most.

# N photos · C places · H heading bins · D descriptor · P photos in one place
"""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Doubles, Ints, evenly, unit
from evenplace.errors import PhotoError, PlaceError
from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.places.tiers import TIERS

HEADINGS = 12  # bins of 30°
MOST = 64  # photos of a place that are compared; the 2,016 pairs fix the mean to a percent


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
    if len(photos) != len(places.labels):
        raise PlaceError(
            f"the places were made from {len(places.labels)} photos and here are {len(photos)}; "
            "cut the map again for these"
        )
    inside = places.labels >= 0
    labels = places.labels[inside]
    tier = places.tiers[labels]
    heading = photos.heading[inside]
    known = np.isfinite(heading)
    side = np.minimum(heading[known] * (HEADINGS / 360), HEADINGS - 1).astype(np.int64)
    headings = _count_pairs(tier[known], side, len(TIERS), HEADINGS)
    seen = np.zeros((len(places), HEADINGS), bool)
    seen[labels[known], side] = True
    time = photos.time[inside]
    dated = ~np.isnat(time)
    year = time[dated].astype("datetime64[Y]").astype(np.int64) + 1970
    years, at = np.unique(year, return_inverse=True)
    return Coverage(
        headings=headings if known.any() else headings[:, :0],
        years=years,
        by_year=_count_pairs(tier[dated], at, len(TIERS), len(years)),
        sides=seen.sum(axis=1),
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
            centre=tuple(places.centres[at == row].mean(axis=0).tolist()),
            city=places.maps[found[row, 0]].city,
            zone=places.maps[found[row, 0]].zone,
            places=int(total[row]),
            below=int(below[row]),
            photos=int(photos[row]),
        )
        for row in order[:most]
        if below[row]
    ]


def _count_pairs(first: NDArray[np.integer], second: Ints, rows: int, columns: int) -> Ints:
    flat = first.astype(np.int64) * columns + second
    return np.bincount(flat, minlength=rows * columns).reshape(rows, columns)


@dataclass(frozen=True)
class Diversity:
    """Mean and standard deviation of the cosines of a place's pairs; NaN below two photos."""

    mean: Doubles  # (C,)
    spread: Doubles  # (C,)


def measure_diversity(descriptors: Any, places: Places) -> Diversity:
    """Compare the photos of each place with each other: (N, D) -> (C,) mean and spread.

    A place with more than 64 photos is judged by 64 of them, evenly spaced.
    """
    if len(descriptors.shape) != 2 or descriptors.shape[0] != len(places.labels):
        raise PhotoError(
            f"the descriptors have shape {descriptors.shape} and there are {len(places.labels)} "
            "photos; give one row a photo, in the order of the photos"
        )
    rows, starts = places.members()
    mean = np.full(len(places), np.nan)
    spread = np.full(len(places), np.nan)
    for place, (first, last) in enumerate(itertools.pairwise(starts)):
        if last - first < 2:
            continue
        mine = rows[first:last][evenly(last - first, MOST)]
        z = unit(np.asarray(descriptors[mine], np.float64))  # (P, D)
        cosines = (z @ z.T)[np.triu_indices(len(z), 1)]  # (P (P - 1) / 2,)
        mean[place], spread[place] = cosines.mean(), cosines.std()
    return Diversity(mean, spread)
