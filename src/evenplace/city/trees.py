"""Trees as pictures: a trunk, branches, and leaves by season."""

from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw

from evenplace.city.canvas import shade
from evenplace.city.style import Colour

WIDE, HIGH = 220, 280
VARIETIES = 6
LEAVES: dict[str, list[Colour]] = {
    "spring": [(122, 150, 76), (136, 158, 84), (150, 160, 100)],
    "summer": [(84, 116, 58), (96, 124, 62), (74, 106, 60)],
    "autumn": [(186, 128, 52), (170, 96, 46), (150, 136, 66)],
    "winter": [(0, 0, 0)],
}


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
