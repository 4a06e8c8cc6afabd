"""Which surface shows at each pixel, and the texel of it that does."""

# W columns · K layers · P pixels of one kind · keys: k W + column on walls, (K + k) W + column on
# roofs, SKY and GROUND elsewhere

import numpy as np
from numpy.typing import NDArray

from evenplace.city.atlas import Atlas
from evenplace.city.view import View
from evenplace.city.walls import LAYERS, Layers, Walls

Float = NDArray[np.float32]
Keys = NDArray[np.int32]
Texels = NDArray[np.uint32]

SKY, GROUND = -1, -2


def resolve(walls: Walls, view: View, layers: Layers) -> Keys:
    """Find the key of each pixel by painting layers from far to near, (W, W).

    A wall hides all that is farther and lower, so a layer is one comparison of rows.
    """
    wide = view.wide
    keys = np.full((wide, wide), SKY, np.int32)
    columns = np.arange(wide, dtype=np.int32)
    tip = np.abs(2 * layers.place / walls.width[layers.wall] - 1)
    high = walls.height[layers.wall] + walls.gable[layers.wall] * (1 - tip)
    eaves = view.row(high, layers.depth)
    ridge = view.row(walls.height[layers.wall] + layers.far_rise, layers.far)
    there = np.isfinite(layers.depth)
    sloped = there & (layers.far_rise > 0)
    horizon = int(np.ceil(view.camera.horizon(wide)))
    rows = view.rows[:horizon]
    for layer in reversed(range(LAYERS)):
        for shown, tops, number in (
            (sloped[layer], ridge[layer], LAYERS + layer),
            (there[layer], eaves[layer], layer),
        ):
            if shown.any():
                top = np.where(shown, tops, np.float32(np.inf))
                np.copyto(keys[:horizon], number * wide + columns, where=rows >= top)
    return _stand_on_ground(keys, view, layers, horizon)


def _stand_on_ground(keys: Keys, view: View, layers: Layers, horizon: int) -> Keys:
    """Below the horizon there is the nearest wall down to its foot, and then the ground."""
    columns = np.arange(view.wide, dtype=np.int32)
    there = np.isfinite(layers.depth[0])
    foot = np.where(there, view.row(np.float32(0.0), layers.depth[0]), np.float32(0.0))
    keys[horizon:] = np.where(view.rows[horizon:] < foot, columns, GROUND)
    return keys


def used_looks(keys: Keys, layers: Layers, atlas: Atlas) -> NDArray[np.int64]:
    """The numbers of all looks that show."""
    flat = keys.ravel()
    seen = np.zeros(2 * layers.wall.size, bool)
    seen[flat[flat >= 0]] = True
    on_wall, on_roof = seen[: layers.wall.size], seen[layers.wall.size :]
    number = layers.wall.ravel()
    return np.concatenate([atlas.wall_looks[number[on_wall]], atlas.roof_looks[number[on_roof]]])


def read_walls(
    key: Keys, upward: Float, walls: Walls, layers: Layers, view: View, atlas: Atlas
) -> Texels:
    """Texels of wall pixels, (P,): column and density follow from the key, the row is linear.

    The row of a pixel is (top - z) rows/top with z = camera height + upward depth.
    """
    depth, wall = layers.depth.ravel(), layers.wall.ravel()
    look = atlas.wall_looks[wall]
    level = view.level(depth, atlas.density, view.slant(walls, layers))
    rows, columns = atlas.rows[look, level], atlas.columns[look, level]
    share = np.clip(layers.place.ravel() / walls.width[wall], 0, 0.9999)
    start = atlas.starts[look, level] + (share * columns).astype(np.int64) * rows
    top = walls.height[wall] + walls.gable[wall]
    per_metre = (rows / top).astype(np.float32)
    with np.errstate(invalid="ignore"):
        first = ((top - view.camera.height) * per_metre).astype(np.float32)
        slope = (depth * per_metre).astype(np.float32)
    row = (first.take(key) - slope.take(key) * upward).astype(np.int32)
    np.clip(row, 0, (rows - 1).astype(np.int32).take(key), out=row)
    texels: Texels = atlas.texels.take(start.take(key) + row)
    return texels


def read_roofs(
    key: Keys, upward: Float, walls: Walls, layers: Layers, view: View, atlas: Atlas
) -> Texels:
    """Texels of roof pixels, (P,): where the ray of each pixel meets the slope.

    With climb c the slope is at z = eaves + c (d - depth), the ray at z = height + upward d.
    """
    wall = layers.wall.ravel()[key]
    depth, far = layers.depth.ravel()[key], layers.far.ravel()[key]
    rise = layers.far_rise.ravel()[key]
    look = atlas.roof_looks[wall]
    level = view.level(depth, atlas.density, np.full_like(depth, 0.5))
    rows, columns = atlas.rows[look, level], atlas.columns[look, level]
    run = np.maximum(far - depth, 1e-3)
    climb = rise / run
    eaves = walls.height[wall] - view.camera.height
    met = (eaves - climb * depth) / np.minimum(upward - climb, -1e-4)
    share = np.clip((met - depth) / run, 0, 1)
    up = np.clip(share * rise / np.maximum(walls.roof_rise[wall], 0.1), 0, 0.9999)
    place = layers.place.ravel()[key]
    along = (place + share * (layers.far_place.ravel()[key] - place)) / walls.width[wall]
    column = (np.clip(along, 0, 0.9999) * columns).astype(np.int64)
    row = ((1 - up) * (rows - 1)).astype(np.int64)
    texels: Texels = atlas.texels.take(atlas.starts[look, level] + column * rows + row)
    return texels
