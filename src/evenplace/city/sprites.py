"""Cars and vans in three dimensions, and trees as pictures: a trunk, branches, leaves by season.

A car's shape is a table of corners and of faces over them, made once; painting a car is then one
projection of all its corners and a few polygons.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw

from evenplace.arrays import Doubles
from evenplace.city.buildings import COLOURS, Colour
from evenplace.city.canvas import Easel, shade

Point = tuple[float, float, float]  # metres forward, to the left, up
Box = tuple[float, float, float, float]  # rear, front, half width, z

PAINTS, LEAVES = COLOURS["cars"], COLOURS["leaves"]
GLASS, TYRE, HUB = (44, 50, 58), (26, 26, 28), (150, 152, 156)
HEAD, TAIL, PLATE, SNOW = (226, 226, 214), (150, 26, 24), (224, 222, 206), (236, 238, 242)
VARIETIES = 6


@dataclass(frozen=True)
class Face:
    """Corners from `first` to `last`, counter-clockwise from outside; no colour is the paint."""

    first: int
    last: int
    colour: Colour | None
    gain: float
    lid: bool = False
    fine: bool = False  # left out when the car is far


class _Shape:
    """Collects corners and faces."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.faces: list[Face] = []

    def face(self, points: list[Point], colour: Colour | None, gain: float, **kind: bool) -> None:
        first = len(self.points)
        self.points += points
        self.faces.append(Face(first, len(self.points), colour, gain, **kind))

    def prism(self, low: Box, high: Box, colour: Colour | None) -> None:
        """A box that narrows upwards."""
        (a0, a1, ah, az), (b0, b1, bh, bz) = low, high
        base = [(a0, -ah, az), (a1, -ah, az), (a1, ah, az), (a0, ah, az)]
        lid = [(b0, -bh, bz), (b1, -bh, bz), (b1, bh, bz), (b0, bh, bz)]
        for side, gain in enumerate((0.86, 0.95, 0.8, 0.74)):
            after = (side + 1) % 4
            self.face([base[side], base[after], lid[after], lid[side]], colour, gain)
        self.face(lid, None, 1.12, lid=True)

    def wheel(self, centre: float, side: float, half: float) -> None:
        """A tyre and its hub."""
        turns = np.linspace(0, 2 * np.pi, 10, endpoint=False)
        for radius, colour in ((0.34, TYRE), (0.19, HUB)):
            ring = [
                (centre - side * radius * float(np.cos(turn)), side * (half + 0.01),
                 0.33 + radius * float(np.sin(turn)))
                for turn in turns
            ]  # fmt: skip
            self.face(ring, colour, 0.9, fine=colour == HUB)

    def lamps(self, rear: float, front: float, half: float) -> None:
        """Head lamps, tail lamps and number plates."""
        for side in (-1.0, 1.0):
            y0, y1 = sorted((side * (half - 0.08), side * (half - 0.42)))
            ahead = [(front, y0, 0.58), (front, y1, 0.58), (front, y1, 0.72), (front, y0, 0.72)]
            behind = [(rear, y1, 0.58), (rear, y0, 0.58), (rear, y0, 0.76), (rear, y1, 0.76)]
            self.face(ahead, HEAD, 1.0, fine=True)
            self.face(behind, TAIL, 1.0, fine=True)
        for x, y in ((front, -0.26), (rear, 0.26)):
            plate = [(x, y, 0.42), (x, -y, 0.42), (x, -y, 0.53), (x, y, 0.53)]
            self.face(plate, PLATE, 0.9, fine=True)


@lru_cache(maxsize=4)
def car_shape(kind: int) -> tuple[Doubles, tuple[Face, ...]]:
    """The corners (n, 3) and faces of a hatchback (0), a saloon (1) or a van (2)."""
    length, half, waist, top = (4.9, 0.95, 1.15, 2.1) if kind == 2 else (4.2, 0.86, 0.86, 1.44)
    rear, front = ((-0.46, 0.16), (-0.36, 0.2), (-0.5, 0.24))[kind]
    x0, x1 = -length / 2, length / 2
    shape = _Shape()
    shape.prism((x0, x1, half, 0.28), (x0 + 0.05, x1 - 0.1, half - 0.04, waist), None)
    for side in (-1.0, 1.0):
        for centre in (x0 + 0.75, x1 - 0.8):
            shape.wheel(centre, side, half)
    shape.lamps(x0, x1, half)
    low = (rear * length, (front + 0.1) * length, half - 0.06, waist)
    high = ((rear + 0.05) * length, front * length - 0.35, half - 0.2, top)
    shape.prism(low, high, None if kind == 2 else GLASS)
    if kind == 2:
        _van_glass(shape, low, high)
    return np.array(shape.points), tuple(shape.faces)


def _van_glass(shape: _Shape, low: Box, high: Box) -> None:
    (_, a1, ah, az), (_, b1, bh, bz) = low, high
    shape.face([(a1, -ah, az), (a1, ah, az), (b1, bh, bz), (b1, -bh, bz)], GLASS, 1.0)
    for side in (-1.0, 1.0):
        corners = [(a1 - 1.1, az), (a1 - 0.2, az), (b1 - 0.1, bz - 0.3), (b1 - 0.9, bz - 0.3)]
        window = [(x, side * (ah if z == az else bh + 0.04), z) for x, z in corners]
        shape.face(window if side < 0 else window[::-1], GLASS, 1.0)


def draw_car(easel: Easel, slot: Doubles, make: int, light: Doubles, *, snow: bool) -> None:
    """Paint the car parked in a slot (east, north, direction); `make` chooses shape and paint."""
    points, faces = car_shape(2 if make % 7 == 0 else make % 2)
    paint = PAINTS[make // 7 % len(PAINTS)]
    shadow = _project(easel, slot, _shadow(points))
    easel.polygon([value for corner in shadow for value in corner], (14, 14, 18), shadow=True)
    pixels = _project(easel, slot, points)
    far = abs(pixels[0][0] - pixels[2][0]) + abs(pixels[0][1] - pixels[-1][1]) < 24
    for face in faces:
        if far and face.fine:
            continue
        corners = pixels[face.first : face.last]
        if _area(corners) <= 0:
            continue
        colour = SNOW if face.lid and snow else face.colour or paint
        red, green, blue = (
            min(255, int(c * face.gain * tone)) for c, tone in zip(colour, light, strict=True)
        )
        outline = [value for corner in corners for value in corner]
        easel.polygon(outline, (red, green, blue))


def _shadow(points: Doubles) -> Doubles:
    (x0, y0, _), (x1, y1, _) = points.min(axis=0) - 0.1, points.max(axis=0) + 0.1
    return np.array([(x0, y0, 0), (x1, y0, 0), (x1, y1, 0), (x0, y1, 0)])


def _project(easel: Easel, slot: Doubles, points: Doubles) -> list[list[float]]:
    """Corners (n, 3) in the car's own axes to pixels."""
    forward, left = slot[2:], np.array([-slot[3], slot[2]])
    seen = easel.camera.see(slot[:2] + points[:, :1] * forward + points[:, 1:2] * left)
    seen[:, 1] = np.maximum(seen[:, 1], 0.5)
    pixels: list[list[float]] = easel.camera.project(
        seen, points[:, 2].astype(np.float32), easel.size
    ).tolist()
    return pixels


def _area(corners: list[list[float]]) -> float:
    """Twice the area on the picture, positive for a face turned to the camera (rows grow down)."""
    total = 0.0
    x, y = corners[-1]
    for following in corners:
        total -= x * following[1] - following[0] * y
        x, y = following
    return total


WIDE, HIGH = 220, 280


def tree_sprites(
    variety: int, season: str, snow: bool, light: tuple[float, float, float]
) -> list[Image.Image]:
    """One of the trees in a day's light, in four sizes, each half the one before."""
    gains = [*light, 1.0]
    table = [min(255, int(value * gain)) for gain in gains for value in range(256)]
    full = _grow(variety, season, snow).point(table)
    return [full, *(_shrink(full, times) for times in (2, 4, 8))]


def _shrink(picture: Image.Image, times: int) -> Image.Image:
    """Shrink, keeping every spot that was covered by a quarter or more."""
    small = picture.convert("RGBa").reduce(times).convert("RGBA")
    small.putalpha(small.getchannel("A").point([255 * (value > 64) for value in range(256)]))
    return small


@lru_cache(maxsize=64)
def _grow(variety: int, season: str, snow: bool) -> Image.Image:
    """Draw one tree in white light; in winter it is bare."""
    rng = np.random.default_rng([variety, 5])
    picture = Image.new("RGBA", (WIDE, HIGH), (0, 0, 0, 0))
    brush = ImageDraw.Draw(picture)
    tips: list[tuple[float, float]] = []
    slim = variety % 3 == 2
    trunk = [WIDE / 2, HIGH - 1.0, -np.pi / 2 + rng.normal(0, 0.03), HIGH * 0.3, 7.5]
    _branch(rng, brush, trunk, 0, tips, 0.34 if slim else 0.52, snow)
    if season != "winter":
        _leaf(rng, brush, tips, LEAVES[season][variety % 3])
    return picture


def _branch(
    rng: np.random.Generator,
    brush: ImageDraw.ImageDraw,
    limb: list[float],
    order: int,
    tips: list[tuple[float, float]],
    spread: float,
    snow: bool,
) -> None:
    """Draw a limb (x, y, angle, length, thickness) and the smaller ones it forks into."""
    x, y, angle, length, thick = limb
    end = x + length * np.cos(angle), y + length * np.sin(angle)
    bark = (92, 80, 70) if order < 2 else (84, 74, 66)
    brush.line((x, y, *end), fill=(*bark, 255), width=max(1, round(thick)))
    if snow and order > 1:
        brush.line((x, y - 1, end[0], end[1] - 1), fill=(226, 228, 232, 255), width=1)
    if order >= 2:
        tips.append((float(end[0]), float(end[1])))
    if order == 5:
        return
    for fork in range(2 if order else 4):
        side = (fork - 0.5 if order else fork - 1.5) * 2 / (1 if order else 2)
        turned = 0.85 * (angle + np.pi / 2) - np.pi / 2 + side * spread * rng.uniform(0.6, 1.2)
        child = [*end, turned, length * rng.uniform(0.62, 0.8) * (0.8 if order == 0 else 1),
                 thick * 0.62]  # fmt: skip
        _branch(rng, brush, child, order + 1, tips, spread, snow)


def _leaf(
    rng: np.random.Generator,
    brush: ImageDraw.ImageDraw,
    tips: list[tuple[float, float]],
    colour: Colour,
) -> None:
    """Clumps of leaves round the tips: dark ones first, those towards the light last."""
    spots = np.repeat(np.array(tips), 5, axis=0)
    spots = spots + rng.normal(0, 9, spots.shape)
    low, high = spots[:, 1].max(), spots[:, 1].min()
    bright = (low - spots[:, 1]) / (low - high) + rng.normal(0, 0.22, len(spots))
    for index in np.argsort(bright):
        x, y = spots[index]
        gain = 0.55 + 0.6 * float(np.clip(bright[index], 0, 1))
        radius = rng.uniform(2.6, 5.2)
        fill = (*shade(colour, gain * rng.uniform(0.9, 1.1)), 255)
        brush.ellipse((x - radius, y - radius * 0.8, x + radius, y + radius * 0.8), fill=fill)
