"""The ways in which a held-out photo asks, so that tomorrow's questions hold no surprise.

as taken     what the photo saw, with everything of its own day hidden
other light  the same with night, weather and traffic drawn on it (`other_light.py`)
off the map  everything within 100 m hidden: whatever is answered is wrong

A rehearsal can promise nothing about another day where the photos show one day, or tell no day
at all: `no_other_day` then says so, and the run is uncalibrated.

    V photos that ask
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenplace.photos.nearby import find_nearby
from evenplace.photos.table import Photos
from evenplace.run.folds import RIGHT, Fold

AWAY = 100.0  # metres around a photo that is asked off the map
LEAST = 0.5  # of the photos must have a match of another day


def no_other_day(photos: Photos) -> str:
    """Why photos show no other day, in a clause; empty where they do."""
    known = ~np.isnat(photos.time)
    if not known.any():
        return "the photos carry no capture times"
    if known.mean() < LEAST:
        return f"only {known.mean():.0%} of the photos carry a capture time"
    days = np.unique(photos.time[known].astype("datetime64[D]"))
    if len(days) == 1:
        return f"all photos were taken on one day ({days[0]})"
    near = find_nearby(photos, photos, RIGHT.radius)
    asked = np.repeat(np.arange(len(photos)), near.counts)
    day = photos.time.astype("datetime64[D]")
    another = day[near.rows] != day[asked]
    seen_again = np.unique(asked[another & known[asked] & known[near.rows]])
    if len(seen_again) < LEAST * len(photos):
        return (
            f"only {len(seen_again) / len(photos):.0%} of the photos were taken where "
            "another day's were"
        )
    return ""


def on_other_days(folds: Sequence[Fold]) -> list[Fold]:
    """Hide from each photo those of its own day; photos that lose their last match so ask nothing.

    A photo without a time sees those that have one.
    """
    return [_hide_own_day(fold) for fold in folds]


def _hide_own_day(fold: Fold) -> Fold:
    asked, taken = (
        photos.time.astype("datetime64[D]") for photos in (fold.queries, fold.index.photos)
    )
    near = RIGHT.positives(fold.queries, fold.index.photos)
    of = np.repeat(np.arange(len(fold.queries)), near.counts)
    another = of[~_same_day(asked[of], taken[near.rows])]
    matches = np.bincount(another, minlength=len(fold.queries))
    kept = np.flatnonzero((matches > 0) | (near.counts == 0))
    rows = {day: np.flatnonzero(_same_day(day, taken)) for day in np.unique(asked[kept])}
    return fold.only(kept).hiding([rows[day] for day in asked[kept]])


def _same_day(
    one: NDArray[np.datetime64] | np.datetime64, other: NDArray[np.datetime64]
) -> NDArray[np.bool_]:
    """Whether days are the same; two that are unknown may be, so they count as such."""
    return np.asarray((one == other) | (np.isnat(one) & np.isnat(other)))


def in_other_light(fold: Fold) -> Fold | None:
    """The photos that were drawn in another light, asking with that; None where none were."""
    if fold.relit is None:
        return None
    drawn = np.flatnonzero(fold.relit_row >= 0)
    return replace(fold.only(drawn), source=fold.relit, rows=fold.relit_row[drawn])


def off_the_map(fold: Fold) -> Fold:
    """Hide all that is near each photo."""
    near = find_nearby(fold.index.photos, fold.queries, AWAY)
    return fold.hiding([near.of(query) for query in range(len(fold.queries))])
