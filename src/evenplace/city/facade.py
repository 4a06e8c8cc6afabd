"""Draws walls and roofs: masonry, rows of windows, doors, shops, cornices, tiles.

Everything is drawn once per look and then seen from everywhere; see `atlas`.
"""

import numpy as np

from evenplace.arrays import Floats
from evenplace.city.canvas import SHOP_GLASS, Canvas, shade, smooth_noise
from evenplace.city.openings import draw_ground_floor, draw_windows
from evenplace.city.style import Style


def draw_wall(style: Style, look: str, width: float, gable: float, density: float) -> Canvas:
    """Draw one face of a building, from the ground to its eaves or the tip of its gable."""
    number = ("facade", "flank", "party", "back").index(look)
    rng = np.random.default_rng([style.seed, number, round(width * 100)])
    canvas = Canvas(width, style.height + gable, density, style.wall)
    canvas.multiply(_masonry(rng, canvas, style.material if look != "party" else "party"))
    if look == "party":
        _blind_windows(rng, canvas, style)
    else:
        if look in ("facade", "flank"):
            _trim(canvas, style)
        draw_windows(rng, canvas, style, plain=look == "back")
        draw_ground_floor(rng, canvas, style, look)
        _top(canvas, style)
    canvas.multiply(_weathering(rng, canvas))
    return canvas


def draw_roof(style: Style, width: float, slope: float, density: float) -> Canvas:
    """Draw the slope above a wall: courses of tiles or slates, skylights or dormers."""
    rng = np.random.default_rng([style.seed, 9, round(width * 100)])
    canvas = Canvas(width, slope, density, style.roof)
    canvas.multiply(_courses(rng, canvas, 0.45, 0.3, 0.10, 0.80))
    count = int(width // 3.2)
    for index in range(count if style.roof_kind == "mansard" else min(count, 2)):
        x = (index + 0.5) * width / max(1, count) - 0.5
        if style.roof_kind == "mansard":
            canvas.rect(x - 0.15, 0.3, 1.3, slope * 0.66, style.trim)
            canvas.glass(x, 0.4, 1.0, slope * 0.55, (58, 68, 80), int(rng.integers(1, SHOP_GLASS)))
        elif rng.random() < 0.5:
            canvas.rect(x - 0.06, slope * 0.4 - 0.06, 0.92, 1.22, shade(style.roof, 0.6))
            canvas.glass(x, slope * 0.4, 0.8, 1.1, (90, 104, 120), int(rng.integers(1, SHOP_GLASS)))
    canvas.rect(0, 0, width, 0.16, shade(style.trim, 0.75))
    canvas.rect(0, slope - 0.14, width, 0.14, shade(style.roof, 0.72))
    canvas.multiply(_weathering(rng, canvas))
    return canvas


def _masonry(rng: np.random.Generator, canvas: Canvas, material: str) -> Floats:
    if material == "brick":
        return _courses(rng, canvas, 0.5, 0.19, 0.10, 0.82)
    if material == "stone":
        return _courses(rng, canvas, 1.1, 0.55, 0.06, 0.84)
    if material == "panel":
        return _courses(rng, canvas, 2.4, 1.6, 0.02, 0.82, bond=0.0)
    columns, rows = canvas.size
    rough = rng.standard_normal((rows, columns), np.float32)
    return rough * np.float32(0.018) + np.float32(0.86 if material == "party" else 1.0)


def _courses(
    rng: np.random.Generator,
    canvas: Canvas,
    length: float,
    height: float,
    spread: float,
    joint: float,
    *,
    bond: float = 0.5,
) -> Floats:
    """Gains of a running bond: each unit its own shade, joints at `joint`; (rows, columns)."""
    columns, rows = canvas.size
    z = np.arange(rows) / canvas.density
    x = np.arange(columns) / canvas.density
    course = np.floor(z / height).astype(int)
    shift = x[None, :] + (course[:, None] % 2) * bond * length
    unit = np.floor(shift / length).astype(int)
    shades = rng.normal(1, spread, 997).astype(np.float32)
    gains: Floats = shades[(unit * 31 + course[:, None] * 57) % 997]
    texel = 1 / canvas.density
    level = (z % height < texel)[:, None] | (shift % length < texel)
    gains[level] *= joint
    return gains


def _weathering(rng: np.random.Generator, canvas: Canvas) -> Floats:
    """Cloudy stains, dirt near the pavement and under the eaves."""
    columns, rows = canvas.size
    cells = int(canvas.width / 2.5), int(canvas.height / 2.5)
    stains = 1 + 0.05 * smooth_noise(rng, canvas.size, cells)
    streaks = 1 + 0.03 * smooth_noise(rng, (columns, 1), (int(canvas.width * 3), 1))
    z = canvas.height - np.arange(rows, dtype=np.float32) / canvas.density
    dirt = 1 - 0.22 * np.exp(-z / 0.5) - 0.1 * np.exp(-(canvas.height - z) / 0.6)
    gains: Floats = stains * streaks * dirt[:, None].astype(np.float32)
    return gains


def _trim(canvas: Canvas, style: Style) -> None:
    """String courses between storeys, quoins at the corners."""
    if style.courses:
        for storey in range(1, style.storeys):
            z = style.ground + (storey - 1) * style.storey
            canvas.rect(0, z - 0.06, canvas.width, 0.22, style.trim)
            canvas.rect(0, z - 0.14, canvas.width, 0.08, shade(style.wall, 0.72))
    if style.quoins:
        for index, z in enumerate(np.arange(0.2, style.height - 0.4, 0.45)):
            wide = 0.55 if index % 2 else 0.35
            for x in (0.0, canvas.width - wide):
                canvas.rect(x, float(z), wide, 0.4, style.trim)


def _top(canvas: Canvas, style: Style) -> None:
    """A cornice under the eaves, or the coping of a flat roof."""
    eaves = style.height
    deep = 0.5 if style.roof_kind in ("flat", "mansard") and style.material != "panel" else 0.22
    if canvas.height > eaves + 0.1:
        if style.seed % 2:
            canvas.rect(0, eaves - 0.12, canvas.width, 0.14, style.trim)
        return
    canvas.rect(0, eaves - deep, canvas.width, deep, style.trim)
    canvas.rect(0, eaves - 0.12, canvas.width, 0.06, shade(style.trim, 0.8))
    canvas.rect(0, eaves - deep - 0.16, canvas.width, 0.16, shade(style.wall, 0.62))
    if deep > 0.3:
        for x in np.arange(0.1, canvas.width - 0.2, 0.5):
            canvas.rect(float(x), eaves - deep + 0.02, 0.2, 0.16, shade(style.trim, 0.72))


def _blind_windows(rng: np.random.Generator, canvas: Canvas, style: Style) -> None:
    """A party wall: mostly blank, now and then a small window or a faded painted sign."""
    if rng.random() < 0.3 and canvas.width > 6 and style.height > 7:
        wide, z = canvas.width * 0.6, style.height * 0.5
        paint = shade(style.shop, 0.8 + 0.2 * rng.random())
        canvas.rect(canvas.width * 0.2, z, wide, 1.9, paint)
        canvas.write(canvas.width * 0.22, z + 0.3, wide * 0.95, 1.2, style.sign, style.trim)
    for storey in range(style.storeys - 1):
        if rng.random() < 0.4:
            z = style.ground + storey * style.storey + 1.0
            canvas.rect(canvas.width * 0.7 - 0.06, z - 0.06, 0.82, 1.12, style.frame)
            code = int(rng.integers(1, SHOP_GLASS))
            canvas.glass(canvas.width * 0.7, z, 0.7, 1.0, (60, 70, 80), code)
