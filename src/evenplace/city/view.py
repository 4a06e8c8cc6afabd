"""A camera's rays at one picture size, and the small sums every part of a photo needs."""

import numpy as np
from numpy.typing import NDArray

from evenplace.city.atlas import LEVELS
from evenplace.city.camera import Camera
from evenplace.city.walls import Layers, Walls

Float = NDArray[np.float32]
Int = NDArray[np.int64]


class View:
    """A camera's rays at one size, and the small sums every part needs."""

    def __init__(self, camera: Camera, wide: int) -> None:
        self.camera, self.wide = camera, wide
        self.across, self.upward = camera.slopes(wide)
        self.upward_flat = np.repeat(self.upward, wide)
        self.rows = (np.arange(wide, dtype=np.float32) + 0.5)[:, None]

    def row(self, z: Float | np.float32, depth: Float) -> Float:
        """The row at which height z shows at a depth."""
        focal = self.camera.focal(self.wide)
        with np.errstate(invalid="ignore"):
            found = self.camera.horizon(self.wide) - focal * (z - self.camera.height) / depth
        rows: Float = found.astype(np.float32)
        return rows

    def slant(self, walls: Walls, layers: Layers) -> Float:
        """How squarely each column meets its wall, 1 head on."""
        right, ahead = self.camera.axes()
        outward = walls.outward[layers.wall]
        ray = ahead + self.across[:, None] * right  # (W, 2)
        squarely: Float = np.abs((outward * ray).sum(axis=-1)).ravel().astype(np.float32)
        return squarely

    def level(self, depth: Float, density: float, slant: Float) -> Int:
        """Which density of the atlas suits pixels at a depth."""
        texels = density * np.minimum(depth, 1e3) / self.camera.focal(self.wide)
        texels = texels / np.sqrt(np.clip(slant, 0.08, 1))
        return np.clip(np.round(np.log2(np.maximum(texels, 1e-3))), 0, LEVELS - 1).astype(np.int64)
