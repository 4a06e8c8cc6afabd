"""Walls and roofs: masonry, rows of windows, doors, shops, cornices, tiles.

Everything is drawn once a look, when first seen, and kept in one long array of texels.  Textures
are stored column by column at five densities, each half the one before, so that a far wall is read
from a small picture and does not flicker.
"""

import numpy as np

from evenplace.arrays import Floats, Ints
from evenplace.city.buildings import Building, Style
from evenplace.city.canvas import Canvas, Texels, shade, smooth_noise
from evenplace.city.openings import draw_ground_floor, draw_windows, pane

LEVELS = 5
PLAIN = ("party", "back", "roof")  # too little on them to be worth the finest level
MEMORY = 64 << 20  # texels kept, 4 bytes each
TEXELS_PER_METRE = 16.0  # for a picture 224 pixels wide

Look = tuple[Style, str, float, float]


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
            canvas.glass(x, 0.4, 1.0, slope * 0.55, (58, 68, 80), pane(rng))
        elif rng.random() < 0.5:
            canvas.rect(x - 0.06, slope * 0.4 - 0.06, 0.92, 1.22, shade(style.roof, 0.6))
            canvas.glass(x, slope * 0.4, 0.8, 1.1, (90, 104, 120), pane(rng))
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
            canvas.glass(canvas.width * 0.7, z, 0.7, 1.0, (60, 70, 80), pane(rng))


class Atlas:
    """Texels of all looks; `place` is where a look's levels start and how large they are."""

    def __init__(self, buildings: tuple[Building, ...], density: float) -> None:
        self.density = density
        self.texels = np.zeros(1 << 20, np.uint32)
        self._used = 0
        known: dict[Look, int] = {}
        walls, roofs = [], []
        for style, wall in ((one.style, wall) for one in buildings for wall in one.walls):
            width, slope = round(wall.width, 2), np.hypot(wall.roof_rise, wall.roof_depth) or 0.5
            roof = (style, "roof", width, round(float(slope), 2))
            walls.append(known.setdefault((style, wall.look, width, wall.gable), len(known)))
            roofs.append(known.setdefault(roof, len(known)))
        self._looks = list(known)
        self.wall_looks = np.array(walls)  # (walls,) number of the look
        self.roof_looks = np.array(roofs)
        count = len(self._looks)
        self.drawn = np.zeros(count, bool)
        self.starts = np.zeros((count, LEVELS), np.int64)
        self.columns = np.zeros((count, LEVELS), np.int64)
        self.rows = np.zeros((count, LEVELS), np.int64)

    def need(self, looks: Ints) -> None:
        """Draw those of the looks that are not there; when memory is full, start afresh."""
        if self._used > MEMORY:
            self.drawn[:] = False
            self._used = 0
        for look in np.unique(looks[~self.drawn[looks]]):
            self._draw(int(look))

    def _draw(self, look: int) -> None:
        """Draw a look at every density; plain ones lack the finest and use the next for it."""
        style, kind, width, height = self._looks[look]
        plain = kind in PLAIN
        density = self.density / 2 if plain else self.density
        if kind == "roof":
            canvas = draw_roof(style, width, height, density)
        else:
            canvas = draw_wall(style, kind, width, height, density)
        level = canvas.texels()
        for number in range(int(plain), LEVELS):
            self._keep(look, number, level)
            level = _halve(level)
        if plain:
            for table in (self.starts, self.rows, self.columns):
                table[look, 0] = table[look, 1]
        self.drawn[look] = True

    def _keep(self, look: int, number: int, level: Texels) -> None:
        if self._used + level.size > len(self.texels):
            self.texels = np.concatenate([self.texels, np.zeros_like(self.texels)])
        self.texels[self._used : self._used + level.size] = level.T.ravel()
        self.starts[look, number] = self._used
        self.rows[look, number], self.columns[look, number] = level.shape
        self._used += level.size


def _halve(level: Texels) -> Texels:
    """Average the colours of 2 x 2 texels; a pane's code cannot be averaged and is picked."""
    rows, columns = (max(2, length - length % 2) for length in level.shape)
    if min(level.shape) < 4:
        return level
    parts = np.ascontiguousarray(level[:rows, :columns]).view(np.uint8)
    parts = parts.reshape(rows, columns, 4).astype(np.uint16)
    pairs = parts[::2] + parts[1::2]
    mean = ((pairs[:, ::2] + pairs[:, 1::2]) >> 2).astype(np.uint8)
    mean[:, :, 3] = parts[::2, ::2, 3]
    return np.ascontiguousarray(mean).view(np.uint32)[:, :, 0]
