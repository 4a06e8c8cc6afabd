"""Which photos were taken in one go: however many frames, they are one look at a street.

The next frame, two metres on, looks the same, so nothing that finds it has shown that it would
find the place on another day.

    N photos · -1 where nothing tells
"""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenplace.arrays import Ints
from evenplace.photos.table import Photos

STEP = 50.0  # metres between frames of a pass, at most
SKIPPED = 10  # numbers between them, at most
_FRAMES = 3  # that a pass of names has at least: two neighbours may be chance
_NUMBER = re.compile(r"(\d+)\D*$")


def by_day(photos: Photos) -> Ints:
    """The day each photo was taken on, as days since 1970.  (N,)."""
    day = photos.time.astype("datetime64[D]")
    return np.where(np.isnat(day), -1, day.astype(np.int64))


def by_sequence(photos: Photos) -> Ints:
    """The drive each photo is of, where the data set names them.  (N,)."""
    if "sequence" not in photos.table.column_names:
        return np.full(len(photos), -1)
    column = photos.table.column("sequence").cast(pa.string())
    known = pc.unique(column.filter(pc.not_equal(column, "")))  # where null, neither
    return np.asarray(pc.fill_null(pc.index_in(column, value_set=known), -1)).astype(np.int64)


def by_name(photos: Photos) -> Ints:
    """Photos whose numbers and positions follow one another: IMG_0041, IMG_0042 ….  (N,)."""
    passes = np.full(len(photos), -1)
    split = ((_split(name), row) for row, name in enumerate(_names(photos)))
    named = sorted((*told, row) for told, row in split if told is not None)
    if not named:
        return passes
    shared, number, rows = (list(part) for part in zip(*named, strict=True))
    order, kin = np.array(rows), np.unique(shared, return_inverse=True)[1]
    spot = photos.points[order]
    away = np.linalg.norm(np.diff(spot, axis=0), axis=1) > STEP
    begins = away | (np.diff(number) > SKIPPED) | (np.diff(kin) != 0)
    found = np.append(0, np.cumsum(begins))
    stops = np.append(True, begins | np.any(np.diff(spot, axis=0), axis=1))  # crops share one
    long = np.bincount(found, weights=stops) >= _FRAMES
    passes[order] = np.where(long[found], found, -1)
    return passes


def guess_passes(photos: Photos) -> Ints:
    """The pass of each photo: its sequence, else its day where there are several, else its name.

    (N,); numbers of one kind are never those of another.
    """
    passes, days = by_sequence(photos), by_day(photos)
    told = [days, by_name(photos)] if len(np.unique(days[days >= 0])) > 1 else [by_name(photos)]
    for others in told:
        fresh = (passes < 0) & (others >= 0)
        passes = np.where(fresh, others + passes.max(initial=-1) + 1, passes)
    return passes


def _names(photos: Photos) -> list[str]:
    """What numbers the frames: the panorama where names have one, else the file."""
    if "pano" in photos.table.column_names:
        return [str(one or "") for one in photos.table.column("pano").to_pylist()]
    if "path" not in photos.table.column_names:
        return []
    return [f"{Path(one).parent}/{Path(one).stem}" for one in photos.paths]


def _split(name: str) -> tuple[str, int] | None:
    """What names of one pass share, and the number of this one."""
    found = _NUMBER.search(name)
    return (name[: found.start()], int(found.group(1))) if found else None
