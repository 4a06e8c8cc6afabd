"""A map that needs no network: cells and dots in metres, panned, zoomed and clicked in Leaflet.

Cells are drawn from flat arrays onto canvas tiles, so a city of a hundred thousand stays smooth.

# C cells, or places · V corners · P points · M maps of cities
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from evenplace.arrays import Array, Doubles, Ints
from evenplace.errors import SettingError
from evenplace.photos.geodesy import to_degrees
from evenplace.places.table import Places
from evenplace.report.page import part

_EARTH = 6_378_137.0  # metres, the web's sphere
_GAP = 0.08  # of the largest map, between two
TIER_KEYS = (("head", "--head"), ("middle", "--middle"), ("tail", "--tail"))
ANSWER_KEYS = (("right", "--good"), ("wrong", "--bad"))
Keys = Sequence[tuple[str, str]]  # what each kind is called, and its CSS variable


@dataclass(frozen=True)
class Cells:
    """Areas to colour: which kind each is of, and what a click on it tells."""

    outlines: Doubles  # (C, V, 2) east, north
    kinds: NDArray[np.integer]  # (C,) row of keys
    keys: Keys = TIER_KEYS
    facts: Mapping[str, Array | Sequence[str]] = field(default_factory=dict)  # (C,) each
    pictures: Mapping[int, Sequence[str]] = field(default_factory=dict)  # of a cell: img sources


@dataclass(frozen=True)
class Points:
    """Dots over the cells: photos, or queries that were answered right or wrong."""

    positions: Doubles  # (P, 2)
    kinds: NDArray[np.integer] | None = None  # (P,) row of keys; None draws small grey dots
    keys: Keys = ANSWER_KEYS
    texts: Sequence[str] = ()  # (P,) what a click tells: HTML, or "#id" of a part of the page
    radius: float = 1.5
    clusters: bool = False  # dots too near to be told apart become one with their number
    groups: Sequence[int] = ()  # (P,) the kind of cell each dot goes with: hidden together


@dataclass(frozen=True)
class Tiles:
    """A base map on the web: an address with {z}, {x} and {y}, and the UTM zone of the places."""

    url: str
    zone: int

    def __post_init__(self) -> None:
        if not all(part in self.url for part in ("{z}", "{x}", "{y}")):
            raise SettingError(f"tiles={self.url!r} must hold {{z}}, {{x}} and {{y}}")
        if not self.zone:
            raise SettingError("a base map needs UTM positions; these photos have local metres")

    def affine(self, origin: Doubles) -> list[float]:
        """Web Mercator of a point (east, north) metres from `origin`: x0, xe, xn, y0, ye, yn.

        Over a city the two differ by a scale and a small turn; 5 km off the origin the linear
        map is right to about a metre.
        """
        reach = 2000.0
        spots = origin + np.array([[0, 0], [-reach, 0], [reach, 0], [0, -reach], [0, reach]])
        latitude, longitude = to_degrees(spots[:, 0], spots[:, 1], self.zone)
        x = _EARTH * np.radians(longitude)
        y = _EARTH * np.log(np.tan(np.pi / 4 + np.radians(latitude) / 2))
        slopes = [np.diff(axis[1:])[::2] / (2 * reach) for axis in (x, y)]
        return [float(x[0]), *slopes[0].tolist(), float(y[0]), *slopes[1].tolist()]


def tiles_under(url: str | None, places: Places) -> Tiles | None:
    """The base map of the places, if one was asked for; it lies under one city."""
    if url is None:
        return None
    if len(places.maps) > 1:
        raise SettingError(
            f"tiles={url!r} can lie under one city, and these places are of "
            f"{', '.join(places.cities)}; leave it out, or choose one with --city"
        )
    return Tiles(url, places.maps[0].zone)


@dataclass(frozen=True)
class Sheets:
    """How far each map is moved; nothing moves where there is one."""

    boxes: Doubles  # (M, 4) west, south, east, north of its places
    zones: Ints  # (M,)
    moves: Doubles  # (M, 2)
    home: NDArray[np.int32]  # (C,)

    def outlines(self, corners: Doubles) -> Doubles:
        """The corners of all places on the drawing: (C, V, 2) -> (C, V, 2)."""
        moved: Doubles = corners + self.moves[self.home][:, None]
        return moved

    def points(self, positions: Doubles, zones: NDArray[np.integer]) -> Doubles:
        """Positions on the drawing, beside the nearest map of their zone: (P, 2) -> (P, 2)."""
        if len(self.moves) == 1:
            return positions
        west, south, east, north = self.boxes.T
        x, y = positions[:, :1], positions[:, 1:]
        beside = np.maximum(np.maximum(west - x, x - east), 0)
        above = np.maximum(np.maximum(south - y, y - north), 0)
        away = np.hypot(beside, above) + np.where(self.zones == zones[:, None], 0, 1e12)  # (P, M)
        moved: Doubles = positions + self.moves[away.argmin(axis=1)]
        return moved


def lay_out(places: Places) -> Sheets:
    """Put the maps into rows, as many in a row as rows; the first stays where it is."""
    corners, count = places.outlines, len(places.maps)
    boxes = np.zeros((count, 4))
    for number in np.unique(places.home):
        mine = corners[places.home == number].reshape(-1, 2)
        boxes[number] = [*mine.min(axis=0), *mine.max(axis=0)]
    sides = boxes[:, 2:] - boxes[:, :2]
    step = sides.max(axis=0) * (1 + _GAP)
    across = int(np.ceil(np.sqrt(count)))
    at = np.stack([np.arange(count) % across, -(np.arange(count) // across)], axis=1)
    moves = boxes[0, :2] + at * step - boxes[:, :2]
    zones = np.array([one.zone for one in places.maps])
    return Sheets(boxes, zones, moves if count > 1 else np.zeros((1, 2)), places.home)


def draw_places(
    places: Places,
    facts: Mapping[str, Array | Sequence[str]] | None = None,
    pictures: Mapping[int, Sequence[str]] | None = None,
) -> tuple[Sheets, Cells]:
    """The places in the colours of their tiers; a click tells photos, more facts, the city."""
    sheets, told = lay_out(places), {"photos": places.counts, **(facts or {})}
    if len(places.maps) > 1:
        told["city"] = [places.maps[home].city for home in places.home]
    outlines = sheets.outlines(places.outlines)
    return sheets, Cells(outlines, places.tiers, facts=told, pictures=pictures or {})


def say_cities(places: Places) -> str:
    """Why several cities lie beside each other; nothing of one."""
    several = len(places.maps) > 1
    return f" The cities lie beside each other: {', '.join(places.cities)}." if several else ""


def map_html(
    cells: Cells,
    points: Points | None = None,
    *,
    link: str = "",
    origin: Doubles | None = None,
    label: str = "map of the places",
    tiles: Tiles | None = None,
) -> Markup:
    """A map of cells, with buttons that show and hide each kind.

    Maps of one `link` move together and need one `origin` (any point near by).  The page shell
    brings the code.  tiles: a base map, which is then asked of the network.
    """
    origin = _origin(cells, points) if origin is None else origin
    data: dict[str, Any] = {
        "link": link,
        "corners": pack(cells.outlines - origin, "<f4"),
        "sides": int(cells.outlines.shape[1]) if cells.outlines.ndim == 3 else 4,
        "kinds": pack(cells.kinds, "<u1"),
        "keys": [list(key) for key in cells.keys],
        "facts": {name: np.asarray(told).tolist() for name, told in cells.facts.items()},
        "pictures": {str(cell): list(sources) for cell, sources in cells.pictures.items()},
    }
    if tiles is not None:
        data["tiles"] = {"url": tiles.url, "affine": tiles.affine(origin)}
    if points is not None:
        data["points"] = {
            "at": pack(points.positions - origin, "<f4"),
            "kinds": None if points.kinds is None else pack(points.kinds, "<u1"),
            "keys": [list(key) for key in points.keys],
            "texts": list(points.texts),
            "radius": points.radius,
            "clusters": points.clusters,
            "groups": list(points.groups) or None,
        }
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    return part("map", label, Markup(text))


def _origin(cells: Cells, points: Points | None) -> Doubles:
    """The south-west corner: floats of four bytes are exact to millimetres from there."""
    if len(cells.outlines):
        return np.array(cells.outlines.min(axis=(0, 1)))
    if points is not None and len(points.positions):
        return np.array(points.positions.min(axis=0))
    return np.zeros(2)


def pack(values: Array, dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype).tobytes()).decode()
