"""Some of the photos: cities by name, a box on the globe, and all but a few strays far away."""

from collections.abc import Sequence

import numpy as np

from evenplace.arrays import Doubles
from evenplace.errors import PhotoError, unknown_name
from evenplace.photos.cities import is_made_up
from evenplace.photos.geodesy import to_degrees
from evenplace.photos.table import Photos, Skipped

EVERY = "all"
STRAYS = 10  # photos of a city that may be strays, and
SHARE = 0.02  # of all photos


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
    counts = np.bincount(photos.city, minlength=len(known))
    few = (counts <= STRAYS) & (counts <= SHARE * len(photos))
    if not few.any():
        return photos
    gone = photos[few[photos.city]]
    out = [
        Skipped(path, f"it is one of {counts[known.index(city)]} far from all others, in {city}; "
                f"ask for city {city} or all to keep it")
        for path, city in zip(gone.names, gone.table.column("city").to_pylist(), strict=True)
    ]  # fmt: skip
    return Photos(photos[~few[photos.city]].table, [*photos.skipped, *out])


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
    lat, lon = np.full(len(photos), np.nan), np.full(len(photos), np.nan)
    for zone in photos.zones:
        here = photos.zone == zone
        if zone:
            lat[here], lon[here] = to_degrees(photos.east[here], photos.north[here], zone)
    return lat, lon
