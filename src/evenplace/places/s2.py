"""S2's cells: a cube around the earth, its faces quartered again and again.

The cells are S2's own (quadratic projection); we number them by face, level, column and row
instead of along its curve.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FINEST = 22  # cells of about 2 m


def cells_at(latitude: Floats, longitude: Floats) -> tuple[Ints, Ints, Ints]:
    """Face, column and row of positions at the finest level: (N,) each."""
    lat, lon = np.radians(latitude), np.radians(longitude)
    point = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])  # (3, N)
    axis = np.abs(point).argmax(axis=0)
    each = np.arange(point.shape[1])
    main = point[axis, each]
    face = np.where(main < 0, axis + 3, axis)
    x, y, z = point
    u = np.choose(face, [y / main, -x / main, -x / main, z / main, z / main, -y / main])
    v = np.choose(face, [z / main, z / main, -y / main, y / main, -x / main, -x / main])
    return face, _steps(u), _steps(v)


def _steps(u: Floats) -> Ints:
    root = np.sqrt(1 + 3 * np.abs(u))
    s = np.where(u >= 0, 0.5 * root, 1 - 0.5 * root)
    size = 1 << FINEST
    return np.asarray(np.clip(np.floor(size * s), 0, size - 1), np.int64)


def corners(face: Ints, level: Ints, column: Ints, row: Ints) -> tuple[Floats, Floats]:
    """Latitude and longitude of the four corners of cells: (C, 4) each."""
    around = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    side = 2.0 ** -level.astype(np.float64)
    u = _projected((column[:, None] + around[:, 0]) * side[:, None])  # (C, 4)
    v = _projected((row[:, None] + around[:, 1]) * side[:, None])
    one, face = np.ones_like(u), face[:, None]
    x = np.choose(face, [one, -u, -u, -one, v, v])
    y = np.choose(face, [u, one, -v, -v, -one, u])
    z = np.choose(face, [v, v, one, -u, -u, -one])
    return np.degrees(np.arctan2(z, np.hypot(x, y))), np.degrees(np.arctan2(y, x))


def _projected(s: Floats) -> Floats:
    projected: Floats = np.where(s >= 0.5, 4 * s * s - 1, 1 - 4 * (1 - s) * (1 - s)) / 3
    return projected
