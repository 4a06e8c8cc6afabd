"""SF-XL and everything named like it: crops, processed sets, small, panoramas, Pitts30k.

A picture's name holds its position; the folders around it do not matter.  VPR-datasets-downloader
writes Pitts30k, Tokyo, St Lucia and others this way too.
"""

from pathlib import Path

import pyarrow as pa

from evenplace.errors import PhotoError
from evenplace.photos.gather import gather
from evenplace.photos.names import TEMPLATE, read_names
from evenplace.photos.scan import first_pictures, picture_paths
from evenplace.photos.table import Photos

LOOKED_AT = 20


def recognises(path: Path) -> bool:
    """Whether most of the first pictures have names with @ signs."""
    names = [name.rsplit("/", 1)[-1] for name in first_pictures(path, LOOKED_AT)]
    return bool(names) and sum(name.count("@") >= 3 for name in names) > len(names) / 2


def read(path: Path, pattern: str | None = None) -> Photos:
    """Read every picture below a folder by its name."""
    return from_names(picture_paths(path, pattern), path)


def from_names(paths: pa.Array, where: Path) -> Photos:
    """Make photos of paths whose base names are in the SF-XL form."""
    read = read_names(paths)
    if not len(read.rows):
        example = read.skipped[0]
        raise PhotoError(
            f"none of the {len(paths)} names in {where} gives a position, for example "
            f"{example.path.rsplit('/', 1)[-1]}; name them {TEMPLATE} or pass layout="
        )
    kept = paths if len(read.rows) == len(paths) else paths.take(pa.array(read.rows))
    return gather({"path": kept, **read.columns}, read.skipped, where=where)
