"""The sky all round, its clouds, the hills beyond the town, and the shadows its sun leaves."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from evenplace.city.canvas import smooth_noise
from evenplace.city.light import Day
from evenplace.city.lots import Building

Float = NDArray[np.float32]

AROUND = 1080  # columns of the panorama: a third of a degree each
ABOVE = 320  # rows of the panorama
TOP = 1.9  # tangent of the highest elevation in it


def draw_sky(day: Day, seed: int) -> Float:
    """Draw the panorama of a day, (ABOVE, AROUND, 4) in 0..255; its last row is the horizon."""
    rng = np.random.default_rng([seed, 2, day.number])
    upward = np.linspace(TOP, 0, ABOVE, dtype=np.float32)
    mix = np.exp(-upward / 0.42)[:, None, None]
    sky = np.array(day.zenith) * (1 - mix) + np.array(day.skyline) * mix
    cover = _clouds(rng, upward, day.clouds)[:, :, None]
    bright = np.array(day.skyline) * (1.12 if day.note == "day" else 0.8)
    shaded = 0.5 * (bright + np.array(day.zenith)) * 0.94
    under = _closed(smooth_noise(rng, (AROUND, ABOVE), (48, 30)))[:, :, None] * 0.5 + 0.5
    sky = sky * (1 - cover) + cover * (bright * under + shaded * (1 - under))
    sky = _hills(sky.astype(np.float32), day, seed)
    return np.concatenate([255 * sky, np.zeros_like(sky[:, :, :1])], axis=2)


def _clouds(rng: np.random.Generator, upward: Float, cover: float) -> Float:
    """How much cloud hides the blue; streets of clouds crowd together towards the horizon."""
    field = np.zeros((ABOVE, AROUND), np.float32)
    for octave, weight in enumerate((0.55, 0.27, 0.13, 0.07)):
        field += weight * smooth_noise(rng, (AROUND, ABOVE), (9 << octave, 12 << octave))
    field = _closed(field)
    squeezed = ABOVE - 1 - ((ABOVE - 1) * (upward / TOP) ** 0.6).astype(int)
    edge = 0.55 - 1.1 * cover
    cover_all: Float = np.clip((field[squeezed] - edge) * 3.2, 0, 0.94)
    return cover_all


def _closed(field: Float) -> Float:
    """Make the panorama's first column follow its last."""
    blend = np.linspace(0, 1, 120, dtype=np.float32)
    field[:, :120] = field[:, :120] * blend + field[:, -120:][:, ::-1] * (1 - blend)
    return field


def _hills(sky: Float, day: Day, seed: int) -> Float:
    """Two ridges beyond the last street, the same on every day."""
    rng = np.random.default_rng([seed, 3])
    upward = np.linspace(TOP, 0, ABOVE, dtype=np.float32)[:, None]
    azimuth = np.linspace(0, 2 * np.pi, AROUND, dtype=np.float32)
    light = np.array(day.ambient) + 0.5 * np.array(day.sun)
    for height, colour, fade in ((0.075, (0.42, 0.5, 0.52), 0.6), (0.045, (0.3, 0.38, 0.28), 0.35)):
        ridge = np.full(AROUND, height)
        for wave in range(1, 12):
            ridge += height * 0.5 / wave * np.sin(wave * azimuth + rng.uniform(0, 2 * np.pi))
        green = np.array((0.85, 0.87, 0.9) if day.ground == "snow" else colour)
        tone = (green * light) * (1 - fade) + np.array(day.skyline) * fade
        sky = np.where((upward < ridge)[:, :, None], tone, sky)
    return sky.astype(np.float32)


class Shadows:
    """How high the shadow reaches at every metre of the town: 0 in the sun.

    A point at height z is in shadow when some building towards the sun stands higher than
    z + distance * tan(sun height).
    """

    def __init__(self, buildings: tuple[Building, ...], extent: float, day: Day) -> None:
        side = int(extent) + 1
        heights = Image.new("F", (side, side), 0.0)
        brush = ImageDraw.Draw(heights)
        for building in buildings:
            outline = [tuple(wall.start) for wall in building.walls]
            top = building.style.height + 0.5 * building.style.roof_rise
            brush.polygon(outline, fill=top)
        base = np.asarray(heights, np.float32)
        self.heights = _sweep(base, day)  # (side, side), rows run north
        ground = np.clip(self.heights / 1.2, 0, 1)
        self.lit = np.ascontiguousarray(1 - ground)

    def reach(self, east: Float, north: Float) -> Float:
        """The shadow's height at positions, 0 outside the town."""
        return _sample(self.heights, east, north)

    def sunlight(self, east: Float, north: Float) -> Float:
        """Share of the sun that reaches the ground, blended between metres."""
        column, row = np.floor(east - 0.5), np.floor(north - 0.5)
        right, up = east - 0.5 - column, north - 0.5 - row
        limit = len(self.lit) - 2
        at = np.clip(row, 0, limit).astype(np.int32) * len(self.lit) + np.clip(
            column, 0, limit
        ).astype(np.int32)
        flat = self.lit.ravel()
        below = flat[at] * (1 - right) + flat[at + 1] * right
        above = flat[at + len(self.lit)] * (1 - right) + flat[at + len(self.lit) + 1] * right
        blended: Float = below * (1 - up) + above * up
        return blended


def _sweep(base: Float, day: Day) -> Float:
    """Pull every roof along the ground away from the sun, lower and lower."""
    east, north = day.sun_direction
    fall = float(np.tan(np.radians(day.sun_height)))
    reach = np.zeros_like(base)
    side = len(base)
    for distance in np.arange(0.0, float(base.max()) / fall, 1.2):
        right, up = round(east * distance), round(north * distance)
        rows = slice(max(0, -up), side - max(0, up)), slice(max(0, up), side - max(0, -up))
        columns = (
            slice(max(0, -right), side - max(0, right)),
            slice(max(0, right), side - max(0, -right)),
        )
        target = reach[rows[0], columns[0]]
        np.maximum(target, base[rows[1], columns[1]] - distance * fall, out=target)
    return reach


def _sample(field: Float, east: Float, north: Float) -> Float:
    side = len(field)
    column, row = np.floor(east).astype(np.int64), np.floor(north).astype(np.int64)
    inside = (column >= 0) & (row >= 0) & (column < side) & (row < side)
    found = field[np.where(inside, row, 0), np.where(inside, column, 0)]
    return np.where(inside, found, 0).astype(np.float32)
