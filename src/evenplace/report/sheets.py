"""The maps of several cities beside each other on one drawing, each in its own metres.

# C places · P points · M maps
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenplace.places.table import Places

Floats = NDArray[np.float64]
GAP = 0.08  # of the largest map, between two


@dataclass(frozen=True)
class Sheets:
    """How far each map is moved; nothing moves where there is one."""

    boxes: Floats  # (M, 4) west, south, east, north of its places
    zones: NDArray[np.int64]  # (M,)
    moves: Floats  # (M, 2)
    home: NDArray[np.int32]  # (C,)

    def outlines(self, corners: Floats) -> Floats:
        """The corners of all places on the drawing: (C, V, 2) -> (C, V, 2)."""
        moved: Floats = corners + self.moves[self.home][:, None]
        return moved

    def points(self, positions: Floats, zones: NDArray[np.integer]) -> Floats:
        """Positions on the drawing, beside the nearest map of their zone: (P, 2) -> (P, 2)."""
        if len(self.moves) == 1:
            return positions
        west, south, east, north = self.boxes.T
        x, y = positions[:, :1], positions[:, 1:]
        beside = np.maximum(np.maximum(west - x, x - east), 0)
        above = np.maximum(np.maximum(south - y, y - north), 0)
        away = np.hypot(beside, above) + np.where(self.zones == zones[:, None], 0, 1e12)  # (P, M)
        moved: Floats = positions + self.moves[away.argmin(axis=1)]
        return moved


def lay_out(places: Places) -> Sheets:
    """Put the maps into rows, as many in a row as rows; the first stays where it is."""
    corners, count = places.outlines, len(places.maps)
    boxes = np.zeros((count, 4))
    for number in np.unique(places.home):
        mine = corners[places.home == number].reshape(-1, 2)
        boxes[number] = [*mine.min(axis=0), *mine.max(axis=0)]
    sides = boxes[:, 2:] - boxes[:, :2]
    step = sides.max(axis=0) * (1 + GAP)
    across = int(np.ceil(np.sqrt(count)))
    at = np.stack([np.arange(count) % across, -(np.arange(count) // across)], axis=1)
    moves = boxes[0, :2] + at * step - boxes[:, :2]
    zones = np.array([one.zone for one in places.maps])
    return Sheets(boxes, zones, moves if count > 1 else np.zeros((1, 2)), places.home)
