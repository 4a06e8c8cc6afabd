"""Photos as another hour, weather, camera and traffic would show them, drawn on the pixels.

What a survey has never seen cannot be held out of it: night, rain, a bus before the house.  So
held-out photos are asked a second time with such things drawn on them.  It is no photograph of a
night, and is not meant to be: it takes away what a night takes away.

    B photos · H, W pixels
"""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageFilter

from evenplace.arrays import Bytes, Doubles, Floats, Ints
from evenplace.describe.decoding import load_batches
from evenplace.describe.describer import Describer, Progress

Light = Doubles  # 0 to 1
DARK = 0.35  # share of the photos that are taken into the night
_LAMPS = (1.0, 0.85, 0.6)  # what is left of each colour under street lamps
_BATCH = 8


def describe_relit(
    describer: Describer, paths: Sequence[str], seed: int, progress: Progress | None = None
) -> tuple[Floats, Ints]:
    """Descriptors of photos in another light, and the rows of those that could be read."""
    found, rows = [np.empty((0, sum(describer.dims)), np.float32)], [np.empty(0, np.int64)]
    dice = np.random.default_rng([seed, 24])
    for batch in load_batches(paths, describer.image_size, batch=_BATCH):
        if batch.rows:
            drawn = np.stack([relight(one, dice) for one in batch.pixels])
            found.append(describer.describe(drawn).descriptors)
            rows.append(np.array(batch.rows, np.int64))
        if progress:
            progress(min(len(paths), (batch.rows or [0])[-1] + 1), len(paths))
    return np.concatenate(found), np.concatenate(rows)


def relight(pixels: Bytes, dice: np.random.Generator) -> Bytes:
    """One photo in another light.  (3, H, W) -> the same."""
    seen: Light = pixels.astype(np.float64) / 255
    seen = _night(seen, dice) if dice.random() < DARK else _weather(seen, dice)
    if dice.random() < 0.5:
        seen = _cover(seen, dice)
    if dice.random() < 0.5:
        seen = _blur(seen, dice.uniform(0.5, 1.8))
    seen = seen + dice.normal(0, dice.uniform(0.0, 0.05), seen.shape)
    return (np.clip(seen, 0, 1) * 255).astype(np.uint8)


def _weather(seen: Light, dice: np.random.Generator) -> Light:
    """Another exposure, white balance, haze and season's colours."""
    seen = seen ** dice.uniform(0.6, 1.7) * dice.uniform(0.8, 1.2, (3, 1, 1))
    grey = seen.mean(axis=0, keepdims=True)
    seen = grey + (seen - grey) * dice.uniform(0.2, 1.2)
    return np.asarray(seen.mean() + (seen - seen.mean()) * dice.uniform(0.5, 1.2))


def _night(seen: Light, dice: np.random.Generator) -> Light:
    """A fifth of the light, warm, a sky that is dark and lamps' pools that are not."""
    high, wide = seen.shape[1:]
    dim = seen ** dice.uniform(1.0, 1.8) * dice.uniform(0.15, 0.5)
    down = np.linspace(dice.uniform(0.1, 0.6), 1.0, high)[:, None]
    across = (np.arange(wide) / wide - dice.uniform(0, 1)) / dice.uniform(0.2, 0.6)
    pool = 1 + dice.uniform(0, 1.5) * np.exp(-(across**2))[None, :]
    tint = np.array(_LAMPS)[:, None, None] ** dice.uniform(0, 1.5)
    return np.asarray(dim * down * pool * tint)


def _cover(seen: Light, dice: np.random.Generator) -> Light:
    """A bus or a passer-by: a block of one colour, up from the ground, a tenth to a third."""
    high, wide = seen.shape[1:]
    tall, broad = int(high * dice.uniform(0.3, 0.7)), int(wide * dice.uniform(0.2, 0.5))
    left = int(dice.integers(0, wide - broad + 1))
    top = int(high * 0.95) - tall
    covered = seen.copy()
    covered[:, top : top + tall, left : left + broad] = dice.uniform(0, 0.8, (3, 1, 1))
    return covered


def _blur(seen: Light, radius: float) -> Light:
    picture = Image.fromarray((np.clip(seen, 0, 1) * 255).astype(np.uint8).transpose(1, 2, 0))
    blurred = picture.filter(ImageFilter.GaussianBlur(radius))
    return np.asarray(blurred, np.float64).transpose(2, 0, 1) / 255
