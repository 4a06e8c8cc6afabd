"""Latitude and longitude to UTM metres and back, for whole columns."""

from dataclasses import dataclass

import numpy as np
import utm
from numpy.typing import ArrayLike, NDArray

from evenplace.arrays import Doubles

SOUTH, NORTH = -80.0, 84.0  # degrees of latitude where UTM ends
EQUATOR = 0.5  # degrees beyond the equator that a zone's metres still serve
NEIGHBOUR = 6.0  # degrees from a zone's central meridian that its metres still serve


@dataclass(frozen=True)
class Metres:
    """UTM positions; NaN, with zone 0, where a latitude or longitude was none."""

    east: Doubles
    north: Doubles
    zone: NDArray[np.int8]


def zone_of(latitude: ArrayLike, longitude: ArrayLike) -> NDArray[np.int8]:
    """The UTM zone of each position, negative in the south, 0 where there is none.

    Zones are 6° wide, but for south-west Norway (32 is wider) and Svalbard (31, 33, 35, 37).
    """
    lat, lon = np.asarray(latitude, np.float64), np.asarray(longitude, np.float64)
    good = (lat >= SOUTH) & (lat <= NORTH) & (np.abs(lon) <= 180)
    turned = np.mod(np.where(good, lon, 0) + 180, 360) - 180
    zone = (np.floor((turned + 180) / 6).astype(np.int64)) + 1
    norway = (lat >= 56) & (lat < 64) & (turned >= 3) & (turned < 12)
    zone = np.where(norway, 32, zone)
    svalbard = (lat >= 72) & (turned >= 0) & (turned < 42)
    zone = np.where(svalbard, np.array([31, 33, 35, 37])[np.digitize(turned, [9, 21, 33])], zone)
    return np.where(good, np.where(lat < 0, -zone, zone), 0).astype(np.int8)


def to_metres(latitude: ArrayLike, longitude: ArrayLike, zone: ArrayLike | None = None) -> Metres:
    """Project to UTM, each photo in its own zone, or in `zone` where that is near enough.

    zone: of all, or of each; 0 and what is none leave a photo in its own.
    """
    lat, lon = np.asarray(latitude, np.float64), np.asarray(longitude, np.float64)
    zones = zone_of(lat, lon)
    if zone is not None:
        zone = np.asarray(zone)
        meridian = 6 * np.abs(zone) - 183
        away = np.abs(np.mod(lon - meridian + 180, 360) - 180)
        side = ((lat < 0) == (zone < 0)) | (np.abs(lat) <= EQUATOR)
        near = (zones != 0) & (away <= NEIGHBOUR) & side & (zone != 0) & (np.abs(zone) <= 60)
        zones = np.where(near, zone, zones).astype(np.int8)
    east, north = np.full(len(lat), np.nan), np.full(len(lat), np.nan)
    for number in np.unique(zones[zones != 0]):
        here = zones == number
        east[here], north[here], _, _ = utm.from_latlon(
            lat[here],
            lon[here],
            force_zone_number=abs(int(number)),
            force_northern=bool(number > 0),
        )
    return Metres(east, north, zones)


def to_degrees(east: ArrayLike, north: ArrayLike, zone: int) -> tuple[Doubles, Doubles]:
    """Latitude and longitude of positions in one UTM zone."""
    lat, lon = utm.to_latlon(
        np.asarray(east, np.float64),
        np.asarray(north, np.float64),
        abs(zone),
        northern=zone > 0,
        strict=False,
    )
    return np.asarray(lat), np.asarray(lon)


def say_spot(
    east: float, north: float, latitude: float | None = None, longitude: float | None = None
) -> str:
    """A position as people read it: degrees where there is a globe, else metres."""
    if latitude is None or np.isnan(latitude):
        return f"east {east:.1f}, north {north:.1f}"
    return f"{latitude:.6f}, {longitude:.6f}"


def degrees(positions: Doubles, zones: ArrayLike) -> Doubles:
    """Latitude and longitude of UTM positions, nan in zone 0: (..., 2), (...) -> (..., 2)."""
    globe = np.full(positions.shape, np.nan)
    zones = np.broadcast_to(np.asarray(zones), positions.shape[:-1])
    for zone in np.unique(zones[zones != 0]).tolist():
        here = zones == zone
        east, north = positions[here].T
        globe[here] = np.stack(to_degrees(east, north, zone), axis=1)
    return globe
