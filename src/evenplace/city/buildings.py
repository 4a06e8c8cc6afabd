"""Buildings: what each looks like before anything is drawn, and how they line a block's edge.

Knows nothing of pixels; every length is in metres.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from evenplace.arrays import Doubles
from evenplace.photos.files import shipped_tables

Colour = tuple[int, int, int]

COLOURS = shipped_tables("city/colours.toml")


@dataclass(frozen=True)
class Style:
    """One building's looks; hashable, so that look-alikes share their textures."""

    seed: int
    material: str
    wall: Colour
    trim: Colour
    frame: Colour
    door: Colour
    roof: Colour
    shop: Colour
    storeys: int
    storey: float
    ground: float
    bay: float
    window: str
    window_width: float
    window_height: float
    lintel: str
    shutters: bool
    balconies: str
    courses: bool
    quoins: bool
    base: str
    sign: str
    awning: bool
    roof_kind: str
    roof_rise: float

    @property
    def height(self) -> float:
        """The wall's height up to the eaves."""
        return self.ground + self.storey * (self.storeys - 1)


STOREYS = {"avenue": (4, 8), "street": (2, 6), "lane": (2, 4)}
SHOP_SHARE = {"avenue": 0.75, "street": 0.4, "lane": 0.2}


def draw_style(rng: np.random.Generator, kind: str) -> Style:
    """Draw a building for an `avenue`, a `street` or a `lane`: only height and shops differ."""
    pick = partial(_pick, rng)
    material = pick(["plaster", "brick", "stone", "panel"], [0.46, 0.28, 0.14, 0.12])
    modern = material == "panel"
    storey = float(rng.uniform(2.8, 3.6))
    windows = ["wide", "strip"] if modern else ["sash", "casement", "arched", "french"]
    window = pick(windows)
    wide = {"wide": 0.72, "strip": 0.94}.get(window, float(rng.uniform(0.34, 0.5)))
    bay = float(rng.uniform(3.0, 4.6)) if modern else float(rng.uniform(2.1, 3.4))
    tall = 0.78 if window == "french" else float(rng.uniform(0.48, 0.62))
    storeys = int(rng.integers(*STOREYS[kind]))
    roof = pick(["flat", "eaves", "gable", "mansard"], [0.3, 0.34, 0.2, 0.16])
    roof = "flat" if modern else roof
    shops = SHOP_SHARE[kind]
    base = pick(["shop", "house"], [shops, 1 - shops])
    base = "garage" if base == "house" and rng.random() < 0.15 else base
    return Style(
        seed=int(rng.integers(2**31)),
        material=material,
        wall=_vary(rng, pick(COLOURS["walls"][material]), 10),
        trim=pick(COLOURS["trims"]),
        frame=pick(COLOURS["frames"], [0.44, 0.16, 0.14, 0.14, 0.12]),
        door=pick(COLOURS["doors"]),
        roof=_vary(rng, pick(COLOURS["roofs"]), 8),
        shop=pick(COLOURS["shops"]),
        storeys=storeys,
        storey=storey,
        ground=storey + (float(rng.uniform(0.5, 1.2)) if base == "shop" else 0.3),
        bay=bay,
        window=window,
        window_width=bay * wide,
        window_height=storey * tall,
        lintel=pick(["none", "flat", "keystone", "hood"]) if not modern else "none",
        shutters=not modern and window != "arched" and bool(rng.random() < 0.25),
        balconies=pick(["none", "some", "all"], [0.66, 0.22, 0.12]),
        courses=bool(rng.random() < 0.45),
        quoins=not modern and bool(rng.random() < 0.3),
        base=base,
        sign=_sign(rng),
        awning=bool(rng.random() < 0.4),
        roof_kind=roof,
        roof_rise={"flat": 0.0, "mansard": 2.6}.get(roof, float(rng.uniform(2.0, 3.6))),
    )


def _pick(
    rng: np.random.Generator, options: Sequence[Any], weights: list[float] | None = None
) -> Any:
    return options[int(rng.choice(len(options), p=weights))]


def _vary(rng: np.random.Generator, colour: Colour, spread: int) -> Colour:
    shift = int(rng.integers(-spread, spread + 1))
    red, green, blue = (int(np.clip(c + shift + rng.integers(-4, 5), 20, 245)) for c in colour)
    return red, green, blue


def _sign(rng: np.random.Generator) -> str:
    start, end, trade = (str(_pick(rng, COLOURS[words])) for words in ("starts", "ends", "trades"))
    name = start + end
    return [f"{trade} {name}", name, f"{name} {trade}", trade][int(rng.integers(4))]


LOTS = {"avenue": (9.0, 18.0), "street": (7.0, 14.0), "lane": (5.5, 10.0)}
TERRACES = 0.25  # share of block edges lined with one house repeated
GAPS = 0.07  # share of lots left as a garden or a passage


@dataclass(frozen=True)
class Wall:
    """One vertical face; seen from outside, `start` is on the left.

    `look` names the texture: facade, flank (a facade round the corner), party (blank), back.
    `gable` is the rise of a triangular top, `roof_rise` and `roof_depth` the slope above the wall.
    """

    start: Doubles
    end: Doubles
    look: str
    gable: float = 0.0
    roof_rise: float = 0.0
    roof_depth: float = 0.0

    @property
    def width(self) -> float:
        """Metres from start to end."""
        return float(np.hypot(*(self.end - self.start)))


@dataclass(frozen=True)
class Building:
    """A style on a footprint, counter-clockwise from the front's left corner."""

    style: Style
    walls: tuple[Wall, ...]


def fill_edge(rng: np.random.Generator, corners: Doubles, edge: int, kind: str) -> list[Building]:
    """Line one edge of a block with buildings; the next edge's first building takes the corner."""
    start, end = corners[edge], corners[(edge + 1) % 4]
    previous = corners[edge - 1]
    length = float(np.hypot(*(end - start)))
    depth = min(11.0, 0.3 * length)
    along = (end - start) / length
    back = (previous - start) / np.hypot(*(previous - start))
    inward = np.array([-along[1], along[0]])
    terrace = draw_style(rng, kind) if rng.random() < TERRACES else None
    found, place = [], 0.0
    for number, width in enumerate(_widths(rng, length - depth, kind, terrace is not None)):
        own = rng.uniform(0.85, 1.0) * depth
        style = terrace if terrace is not None else draw_style(rng, kind)
        left, right = start + place * along, start + (place + width) * along
        place += width
        if number and rng.random() < GAPS:
            continue
        rear_left = left + own * (back if number == 0 else inward)
        footprint = np.stack([left, right, right + own * inward, rear_left])
        found.append(_raise(style, footprint, corner=number == 0))
    return found


def _widths(rng: np.random.Generator, length: float, kind: str, even: bool) -> Doubles:
    low, high = LOTS[kind]
    if even:
        count = max(2, round(length / rng.uniform(low, 0.5 * (low + high))))
        return np.full(count, length / count)
    widths = [rng.uniform(low, high)]
    while sum(widths) < length - 0.5 * low:
        widths.append(rng.uniform(low, high))
    return np.array(widths) * length / sum(widths)


def _raise(style: Style, footprint: Doubles, *, corner: bool) -> Building:
    """Stand the four walls up and give each its share of the roof."""
    looks = ("facade", "party", "back", "flank" if corner else "party")
    front = float(np.hypot(*(footprint[1] - footprint[0])))
    side = float(np.hypot(*(footprint[2] - footprint[1])))
    rise = style.roof_rise
    walls = []
    for index, look in enumerate(looks):
        start, end = footprint[index], footprint[(index + 1) % 4]
        faces_street = index % 2 == 0
        gable = slope = depth = 0.0
        if style.roof_kind == "mansard":
            slope, depth = rise, 1.3
        elif style.roof_kind != "flat" and faces_street == (style.roof_kind == "gable"):
            gable = rise
        elif style.roof_kind != "flat":
            slope, depth = rise, (side if faces_street else front) / 2
        walls.append(Wall(start, end, look, gable, slope, depth))
    return Building(style, tuple(walls))


def monument(rng: np.random.Generator, centre: Doubles) -> list[Building]:
    """A stone clock tower in the middle of a square: a shaft on a wider foot."""
    style = replace(
        draw_style(rng, "lane"),
        material="stone",
        base="house",
        roof_kind="mansard",
        roof_rise=3.2,
        storeys=5,
        balconies="none",
        window="arched",
        shutters=False,
    )
    turn = rng.uniform(0, np.pi / 2)
    found = []
    for half, storeys in ((3.4, 1), (2.3, 5)):
        angles = turn + np.pi / 4 + np.arange(4) * np.pi / 2 + np.pi
        square = centre + half * np.sqrt(2) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        part = _raise(replace(style, storeys=storeys), square, corner=True)
        walls = tuple(replace(wall, look="facade") for wall in part.walls)
        found.append(Building(part.style, walls))
    return found
