"""Mapillary: what `mapillary_tools` describes, and what the API hands out.

mapillary_image_description.json   a list, with MAPLatitude, MAPLongitude, MAPCaptureTime …
an export of /images               {"data": [{"id", "computed_geometry", "captured_at" …}]}, the
                                   pictures beside it as ID.jpg
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evenplace.errors import PhotoError
from evenplace.photos.gather import UNDATED, Seen, files_beside, gather_seen, json_head
from evenplace.photos.table import Photos

DESCRIPTION = "mapillary_image_description.json"
LICENCE = "CC-BY-SA-4.0"


def recognises(path: Path) -> bool:
    """Whether it is one of the two files, or a folder with the first."""
    if path.is_dir():
        return (path / DESCRIPTION).is_file()
    head = json_head(path, ".json")
    return "MAPLatitude" in head or ('"data"' in head and '"captured_at"' in head)


def read(path: Path, zone: int | None = None) -> Photos:
    """Read a description or an export, with whose photos they are."""
    file = path / DESCRIPTION if path.is_dir() else path
    find = files_beside(file)
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        rows = told["data"] if isinstance(told, dict) else told
        seen = [_seen(row, find) for row in rows]
    except (KeyError, TypeError, ValueError) as cause:
        raise PhotoError(
            f"{file} is no description of photos ({cause!r}); export it again"
        ) from cause
    return gather_seen(seen, zone, file)


def seen_of(row: dict[str, Any], path: str) -> Seen:
    """One photo of the API's answer."""
    spot = row.get("computed_geometry") or row["geometry"]
    longitude, latitude = spot["coordinates"][:2]
    heading = row.get("computed_compass_angle", row.get("compass_angle"))
    taken = row.get("captured_at")
    return Seen(
        path,
        latitude,
        longitude,
        heading=float("nan") if heading is None else heading % 360,
        time=np.datetime64(None if taken is None else int(taken) // 1000, "s"),
        producer=str((row.get("creator") or {}).get("username", "Mapillary")),
        licence=LICENCE,
        source=f"https://www.mapillary.com/app/?pKey={row['id']}",
        sequence=str(row.get("sequence") or ""),
    )


def _seen(row: dict[str, Any], find: Callable[[str], str | None]) -> Seen:
    """One photo of an export, which has ids, or of a description, which has names."""
    name = f"{row['id']}.jpg" if "id" in row else str(row.get("filename", ""))
    path = find(name)
    if path is None:
        return Seen(name, reason="there is no such file beside the description")
    if "id" in row:
        return seen_of(row, path)
    if "error" in row or "MAPLatitude" not in row:
        why = (row.get("error") or {}).get("message", "without a position")
        return Seen(path, reason=f"mapillary_tools could not describe it ({why})")
    heading = (row.get("MAPCompassHeading") or {}).get("TrueHeading", float("nan"))
    time = _time(str(row.get("MAPCaptureTime")))
    drive = str(row.get("MAPSequenceUUID") or "")
    return Seen(path, row["MAPLatitude"], row["MAPLongitude"], heading, time, sequence=drive)


def _time(text: str) -> np.datetime64:
    """2018_07_12_10_00_00_000, in UTC."""
    try:
        return np.datetime64(f"{text[:10].replace('_', '-')}T{text[11:19].replace('_', ':')}", "s")
    except ValueError:
        return UNDATED
