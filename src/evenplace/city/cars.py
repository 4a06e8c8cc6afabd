"""A car or a van in three dimensions: a body, a cabin that narrows upwards, wheels, lamps.

A shape is a table of corners and of faces over them, made once; painting a car is then one
projection of all its corners and a few polygons.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evenplace.city.camera import Camera
from evenplace.city.style import Colour

Point = tuple[float, float, float]  # metres forward, to the left, up
Box = tuple[float, float, float, float]  # rear, front, half width, z

PAINTS: list[Colour] = [
    (196, 198, 200), (58, 60, 64), (150, 154, 158), (120, 32, 32), (38, 56, 92), (222, 222, 218),
    (72, 84, 78), (96, 82, 66), (34, 34, 38), (150, 122, 60),
]  # fmt: skip
GLASS, TYRE, HUB = (44, 50, 58), (26, 26, 28), (150, 152, 156)
HEAD, TAIL, PLATE, SNOW = (226, 226, 214), (150, 26, 24), (224, 222, 206), (236, 238, 242)


class Surface(Protocol):
    """What a car is painted on."""

    camera: Camera
    size: int

    def polygon(self, outline: list[float], colour: Colour, *, shadow: bool = False) -> None:
        """Fill a polygon given in pixels."""


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

    def face(
        self,
        points: list[Point],
        colour: Colour | None,
        gain: float,
        *,
        lid: bool = False,
        fine: bool = False,
    ) -> None:
        first = len(self.points)
        self.points += points
        self.faces.append(Face(first, len(self.points), colour, gain, lid, fine))

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
def car_shape(kind: int) -> tuple[NDArray[np.float64], tuple[Face, ...]]:
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


def draw_car(
    easel: Surface, slot: NDArray[np.float64], make: int, light: NDArray[np.float64], *, snow: bool
) -> None:
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


def _shadow(points: NDArray[np.float64]) -> NDArray[np.float64]:
    (x0, y0, _), (x1, y1, _) = points.min(axis=0) - 0.1, points.max(axis=0) + 0.1
    return np.array([(x0, y0, 0), (x1, y0, 0), (x1, y1, 0), (x0, y1, 0)])


def _project(
    easel: Surface, slot: NDArray[np.float64], points: NDArray[np.float64]
) -> list[list[float]]:
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
