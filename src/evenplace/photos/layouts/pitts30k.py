"""Pitts30k as VPR-datasets-downloader lays it out: SF-XL names whose note is pitch1_yaw1.

A panorama gives 24 pictures (2 pitches, 12 yaws) at one position.  Yaws are counted from the
panorama's own front, which is not told, so the heading stays unknown.
"""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from evenplace.photos.layouts import sfxl
from evenplace.photos.scan import first_pictures
from evenplace.photos.table import Photos

NOTE = re.compile(r"@pitch\d+_yaw\d+@\.\w+$")


def recognises(path: Path) -> bool:
    """Whether the first pictures have such a note."""
    names = first_pictures(path, 5)
    return bool(names) and all(NOTE.search(name) for name in names)


def read(path: Path, pattern: str | None = None) -> Photos:
    """Read the names, with the steps of pitch and yaw as columns."""
    photos = sfxl.read(path, pattern)
    table = photos.table
    found = pc.extract_regex(table.column("note"), r"^pitch(?P<pitch>\d+)_yaw(?P<yaw>\d+)$")
    for name in ("pitch", "yaw"):
        step = pc.struct_field(found, name).cast(pa.int16())
        table = table.append_column(f"{name}_step", step)
    return Photos(table, photos.skipped)
