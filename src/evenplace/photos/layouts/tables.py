"""A table of photos: CSV, TSV, Parquet or GeoJSON, with UTM metres or latitude and longitude.

Columns are found by their usual names, or named: `read_photos("p.csv", east="x", north="y")`.
A folder with an `index.csv` counts as that table.
"""

import fnmatch
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from evenplace.errors import PhotoError, UnplacedError
from evenplace.photos.gather import gather
from evenplace.photos.geodesy import to_metres, zone_of
from evenplace.photos.scan import check_exists
from evenplace.photos.table import Photos

SUFFIXES = (".csv", ".tsv", ".parquet", ".geojson", ".json")
INDEX = "index.csv"
USUAL = {
    "path": ("path", "file", "filename", "file_name", "image", "image_path", "photo", "name"),
    "east": ("east", "easting", "utm_east", "utm_e", "utm_easting", "x"),
    "north": ("north", "northing", "utm_north", "utm_n", "utm_northing", "y"),
    "latitude": ("latitude", "lat", "gps_latitude"),
    "longitude": ("longitude", "lon", "lng", "long", "gps_longitude"),
    "heading": ("heading", "bearing", "compass", "compass_angle", "yaw", "ca", "northdeg",
                "heading_to_landmark"),
    "zone": ("zone", "utm_zone", "zone_number"),
    "time": ("time", "timestamp", "captured_at", "date", "datetime"),
}  # fmt: skip


def recognises(path: Path) -> bool:
    """Whether it is a table by its suffix, or a folder with an index.csv."""
    return path.suffix.lower() in SUFFIXES if path.is_file() else (path / INDEX).is_file()


def read(
    path: Path,
    pattern: str | None = None,
    zone: int | None = None,
    *,
    files: bool = True,
    **names: str,
) -> Photos:
    """Read a table; `names` says which of its columns is path, east, north, latitude, ….

    Paths in the table are relative to it, or to `images/` beside it.  A row is skipped, with the
    reason, when its file is not there or its position is none.  files: False where nobody will
    open them, as with descriptors that others computed; paths then stay as the table has them.
    """
    file = path / INDEX if path.is_dir() else path
    check_exists(file)
    table = load_table(file)
    found = _find_columns(table.column_names, file, names)
    columns = _positions(table, found, zone)
    if "heading" in found:
        columns["heading"] = numbers(table.column(found["heading"]))
    if "time" in found:
        columns["time"] = times(table.column(found["time"]))
    reasons: dict[int, str] = {}
    if "path" in found:
        named = table.column(found["path"])
        columns["path"], reasons = _files(named, file, pattern) if files else (named, {})
    others = set(table.column_names) - set(found.values()) - set(columns)
    for name in [one for one in table.column_names if one in others]:
        columns[name] = table.column(name).combine_chunks()
    return gather(columns, reasons=reasons, zone=zone, where=file)


def load_table(file: Path, text: tuple[str, ...] = ()) -> pa.Table:
    """Load a table of any of the formats; the columns named in `text` are not read as numbers."""
    try:
        if file.suffix.lower() == ".parquet":
            return pq.read_table(file)
        if file.suffix.lower() in (".geojson", ".json"):
            return _geojson(file)
        return _csv(file, text)
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as cause:
        raise PhotoError(f"{file} cannot be read as a table ({cause}); check its rows") from cause


def _csv(file: Path, text: tuple[str, ...], encoding: str = "utf8") -> pa.Table:
    """A table of text, whatever parts its columns; what is not UTF-8 is Western European."""
    delimiter = _delimiter(file)
    table = pa_csv.read_csv(
        file,
        read_options=pa_csv.ReadOptions(encoding=encoding),
        parse_options=pa_csv.ParseOptions(delimiter=delimiter),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(text, pa.string()),
            strings_can_be_null=True,
            decimal_point="," if delimiter == ";" else ".",  # 48.1 is read by `numbers` then
        ),
    )
    if encoding == "utf8" and any(pa.types.is_binary(kind) for kind in table.schema.types):
        return _csv(file, text, "cp1252")
    return table


def _delimiter(file: Path) -> str:
    """What parts the names of the columns: spreadsheets of many countries write semicolons."""
    with file.open("rb") as opened:
        first = opened.readline(1 << 16)
    marks = (",", ";", "\t") if file.suffix.lower() != ".tsv" else ("\t",)
    return max(marks, key=lambda mark: first.count(mark.encode()))


def numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """A column as numbers, NaN where it holds none."""
    try:
        return np.asarray(column.cast(pa.float64()).to_numpy(), np.float64)
    except pa.ArrowInvalid:
        return np.array([_number(value) for value in column.to_pylist()])


def times(column: pa.ChunkedArray) -> pa.Array:
    """A column as times: dates, ISO texts, or (milli)seconds since 1970; null otherwise."""
    values = column.combine_chunks()
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        seconds = numbers(column)
        seconds = np.where(seconds > 1e11, seconds / 1000, seconds)
        return pa.array(np.where(np.isnan(seconds), 0, seconds).astype("datetime64[s]"),
                        mask=np.isnan(seconds))  # fmt: skip
    try:
        return values.cast(pa.timestamp("s"), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(values), pa.timestamp("s"))


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")


def _geojson(file: Path) -> pa.Table:
    features = json.loads(file.read_text(encoding="utf-8"))["features"]
    rows = []
    for feature in features:
        lon, lat = (feature.get("geometry") or {}).get("coordinates", (None, None))[:2]
        rows.append({**(feature.get("properties") or {}), "longitude": lon, "latitude": lat})
    return pa.Table.from_pylist(rows)


def _find_columns(present: list[str], file: Path, names: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    lower = {name.lower().strip(): name for name in present}
    for wanted, usual in USUAL.items():
        if wanted in names:
            if names[wanted] not in present:
                raise PhotoError(
                    f"{file} has no column {names[wanted]!r} for {wanted}; "
                    f"it has {', '.join(present)}"
                )
            found[wanted] = names[wanted]
        elif match := next((lower[one] for one in usual if one in lower), None):
            found[wanted] = match
    if unknown := set(names) - set(USUAL):
        raise PhotoError(
            f"{sorted(unknown)[0]!r} is nothing a table is asked for; name {', '.join(USUAL)}"
        )
    if not ({"east", "north"} <= set(found) or {"latitude", "longitude"} <= set(found)):
        raise UnplacedError(
            f"{file} has no positions (columns: {', '.join(present)}); "
            "name them with east= and north=, or latitude= and longitude="
        )
    return found


def _positions(table: pa.Table, found: dict[str, str], zone: int | None) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if {"latitude", "longitude"} <= set(found):
        columns["latitude"] = numbers(table.column(found["latitude"]))
        columns["longitude"] = numbers(table.column(found["longitude"]))
    if not {"east", "north"} <= set(found):
        metres = to_metres(columns["latitude"], columns["longitude"], zone)
        return columns | {"east": metres.east, "north": metres.north, "zone": metres.zone}
    columns["east"] = numbers(table.column(found["east"]))
    columns["north"] = numbers(table.column(found["north"]))
    if "zone" in found:
        columns["zone"] = np.nan_to_num(numbers(table.column(found["zone"]))).astype(np.int64)
    elif "latitude" in columns:
        columns["zone"] = zone_of(columns["latitude"], columns["longitude"])
    else:
        columns["zone"] = np.full(len(columns["east"]), zone or 0)
    return columns


def _files(
    names: pa.ChunkedArray, file: Path, pattern: str | None
) -> tuple[list[str], dict[int, str]]:
    """Where each file of the table lies, and the rows whose file is not there or not wanted."""
    paths, reasons = [], {}
    folders: dict[str, set[str]] = {}
    for row, name in enumerate(names.to_pylist()):
        text = str(name or "")
        path = _beside(text, file.parent, folders)
        paths.append(path or text)
        if path is None:
            reasons[row] = f"there is no such file beside {file}"
        elif pattern and not fnmatch.fnmatch(path.rsplit("/", 1)[-1], pattern):
            reasons[row] = f"its name is not like {pattern}"
    return paths, reasons


def _beside(name: str, folder: Path, folders: dict[str, set[str]]) -> str | None:
    """The file's path if it is there, asking the disk once a folder rather than once a file."""
    for start in (folder, folder / "images"):
        parent, _, base = os.path.join(start, name).rpartition("/")  # noqa: PTH118, a million of them
        if parent not in folders:
            folders[parent] = set(os.listdir(parent)) if os.path.isdir(parent) else set()  # noqa: PTH112, PTH208
        if base in folders[parent]:
            return f"{parent}/{base}"
    return None
