"""A camera that stands upright: verticals stay vertical, a raised view is a shifted lens.

    column = W/2 + F X/Y,    row = horizon - F (z - height)/Y

with X metres to the right of the camera, Y metres ahead of it and z metres above the ground.
"""

from dataclasses import dataclass

import numpy as np

from evenplace.arrays import Doubles, Floats


@dataclass(frozen=True)
class Camera:
    """Where it stands (metres), where it looks (degrees clockwise from north), and its lens."""

    east: float
    north: float
    heading: float
    height: float = 1.7
    field: float = 75.0  # degrees from the left edge to the right
    pitch: float = 6.0  # degrees by which the centre of the picture is above the horizon
    exposure: float = 1.0

    def focal(self, size: int) -> float:
        """The focal length in pixels of a picture `size` pixels wide."""
        return size / 2 / float(np.tan(np.radians(self.field / 2)))

    def horizon(self, size: int) -> float:
        """The row of the horizon in a square picture."""
        return size / 2 + self.focal(size) * float(np.tan(np.radians(self.pitch)))

    def axes(self) -> tuple[Doubles, Doubles]:
        """Unit vectors (east, north) to the right and ahead."""
        turn = np.radians(self.heading)
        return np.array([np.cos(turn), -np.sin(turn)]), np.array([np.sin(turn), np.cos(turn)])

    def see(self, points: Doubles) -> Floats:
        """Ground positions (..., 2) in metres to the right and ahead of the camera (..., 2)."""
        right, ahead = self.axes()
        moved = points - np.array([self.east, self.north])
        return np.stack([moved @ right, moved @ ahead], axis=-1).astype(np.float32)

    def project(self, seen: Floats, z: Floats | float, size: int) -> Floats:
        """Pixels (column, row) of points `see` returned, z metres above the ground."""
        scale = self.focal(size) / seen[..., 1]
        column = size / 2 + seen[..., 0] * scale
        row = self.horizon(size) - (z - self.height) * scale
        return np.stack([column, row], axis=-1)

    def slopes(self, size: int) -> tuple[Floats, Floats]:
        """Each column's X/Y and each row's (z - height)/Y, at the pixels' centres."""
        middle = np.arange(size, dtype=np.float32) + 0.5
        across = (middle - size / 2) / self.focal(size)
        upward = (self.horizon(size) - middle) / self.focal(size)
        return across.astype(np.float32), upward.astype(np.float32)
