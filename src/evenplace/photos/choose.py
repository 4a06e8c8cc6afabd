"""Some of the photos: of a city, of a box on the globe, each file once, one part of several.

N photos · S spots
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenplace.arrays import Bools, Doubles, Ints
from evenplace.errors import PhotoError, SettingError, unknown_name
from evenplace.photos.cities import is_made_up
from evenplace.photos.geodesy import degrees
from evenplace.photos.table import Photos, Skipped

EVERY = "all"
AGAIN = "the same file came before"  # why a photo is left out
STRAYS = 10  # photos of a city that may be strays, and
SHARE = 0.02  # of all photos
_ODD = r"//|(^|/)\.\.?(/|$)"  # ./a, a/../b, a//b


def keep_cities(photos: Photos, names: Sequence[str]) -> Photos:
    """The photos of some cities; "all" keeps every one, strays too."""
    if EVERY in names:
        return photos
    known = photos.cities
    for name in names:
        if name not in known:
            raise unknown_name("city of these photos", name, known)
    return photos[np.isin(photos.city, [known.index(name) for name in names])]


def leave_strays(photos: Photos) -> Photos:
    """Leave out cities of a few photos far from all others: a holiday, a wrong coordinate.

    Cities that the data set names are never strays, nor is any where photos are few altogether.
    """
    known = photos.cities
    if len(known) < 2 or not all(map(is_made_up, known)):
        return photos
    city = photos.city
    counts = np.bincount(city, minlength=len(known))
    astray = ((counts <= STRAYS) & (counts <= SHARE * len(photos)))[city]  # (N,)
    reasons = [
        f"it is one of {counts[one]} far from all others, in {known[one]}; ask for city "
        f"{known[one]} or all to keep it"
        for one in city[astray]
    ]
    return _leave_out(photos, astray, reasons)


def keep_zone(photos: Photos, zone: int | None) -> Photos:
    """Keep the photos of one zone of several, and say that the others were left out."""
    if zone is None or photos.zones == [zone]:
        return photos
    away = photos.zone != zone
    if away.all():
        known = ", ".join(map(str, photos.zones))
        raise PhotoError(f"no photo is in UTM zone {zone}; ask for one that they are in: {known}")
    elsewhere = photos.zone[away]
    reasons = [f"it is in UTM zone {one}, and zone {zone} was asked for" for one in elsewhere]
    return _leave_out(photos, away, reasons)


def keep_named(photos: Photos, pattern: str) -> Photos:
    """The photos whose file is named like a shell pattern."""
    unlike = np.array([not Path(one).match(pattern) for one in photos.paths], bool)
    if unlike.all():
        raise PhotoError(f"no photo is named like {pattern}; check the pattern")
    return _leave_out(photos, unlike, [f"its name is not like {pattern}"] * int(unlike.sum()))


def _leave_out(photos: Photos, gone: Bools, reasons: Sequence[str]) -> Photos:
    """The photos but for some, which are skipped, each with its reason."""
    if not gone.any():
        return photos
    out = [Skipped(*pair) for pair in zip(photos[gone].names, reasons, strict=True)]
    return Photos(photos[~gone].table, [*photos.skipped, *out])


def keep_box(photos: Photos, bbox: Sequence[float]) -> Photos:
    """The photos within west, south, east and north, in degrees."""
    if len(bbox) != 4 or not bbox[1] < bbox[3]:
        raise PhotoError(f"bbox is {list(bbox)}; give west, south, east, north in degrees")
    west, south, east, north = bbox
    lat, lon = globe(photos)
    across = (lon >= west) & (lon <= east) if west <= east else (lon >= west) | (lon <= east)
    inside = photos[across & (lat >= south) & (lat <= north)]
    if not len(inside):
        raise PhotoError(f"no photo lies within {list(bbox)} (west, south, east, north)")
    return inside


def globe(photos: Photos) -> tuple[Doubles, Doubles]:
    """Latitude and longitude of each photo, nan for local metres: (N,) each."""
    latitude, longitude = degrees(photos.positions, photos.zone).T
    return latitude, longitude


def canonical(paths: pa.ChunkedArray) -> pa.Array:
    """Paths that are equal if and only if they name the same file from here; links are not read.

    Paths that are all of one kind, as a data set's are, stay as they are: a million cost nothing.
    """
    whole = paths.combine_chunks() if isinstance(paths, pa.ChunkedArray) else paths
    rooted = pc.starts_with(whole, os.sep)
    odd = pc.match_substring_regex(whole, _ODD)
    mixed = pc.any(rooted).as_py() and not pc.all(rooted).as_py()
    if mixed or pc.any(odd).as_py():
        odd = pc.or_(odd, pc.invert(rooted))
    if not pc.any(odd).as_py():
        return whole
    here = Path.cwd()
    spelt = [os.path.normpath(here / one) for one in whole.filter(odd).to_pylist()]
    return pc.replace_with_mask(whole, odd, pa.array(spelt, whole.type))


def first_of_each(photos: Photos) -> Ints:
    """Rows of the photos, each file once: where it came first."""
    if "path" not in photos.table.column_names:
        return np.arange(len(photos))
    names = canonical(photos.table.column("path"))
    numbers = np.asarray(names.dictionary_encode(null_encoding="encode").indices)  # as they came
    return np.flatnonzero(np.diff(np.maximum.accumulate(numbers), prepend=-1))


def leave_repeats(photos: Photos) -> Photos:
    """The photos, each file once; those that came again are skipped ones."""
    again = np.ones(len(photos), bool)
    again[first_of_each(photos)] = False
    return _leave_out(photos, again, [AGAIN] * int(again.sum()))


def split_by_position(photos: Photos, shares: Sequence[float], seed: int = 0) -> tuple[Photos, ...]:
    """Part photos so that those taken at one spot stay together.

    shares: how much of the spots each part gets; they are scaled to sum to 1, and the order of
    the parts is theirs.  Spots, not photos, are drawn: panorama crops and bursts share a spot,
    and a burst on both sides would be a test of memory.
    """
    if not len(shares) or min(shares) < 0 or not sum(shares) > 0:
        raise SettingError(f"shares={list(shares)} must be positive numbers, one for each part")
    spot = spots_of(photos)
    count = int(spot.max(initial=-1)) + 1
    ends = np.round(np.cumsum(shares) / sum(shares) * count).astype(np.int64)
    part_of_spot = np.empty(count, np.int64)
    shuffled = np.random.default_rng(seed).permutation(count)
    part_of_spot[shuffled] = np.searchsorted(ends, np.arange(count), side="right")
    part = part_of_spot[spot]  # (N,)
    return tuple(photos[np.flatnonzero(part == number)] for number in range(len(shares)))


def spots_of(photos: Photos) -> Ints:
    """Number the spots photos were taken at, to the centimetre.  (N,)."""
    keys = np.column_stack([photos.positions.round(2), photos.zone])
    _, spot = np.unique(keys, axis=0, return_inverse=True)
    return spot.ravel().astype(np.int64)
