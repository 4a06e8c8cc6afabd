"""Nordland: frames of one railway line, whose number stands in for a position.

Two forms: the downloader's (`@0@<north>@@@@@<frame>@@@@@@@@.jpg`, 25 m to 10.5 frames, so that a
radius of 25 m is ±10 frames) and plain numbered frames (`images-00001.png`), which get the same
metres.  Tolerances in frames are exact through the column `frame`.  Other sets of the downloader
have such names with metres of their own, AmsterTime and SPED a kilometre a pair: those are SF-XL's.
"""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa

from evenplace.photos.gather import gather
from evenplace.photos.scan import first_pictures, picture_paths
from evenplace.photos.table import Photos

METRES_A_FRAME = 25 / 10.5
DUMMY = re.compile(r"^@0(?:\.0+)?@(\d+(?:\.\d+)?)@@@@@(\d+)@+\.\w+$")
NUMBERED = re.compile(r"(\d+)\.\w+$")


def recognises(path: Path) -> bool:
    """Whether names are the downloader's dummies, or numbers in a folder called nordland."""
    names = [Path(one).name for one in first_pictures(path, 5)]
    called = "nordland" in str(path.absolute()).lower()
    known = (_frame(name) is not None and (called or "@" in name) for name in names)
    return bool(names) and all(known)


def _frame(name: str) -> int | None:
    """The number of a frame; None for a name without one, or whose metres are another set's."""
    if "@" not in name:
        return int(found[1]) if (found := NUMBERED.search(name)) else None
    dummy = DUMMY.match(name)
    if dummy is None or abs(float(dummy[1]) / METRES_A_FRAME - int(dummy[2])) > 0.5:
        return None
    return int(dummy[2])


def read(path: Path, pattern: str | None = None) -> Photos:
    """Read frames; one whose name ends in no number is skipped."""
    paths = picture_paths(path, pattern)
    frames = [_frame(Path(one).name) for one in paths.to_pylist()]
    reasons = {row: "its name is no frame's" for row, number in enumerate(frames) if number is None}
    frame = np.array([-1 if number is None else number for number in frames], np.int64)
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
