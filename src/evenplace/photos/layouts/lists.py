"""Lists: one picture a line (hloc's db_list.txt, a file of SF-XL names), or COLMAP's images.txt.

Names in a list are relative to it.  COLMAP gives poses instead of names: a camera's centre is
-Rᵀt and it looks along the third row of R, in the model's own metres (zone 0).
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from evenplace.arrays import Doubles
from evenplace.errors import PhotoError
from evenplace.photos.files import decode_text
from evenplace.photos.layouts import sfxl
from evenplace.photos.table import Photos

UP = {"z": (0, 1), "y": (0, 2)}  # which axes of the model are east and north
POSE = 10  # id, four of the rotation, three of the translation, camera, name


def recognises(path: Path) -> bool:
    """Whether it is a text file."""
    return path.is_file() and path.suffix.lower() == ".txt"


def read(path: Path, *, images: str | Path | None = None, up: str = "z") -> Photos:
    """Read a list; `images` is the folder its names are in, `up` the model's axis for COLMAP."""
    lines = [line for line in decode_text(path.read_bytes()).splitlines() if line.strip()]
    folder = Path(images) if images is not None else path.parent
    poses = _poses(lines)
    if poses:
        return _cameras(poses, folder, up)
    names = [line.split()[0] for line in lines if not line.startswith("#")]
    if not names:
        raise PhotoError(f"{path} lists no pictures; check the file")
    return sfxl.from_names(pa.array([str(folder / one) for one in names]), path)


def _poses(lines: list[str]) -> list[list[str]]:
    """The pose lines of a COLMAP images.txt: every second line, the others list key points."""
    body = [line.split() for line in lines if not line.startswith("#")]
    poses = [parts for parts in body if len(parts) == POSE and "." in parts[-1]]
    return poses if poses and all(_is_number(part) for part in poses[0][:9]) else []


def _is_number(text: str) -> bool:
    return text.replace("-", "", 2).replace(".", "", 1).replace("e", "", 1).isdigit()


def _cameras(poses: list[list[str]], folder: Path, up: str) -> Photos:
    if up not in UP:
        raise PhotoError(f"up is {up!r}; the model's up is one of {', '.join(UP)}")
    numbers = np.array([[float(part) for part in pose[1:8]] for pose in poses])
    rotation = _rotations(numbers[:, :4])  # (N, 3, 3) world to camera
    centre = -np.einsum("nij,ni->nj", rotation, numbers[:, 4:])  # (N, 3)
    ahead = rotation[:, 2]  # (N, 3) where the camera looks
    first, second = UP[up]
    return Photos.from_arrays(
        east=centre[:, first],
        north=centre[:, second],
        heading=np.degrees(np.arctan2(ahead[:, first], ahead[:, second])),
        path=[str(folder / pose[-1]) for pose in poses],
    )


def _rotations(quaternions: Doubles) -> Doubles:
    w, x, y, z = (quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)
