"""Which wall each column of the picture meets, how far away, and what rises behind it.

Walls are vertical and the camera is upright, so one column sees one depth of each wall: the
whole of visibility is two-dimensional, and rows only ask which wall is tall enough.
"""

# N walls · K layers from near to far · W columns

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenplace.city.camera import Camera
from evenplace.city.lots import Building

Float = NDArray[np.float32]
Int = NDArray[np.int64]

REACH = 160.0  # metres; farther walls are lost in haze
LAYERS = 5


@dataclass(frozen=True)
class Walls:
    """All walls of a town as arrays, one row a wall."""

    start: NDArray[np.float64]  # (N, 2)
    end: NDArray[np.float64]  # (N, 2)
    outward: NDArray[np.float64]  # (N, 2) unit normal
    width: Float
    height: Float
    gable: Float
    roof_rise: Float
    roof_depth: Float


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

    wall: Int  # number of the wall
    depth: Float  # metres ahead of the camera
    place: Float  # metres along the wall from its start
    far: Float  # depth of the ridge of the roof, or of the wall where there is no slope
    far_place: Float  # metres along the wall at the ridge
    far_rise: Float  # metres above the eaves at the ridge


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


def _in_view(walls: Walls, camera: Camera) -> tuple[Int, Float, Float]:
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


def _with_roofs(walls: Walls, camera: Camera, wall: Int, depth: Float, place: Float) -> Layers:
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
