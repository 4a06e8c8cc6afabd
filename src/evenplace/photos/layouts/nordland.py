"""Nordland: frames of one railway line, whose number stands in for a position.

Two forms: the downloader's (`@0@<north>@@@@@<frame>@@@@@@@@.jpg`, 25 m to 10.5 frames, so that a
radius of 25 m is ±10 frames) and plain numbered frames (`images-00001.png`), which get the same
metres.  Tolerances in frames are exact through the column `frame`.
"""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa

from evenplace.photos.gather import gather
from evenplace.photos.scan import first_pictures, picture_paths
from evenplace.photos.table import Photos

METRES_A_FRAME = 25 / 10.5
DUMMY = re.compile(r"^@0(?:\.0+)?@[\d.]+@@@@@(\d+)@+\.\w+$")
NUMBERED = re.compile(r"(\d+)\.\w+$")


def recognises(path: Path) -> bool:
    """Whether names are the downloader's dummies, or numbers in a folder called nordland."""
    names = [Path(one).name for one in first_pictures(path, 5)]
    called = "nordland" in str(path.absolute()).lower()
    known = (DUMMY.match(name) or (called and NUMBERED.search(name)) for name in names)
    return bool(names) and all(known)


def read(path: Path, pattern: str | None = None) -> Photos:
    """Read frames; one whose name ends in no number is skipped."""
    paths = picture_paths(path, pattern)
    frames, reasons = [], {}
    for row, name in enumerate(Path(one).name for one in paths.to_pylist()):
        found = DUMMY.match(name) or ("@" not in name and NUMBERED.search(name)) or None
        frames.append(int(found.group(1)) if found else -1)
        if not found:
            reasons[row] = "its name ends in no frame number"
    frame = np.array(frames, np.int64)
    return gather(
        {
            "path": paths,
            "east": np.zeros(len(frame)),
            "north": frame * METRES_A_FRAME,
            "frame": pa.array(frame),
        },
        reasons=reasons,
        where=path,
    )
