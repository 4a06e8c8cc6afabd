"""Buildings side by side along the edge of a block, and the monument of a square."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from evenplace.arrays import Doubles
from evenplace.city.style import Style, draw_style

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


def fill_edge(
    rng: np.random.Generator,
    corners: Doubles,
    edge: int,
    kind: str,
    style_of: Callable[[np.random.Generator, str], Style],
) -> list[Building]:
    """Line one edge of a block with buildings; the next edge's first building takes the corner."""
    start, end = corners[edge], corners[(edge + 1) % 4]
    previous = corners[edge - 1]
    length = float(np.hypot(*(end - start)))
    depth = min(11.0, 0.3 * length)
    along = (end - start) / length
    back = (previous - start) / np.hypot(*(previous - start))
    inward = np.array([-along[1], along[0]])
    terrace = style_of(rng, kind) if rng.random() < TERRACES else None
    found, place = [], 0.0
    for number, width in enumerate(_widths(rng, length - depth, kind, terrace is not None)):
        own = rng.uniform(0.85, 1.0) * depth
        style = terrace if terrace is not None else style_of(rng, kind)
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
    scaled: Doubles = np.array(widths) * length / sum(widths)
    return scaled


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
