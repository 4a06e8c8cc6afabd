"""From a large sharp frame to a photo: shrink, expose, add the sensor's noise."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops

from evenplace.city.camera import Camera
from evenplace.city.light import Day

TILE = 256
NOISE = {"day": 1.4, "dusk": 2.5, "night": 4.0}  # standard deviation in steps of 255


def develop(frame: NDArray[np.uint32], size: int, camera: Camera, day: Day) -> Image.Image:
    """Make the photo of a frame of packed colours; noise differs from spot to spot."""
    wide = len(frame)
    picture = Image.frombuffer("RGBX", (wide, wide), frame, "raw", "RGBX", 0, 1)
    picture = picture.resize((size, size), Image.Resampling.BOX).convert("RGB")
    exposed = picture.point(_curve(round(camera.exposure, 2)) * 3)
    left, top = int(camera.east * 100) % TILE, int(camera.north * 100) % TILE
    noise = _noise(NOISE[day.note], size).crop((left, top, left + size, top + size))
    return ImageChops.add(exposed, noise, scale=1, offset=-128)


@lru_cache(maxsize=128)
def _curve(exposure: float) -> list[int]:
    """Brightness to brightness: linear up to 0.8, then a soft shoulder."""
    value = np.arange(256) / 255 * exposure
    shoulder = 0.8 + 0.2 * (1 - np.exp(-np.maximum(value - 0.8, 0) / 0.2))
    return [int(step) for step in np.round(255 * np.where(value < 0.8, value, shoulder))]


@lru_cache(maxsize=4)
def _noise(strength: float, size: int) -> Image.Image:
    """Grey noise around 128, large enough to cut a photo from anywhere in its first TILE pixels."""
    side = TILE + size
    tile = np.random.default_rng(8).normal(128, strength, (side, side))
    return Image.fromarray(np.clip(np.round(tile), 0, 255).astype(np.uint8)).convert("RGB")
