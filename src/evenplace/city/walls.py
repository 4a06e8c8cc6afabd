"""Which wall each column of the picture meets, and which surface's texel shows at each pixel.

Walls are vertical and the camera is upright, so one column sees one depth of each wall: the
whole of visibility is two-dimensional, and rows only ask which wall is tall enough.
"""

# N walls · K layers from near to far · W columns
# W columns · K layers · P pixels of one kind · keys: k W + column on walls, (K + k) W + column on
# roofs, SKY and GROUND elsewhere

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Doubles, Floats, Ints
from evenplace.city.buildings import Building
from evenplace.city.camera import Camera
from evenplace.city.canvas import Texels
from evenplace.city.facade import LEVELS, Atlas

REACH = 160.0  # metres; farther walls are lost in haze
LAYERS = 5
Keys = NDArray[np.int32]


@dataclass(frozen=True)
class Walls:
    """All walls of a town as arrays, one row a wall."""

    start: Doubles  # (N, 2)
    end: Doubles  # (N, 2)
    outward: Doubles  # (N, 2) unit normal
    width: Floats
    height: Floats
    gable: Floats
    roof_rise: Floats
    roof_depth: Floats


def gather_walls(buildings: tuple[Building, ...]) -> Walls:
    """Lay the walls of all buildings out as arrays."""
    pairs = [(building.style, wall) for building in buildings for wall in building.walls]
    start = np.array([wall.start for _, wall in pairs])
    end = np.array([wall.end for _, wall in pairs])
    width = np.hypot(*(end - start).T)
    along = (end - start) / width[:, None]
    return Walls(
        start=start,
        end=end,
        outward=np.stack([along[:, 1], -along[:, 0]], axis=1),
        width=width.astype(np.float32),
        height=np.array([style.height for style, _ in pairs], np.float32),
        gable=np.array([wall.gable for _, wall in pairs], np.float32),
        roof_rise=np.array([wall.roof_rise for _, wall in pairs], np.float32),
        roof_depth=np.array([wall.roof_depth for _, wall in pairs], np.float32),
    )


@dataclass(frozen=True)
class Layers:
    """What each column meets, nearest first; (K, W) each, depth inf where there is nothing."""

    wall: Ints  # number of the wall
    depth: Floats  # metres ahead of the camera
    place: Floats  # metres along the wall from its start
    far: Floats  # depth of the ridge of the roof, or of the wall where there is no slope
    far_place: Floats  # metres along the wall at the ridge
    far_rise: Floats  # metres above the eaves at the ridge


def cast(walls: Walls, camera: Camera, size: int) -> Layers:
    """Find the walls that show in each column of a picture `size` pixels wide."""
    near, start, end = _in_view(walls, camera)
    across, _ = camera.slopes(size)
    step = end - start
    slant = step[:, :1] - across * step[:, 1:]  # (N, W)
    slant[slant == 0] = 1e-6  # a ray along the wall
    along = (across * start[:, 1:] - start[:, :1]) / slant
    depth = start[:, 1:] + along * step[:, 1:]
    missed = (along < 0) | (along > 1) | (depth < 0.3)
    np.copyto(depth, np.inf, where=missed)
    rise = (walls.height[near] - camera.height)[:, None] / depth  # tangent of the eaves
    columns = np.arange(size)
    picked, depths, places = [], [], []
    for _ in range(LAYERS):
        first = depth.argmin(axis=0)  # (W,)
        picked.append(near[first])
        depths.append(depth[first, columns])
        places.append(along[first, columns] * walls.width[near[first]])
        np.copyto(depth, np.inf, where=rise <= rise[first, columns])
    return _with_roofs(walls, camera, np.stack(picked), np.stack(depths), np.stack(places))


def _in_view(walls: Walls, camera: Camera) -> tuple[Ints, Floats, Floats]:
    """Walls that face the camera, near enough and inside its field; their ends as it sees them."""
    east, north = camera.east - walls.start[:, 0], camera.north - walls.start[:, 1]
    facing = east * walls.outward[:, 0] + north * walls.outward[:, 1] > 0.02
    near = np.flatnonzero(facing & (np.abs(east) < REACH) & (np.abs(north) < REACH))
    start, end = camera.see(walls.start[near]), camera.see(walls.end[near])
    edge = float(np.tan(np.radians(camera.field / 2))) * 1.02
    ahead = np.maximum(start[:, 1], end[:, 1]) > 0.3
    left = (start[:, 0] < -edge * start[:, 1]) & (end[:, 0] < -edge * end[:, 1])
    right = (start[:, 0] > edge * start[:, 1]) & (end[:, 0] > edge * end[:, 1])
    kept = ahead & ~left & ~right
    if not kept.any():  # out of town: one wall behind the camera keeps the arrays in shape
        behind = np.array([[-1, -1]], np.float32)
        return np.zeros(1, np.int64), behind, behind + np.array([[2, 0]], np.float32)
    return near[kept], start[kept], end[kept]


def _with_roofs(walls: Walls, camera: Camera, wall: Ints, depth: Floats, place: Floats) -> Layers:
    """Follow each ray from the eaves up the slope to the ridge, or out at the slope's side.

    At distance b from the wall's plane the ridge, r metres behind it, is met at depth (1 + r/b).
    """
    east, north = camera.east - walls.start[:, 0], camera.north - walls.start[:, 1]
    out_east, out_north = walls.outward[:, 0], walls.outward[:, 1]
    off = (east * out_east + north * out_north).astype(np.float32)[wall]  # b
    ratio = 1 + walls.roof_depth[wall] / np.maximum(off, 0.05)
    foot = (north * out_east - east * out_north).astype(np.float32)[wall]
    drift = (place - foot) * (ratio - 1)
    room = np.where(drift > 0, walls.width[wall] - place, -place)
    share = np.clip(room / np.where(np.abs(drift) < 1e-4, 1e-4, drift), 0, 1)
    share = np.where(np.abs(drift) < 1e-4, 1, share).astype(np.float32)
    return Layers(
        wall=wall,
        depth=depth,
        place=place,
        far=(depth * (1 + (ratio - 1) * share)).astype(np.float32),
        far_place=(place + drift * share).astype(np.float32),
        far_rise=(walls.roof_rise[wall] * share).astype(np.float32),
    )


class View:
    """A camera's rays at one size, and the small sums every part needs."""

    def __init__(self, camera: Camera, wide: int) -> None:
        self.camera, self.wide = camera, wide
        self.across, self.upward = camera.slopes(wide)
        self.upward_flat = np.repeat(self.upward, wide)
        self.rows = (np.arange(wide, dtype=np.float32) + 0.5)[:, None]

    def row(self, z: Floats | np.float32, depth: Floats) -> Floats:
        """The row at which height z shows at a depth."""
        focal = self.camera.focal(self.wide)
        with np.errstate(invalid="ignore"):
            found = self.camera.horizon(self.wide) - focal * (z - self.camera.height) / depth
        return found.astype(np.float32)

    def slant(self, walls: Walls, layers: Layers) -> Floats:
        """How squarely each column meets its wall, 1 head on."""
        right, ahead = self.camera.axes()
        outward = walls.outward[layers.wall]
        ray = ahead + self.across[:, None] * right  # (W, 2)
        squarely: Floats = np.abs((outward * ray).sum(axis=-1)).ravel().astype(np.float32)
        return squarely

    def level(self, depth: Floats, density: float, slant: Floats) -> Ints:
        """Which density of the atlas suits pixels at a depth."""
        texels = density * np.minimum(depth, 1e3) / self.camera.focal(self.wide)
        texels = texels / np.sqrt(np.clip(slant, 0.08, 1))
        return np.clip(np.round(np.log2(np.maximum(texels, 1e-3))), 0, LEVELS - 1).astype(np.int64)


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


def used_looks(keys: Keys, layers: Layers, atlas: Atlas) -> Ints:
    """The numbers of all looks that show."""
    flat = keys.ravel()
    seen = np.zeros(2 * layers.wall.size, bool)
    seen[flat[flat >= 0]] = True
    on_wall, on_roof = seen[: layers.wall.size], seen[layers.wall.size :]
    number = layers.wall.ravel()
    return np.concatenate([atlas.wall_looks[number[on_wall]], atlas.roof_looks[number[on_roof]]])


def read_walls(
    key: Keys, upward: Floats, walls: Walls, layers: Layers, view: View, atlas: Atlas
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
    key: Keys, upward: Floats, walls: Walls, layers: Layers, view: View, atlas: Atlas
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
