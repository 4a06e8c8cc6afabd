"""Days: sun, sky, shadows, haze, season and weather, for the survey's passes and the queries."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from evenplace.arrays import Floats
from evenplace.city.buildings import Building
from evenplace.city.canvas import smooth_noise
from evenplace.photos.files import shipped_tables

Tone = tuple[float, float, float]
CLEAR: dict[str, Tone] = {"zenith": (0.33, 0.53, 0.82), "skyline": (0.74, 0.84, 0.93)}
PALE: dict[str, Tone] = {"zenith": (0.52, 0.66, 0.84), "skyline": (0.86, 0.89, 0.91)}
AROUND = 1080  # columns of the panorama: a third of a degree each
ABOVE = 320  # rows of the panorama
TOP = 1.9  # tangent of the highest elevation in it
_DAYS = shipped_tables("city/days.toml")


@dataclass(frozen=True)
class Day:
    """One outing's light and weather; `number` tells days apart and seeds what moves."""

    number: int
    date: str  # YYYYMM
    note: str  # day, dusk or night
    season: str  # summer, autumn, winter or spring
    ground: str  # dry, wet or snow
    sun_azimuth: float  # degrees clockwise from north
    sun_height: float  # degrees above the horizon
    sun: Tone  # light of the sun on a wall it faces
    ambient: Tone
    zenith: Tone  # sky colours, 0..1
    skyline: Tone
    clouds: float  # 0 clear .. 1 overcast
    haze: float  # metres over which contrast falls to 1/e
    lit_windows: float  # share of panes with a lamp behind them
    lamps: float  # light of the street lamps

    @property
    def sun_direction(self) -> tuple[float, float]:
        """Unit vector (east, north) towards the sun."""
        turn = np.radians(self.sun_azimuth)
        return float(np.sin(turn)), float(np.cos(turn))


def survey_days() -> tuple[Day, ...]:
    """The passes of the survey."""
    return tuple(map(_day, _DAYS["survey"]))


def query_days() -> tuple[Day, ...]:
    """The days of the queries."""
    return tuple(map(_day, _DAYS["queries"]))


def _day(row: dict[str, Any]) -> Day:
    told = {**_DAYS["light"][row["light"]], **row}
    if told.pop("light") == "sunny":
        told |= _sunshine(told["sun_height"], told["clouds"])
    return Day(**told)


def _sunshine(height: float, clouds: float) -> dict[str, Tone]:
    """A low sun is warm, and one behind clouds is weak."""
    warm = 1.0 - 0.16 * (1 - min(1.0, (height - 15) / 40))
    strength = 0.74 - 0.25 * clouds
    sun = (strength * 1.04, strength * (0.5 + 0.5 * warm), strength * warm * 0.9)
    return {"sun": sun, **(CLEAR if clouds < 0.4 else PALE)}


def draw_sky(day: Day, seed: int) -> Floats:
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


def _clouds(rng: np.random.Generator, upward: Floats, cover: float) -> Floats:
    """How much cloud hides the blue; streets of clouds crowd together towards the horizon."""
    field = np.zeros((ABOVE, AROUND), np.float32)
    for octave, weight in enumerate((0.55, 0.27, 0.13, 0.07)):
        field += weight * smooth_noise(rng, (AROUND, ABOVE), (9 << octave, 12 << octave))
    field = _closed(field)
    squeezed = ABOVE - 1 - ((ABOVE - 1) * (upward / TOP) ** 0.6).astype(int)
    edge = 0.55 - 1.1 * cover
    cover_all: Floats = np.clip((field[squeezed] - edge) * 3.2, 0, 0.94)
    return cover_all


def _closed(field: Floats) -> Floats:
    """Make the panorama's first column follow its last."""
    blend = np.linspace(0, 1, 120, dtype=np.float32)
    field[:, :120] = field[:, :120] * blend + field[:, -120:][:, ::-1] * (1 - blend)
    return field


def _hills(sky: Floats, day: Day, seed: int) -> Floats:
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

    def reach(self, east: Floats, north: Floats) -> Floats:
        """The shadow's height at positions, 0 outside the town."""
        side = len(self.heights)
        column, row = np.floor(east).astype(np.int64), np.floor(north).astype(np.int64)
        inside = (column >= 0) & (row >= 0) & (column < side) & (row < side)
        found = self.heights[np.where(inside, row, 0), np.where(inside, column, 0)]
        return np.where(inside, found, 0).astype(np.float32)

    def sunlight(self, east: Floats, north: Floats) -> Floats:
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
        blended: Floats = below * (1 - up) + above * up
        return blended


def _sweep(base: Floats, day: Day) -> Floats:
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
