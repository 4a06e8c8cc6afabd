"""Roads, kerbs, pavements, markings and lawns: quads on the ground, and their pixels."""

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from evenplace.arrays import Bytes, Doubles, Floats, Ints
from evenplace.city.buildings import COLOURS
from evenplace.city.camera import Camera
from evenplace.city.light import Day
from evenplace.city.plan import Street, Town

FIELD, PAVEMENT, ASPHALT, KERB, PAINT, GRASS, PAVING, YARD = range(8)
DRY, SNOW = (np.array(COLOURS["ground"][lies], np.float32) for lies in ("dry", "snow"))
NEAR = 0.7  # metres ahead of the camera where quads are cut
REACH = 150.0


@dataclass(frozen=True)
class Ground:
    """Quads in the order they are painted; (Q, 4, 2) positions and (Q,) codes."""

    quads: Doubles
    codes: Ints
    middles: Doubles  # (Q, 2)
    reach: Doubles  # (Q,) metres at which the middle is too far to show


def lay_ground(town: Town) -> Ground:
    """Collect the quads of a town: blocks, pavements, kerbs, asphalt, markings, in this order."""
    use = {"built": YARD, "square": PAVING, "park": GRASS}
    quads = [(block.corners, use[block.use]) for block in town.blocks]
    for street in town.streets:
        quads.append((_strip(street, -street.width / 2, street.width / 2, margin=3.0), PAVEMENT))
    for grown, code in ((0.18, KERB), (0.0, ASPHALT)):
        for street in town.streets:
            half = street.width / 2 - street.pavement + grown
            quads.append((_strip(street, -half, half, margin=half), code))
    for street in town.streets:
        quads += [(quad, PAINT) for quad in _markings(street)]
    corners = np.stack([quad for quad, _ in quads])
    codes = np.array([code for _, code in quads])
    middles = corners.mean(axis=1)
    radii = np.hypot(*(corners - middles[:, None]).transpose(2, 0, 1)).max(axis=1)
    return Ground(corners, codes, middles, radii + np.where(codes == PAINT, 45.0, REACH))


def _strip(street: Street, right: float, left: float, *, margin: float) -> Doubles:
    start, end = street.start - margin * street.along, street.end + margin * street.along
    return _between(street, start, end, right, left)


def _patch(street: Street, begin: float, length: float, right: float, left: float) -> Doubles:
    start = street.start + begin * street.along
    return _between(street, start, start + length * street.along, right, left)


def _between(street: Street, start: Doubles, end: Doubles, right: float, left: float) -> Doubles:
    return np.stack([start + right * street.left, end + right * street.left,
                     end + left * street.left, start + left * street.left])  # fmt: skip


def _markings(street: Street) -> list[Doubles]:
    """Dashes along the middle, stripes to walk across near each crossing; lanes have none."""
    if street.kind == "lane":
        return []
    found = [
        _patch(street, float(place), 2.4, -0.07, 0.07)
        for place in np.arange(17, street.length - 19, 5.5)
    ]
    half = street.width / 2 - street.pavement
    for begin in (11.5, street.length - 14.5):
        for offset in np.arange(-half + 0.5, half - 0.6, 1.1):
            found.append(_patch(street, begin, 3.0, float(offset), float(offset) + 0.55))
    return found


def paint_codes(ground: Ground, camera: Camera, size: int) -> Bytes:
    """The code of the ground at every pixel, as if nothing stood on it; (size, size)."""
    picture = Image.new("L", (size, size), FIELD)
    brush = ImageDraw.Draw(picture)
    east = ground.middles[:, 0] - camera.east
    north = ground.middles[:, 1] - camera.north
    near = np.flatnonzero(np.hypot(east, north) < ground.reach)
    codes = ground.codes[near].tolist()
    seen = camera.see(ground.quads[near])  # (Q, 4, 2)
    ahead = seen[:, :, 1] > NEAR
    edge = float(np.tan(np.radians(camera.field / 2)))
    left = (seen[:, :, 0] < -edge * seen[:, :, 1]).all(axis=1)
    right = (seen[:, :, 0] > edge * seen[:, :, 1]).all(axis=1)
    visible = ahead.any(axis=1) & ~left & ~right
    whole = np.asarray(ahead.all(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        pixels = camera.project(seen, 0.0, size)
    for index in np.flatnonzero(visible):
        if whole[index]:
            outline = pixels[index].ravel().tolist()
        else:
            cut = _cut(seen[index])
            outline = camera.project(cut, 0.0, size).ravel().tolist()
        brush.polygon(outline, fill=codes[index])
    return np.asarray(picture)


def _cut(quad: Floats) -> Floats:
    """Keep the part of a quad that is at least NEAR ahead of the camera."""
    kept = []
    for point, following in zip(quad, np.roll(quad, -1, axis=0), strict=True):
        if point[1] > NEAR:
            kept.append(point)
        if (point[1] > NEAR) != (following[1] > NEAR):
            share = (NEAR - point[1]) / (following[1] - point[1])
            kept.append(point + share * (following - point))
    return np.array(kept, np.float32)


def ground_palette(day: Day) -> Floats:
    """The ground's colours on a day, (8, 3) in 0..1."""
    if day.ground == "snow":
        return SNOW / np.float32(255)
    palette = DRY / np.float32(255)
    for code in (FIELD, GRASS):
        palette[code] *= np.array(COLOURS["ground"]["seasons"][day.season], np.float32)
    return palette * np.float32(0.66 if day.ground == "wet" else 1.0)
