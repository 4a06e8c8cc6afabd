"""From what a reader found to `Photos`: rows without a position are set aside."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evenplace.arrays import Bools
from evenplace.errors import PhotoError, UnplacedError
from evenplace.photos.geodesy import NORTH, SOUTH, to_metres
from evenplace.photos.table import Photos, Skipped

UNDATED = np.datetime64("NaT", "s")
NO_FIX = "its GPS position is 0, 0, which cameras write without a fix"  # why a photo is left out


@dataclass(frozen=True)
class Seen:
    """What a photo's EXIF, or a file beside it, says of it; or why it is left out."""

    path: str
    latitude: float = float("nan")
    longitude: float = float("nan")
    heading: float = float("nan")
    time: np.datetime64 = UNDATED
    producer: str = ""
    licence: str = ""
    source: str = ""  # where it is shown
    sequence: str = ""  # the drive it is of
    reason: str = ""


def gather_seen(
    seen: Sequence[Seen], zone: int | None, where: object, *, remedy: str | None = None
) -> Photos:
    """Make photos of what is said of them; whose they are stays with them.

    remedy: what to do where nothing says of any photo where it was taken.
    """
    reasons = {row: one.reason for row, one in enumerate(seen) if one.reason}
    if remedy is not None and len(reasons) == len(seen):
        raise UnplacedError(
            f"none of the {len(seen)} photos in {where} says where it was taken, for example "
            f"{Path(seen[0].path).name}: {seen[0].reason}; {remedy}"
        )
    told = {one.name: [getattr(row, one.name) for row in seen] for one in fields(Seen)}
    del told["reason"]
    latitude, longitude = (np.array(told.pop(axis), float) for axis in ("latitude", "longitude"))
    columns = {"path": told.pop("path"), **vars(to_metres(latitude, longitude, zone))}
    columns |= {"heading": np.array(told.pop("heading"), np.float32), "time": told.pop("time")}
    columns |= {"latitude": latitude, "longitude": longitude}
    columns |= {name: pa.array(words, pa.string()) for name, words in told.items() if any(words)}
    return gather(columns, reasons=reasons, where=where)


def spellings(name: str) -> tuple[str, ...]:
    """A file's name as it is written, and without the blanks, quotes and backslashes around it."""
    tidy = name.strip().strip('"').replace("\\", "/")
    return (name,) if tidy == name else (name, tidy)


def files_beside(table: Path) -> Callable[[str], str | None]:
    """From a name to the path of a file beside a table, or in images/ there; None if there is none.

    The disk is asked once a folder rather than once a file.
    """
    folders: dict[str, set[str]] = {}

    def find(name: str) -> str | None:
        starts = (table.parent, table.parent / "images")
        for spelt, start in product(spellings(name), starts):
            parent, _, base = os.path.join(start, spelt).rpartition("/")  # noqa: PTH118, a million of them
            if parent not in folders:
                folders[parent] = set(os.listdir(parent)) if os.path.isdir(parent) else set()  # noqa: PTH112, PTH208
            if base in folders[parent]:
                return f"{parent}/{base}"
        return None

    return find


def json_head(path: Path, *suffixes: str) -> str:
    """How a file of JSON begins: enough to tell its layout; empty for other files."""
    if path.suffix.lower() not in suffixes or not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(1 << 16)


def gather(
    columns: Mapping[str, Any],
    skipped: Sequence[Skipped] = (),
    *,
    reasons: Mapping[int, str] | None = None,
    where: object = "the table",
) -> Photos:
    """Make photos of columns, leaving out the rows with a reason and those with no position.

    Every row left out is in `Photos.skipped`; when none is left, that is an error.
    """
    east, north = (np.asarray(columns[name], np.float64) for name in ("east", "north"))
    zones = np.broadcast_to(np.asarray(columns.get("zone", 0)), east.shape)
    why = dict(reasons or {})
    _tell_degrees(why, columns)
    for row in np.flatnonzero(~(np.isfinite(east) & np.isfinite(north))).tolist():
        why.setdefault(row, f"it has no position (east {east[row]}, north {north[row]})")
    left_out = [*skipped, *(Skipped(_name(columns, row), why[row]) for row in sorted(why))]
    if len(why) == len(east):
        example = left_out[0] if left_out else Skipped("nothing", "it has no rows")
        raise PhotoError(
            f"no photo of {where} can be placed, for example {example.path}: {example.reason}; "
            "check paths and coordinates, or name the layout and its columns"
        )
    made = {**columns, "east": east, "north": north, "zone": zones}
    if why:
        keep = np.ones(len(east), bool)
        keep[list(why)] = False
        made = {name: _choose(values, keep) for name, values in made.items()}
    return Photos.from_arrays(**made, skipped=left_out)


def _tell_degrees(why: dict[int, str], columns: Mapping[str, Any]) -> None:
    """Say of photos with degrees why they have no metres."""
    if "latitude" not in columns:
        return
    latitude, longitude = (np.asarray(columns[one], float) for one in ("latitude", "longitude"))
    beyond = (latitude < SOUTH) | (latitude > NORTH) | (np.abs(longitude) > 180)
    for row in np.flatnonzero(beyond).tolist():
        told = f"its latitude {latitude[row]:g} is beyond UTM, which ends at -80 and 84"
        if abs(latitude[row]) > 90:
            told = f"its latitude {latitude[row]:g} is beyond a pole; is it the longitude?"
        elif SOUTH <= latitude[row] <= NORTH:
            told = f"its longitude {longitude[row]:g} is beyond 180"
        why.setdefault(row, told)


def _choose(values: Any, keep: Bools) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values.filter(pa.array(keep))
    if isinstance(values, np.ndarray):
        return values[keep]
    return [value for value, kept in zip(values, keep, strict=True) if kept]


def _name(columns: Mapping[str, Any], row: int) -> str:
    return str(columns["path"][row]) if "path" in columns else f"row {row}"


def credits_of(photos: Photos, rows: Sequence[int]) -> list[str]:
    """Whose photos they are and under which licence, as in "Jane, CC-BY-SA-4.0"; or nothing."""
    kept = [name for name in ("producer", "licence") if name in photos.table.column_names]
    told = photos.table.select(kept).take(pa.array(rows, pa.int64())).to_pylist() if kept else []
    return [", ".join(str(one) for one in row.values() if one) for row in told] or [""] * len(rows)
