"""Every wall and roof texture of a town, drawn when first seen, in one long array of texels.

Textures are stored column by column at five densities, each half the one before, so that a far
wall is read from a small picture and does not flicker.
"""

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Ints
from evenplace.city.facade import draw_roof, draw_wall
from evenplace.city.lots import Building, Wall
from evenplace.city.style import Style

LEVELS = 5
PLAIN = ("party", "back", "roof")  # too little on them to be worth the finest level
MEMORY = 64 << 20  # texels kept, 4 bytes each
TEXELS_PER_METRE = 16.0  # for a picture 224 pixels wide

Look = tuple[Style, str, float, float]


class Atlas:
    """Texels of all looks; `place` is where a look's levels start and how large they are."""

    def __init__(self, buildings: tuple[Building, ...], density: float) -> None:
        self.density = density
        self.texels = np.zeros(1 << 20, np.uint32)
        self._used = 0
        known: dict[Look, int] = {}
        self._looks: list[Look] = []
        walls, roofs = [], []
        for building in buildings:
            for wall in building.walls:
                walls.append(self._number(known, _wall_look(building.style, wall)))
                roofs.append(self._number(known, _roof_look(building.style, wall)))
        self.wall_looks = np.array(walls)  # (walls,) number of the look
        self.roof_looks = np.array(roofs)
        count = len(self._looks)
        self.drawn = np.zeros(count, bool)
        self.starts = np.zeros((count, LEVELS), np.int64)
        self.columns = np.zeros((count, LEVELS), np.int64)
        self.rows = np.zeros((count, LEVELS), np.int64)

    def _number(self, known: dict[Look, int], look: Look) -> int:
        if look not in known:
            known[look] = len(self._looks)
            self._looks.append(look)
        return known[look]

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

    def _keep(self, look: int, number: int, level: NDArray[np.uint32]) -> None:
        if self._used + level.size > len(self.texels):
            self.texels = np.concatenate([self.texels, np.zeros_like(self.texels)])
        self.texels[self._used : self._used + level.size] = level.T.ravel()
        self.starts[look, number] = self._used
        self.rows[look, number], self.columns[look, number] = level.shape
        self._used += level.size


def _wall_look(style: Style, wall: Wall) -> Look:
    return style, wall.look, round(wall.width, 2), wall.gable


def _roof_look(style: Style, wall: Wall) -> Look:
    length = float(np.hypot(wall.roof_rise, wall.roof_depth)) or 0.5
    return style, "roof", round(wall.width, 2), round(length, 2)


def _halve(level: NDArray[np.uint32]) -> NDArray[np.uint32]:
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
