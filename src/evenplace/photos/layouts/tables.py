"""A table of photos: CSV, TSV, Parquet or GeoJSON, with UTM metres or latitude and longitude.

Columns are found by their usual names, or named: `read_photos("p.csv", east="x", north="y")`.
A folder with an `index.csv`, or with one table of its photos, counts as that table.
"""

import csv
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from evenplace.arrays import Doubles
from evenplace.errors import PhotoError, SettingError, UnplacedError
from evenplace.photos.choose import leave_repeats
from evenplace.photos.files import decode_text, shipped_tables, text_encoding
from evenplace.photos.gather import NO_FIX, files_beside, gather
from evenplace.photos.geodesy import to_metres, zone_of
from evenplace.photos.layouts.cells import numbers, read_angle, times
from evenplace.photos.scan import check_exists, walk_pictures
from evenplace.photos.table import Photos, Skipped

SUFFIXES = (".csv", ".tsv", ".parquet", ".geojson", ".json")
INDEX = "index.csv"
_ONE = (".csv", ".tsv")  # a single one beside photos is their table
USUAL: dict[str, tuple[str, ...]] = shipped_tables("photos/layouts/columns.toml")
_DEGREES, _METRES = ("latitude", "longitude"), ("east", "north")
_UTF8 = "utf8"  # which Arrow reads by itself, with or without a mark
_MARKS = ",;\t|"  # what parts columns


def recognises(path: Path) -> bool:
    """Whether it is a table by its suffix, or a folder with one that says where its photos are."""
    if path.is_file():
        return path.suffix.lower() in SUFFIXES
    try:
        file = find_table(path)
        return file.name == INDEX or "path" in find_columns(_names(file), {}, file)
    except (PhotoError, OSError, UnicodeError):
        return False


def find_table(path: Path) -> Path:
    """The table of a folder: its index.csv, or the only .csv or .tsv in it; a file is itself."""
    if path.is_file() or (path / INDEX).is_file():
        return path if path.is_file() else path / INDEX
    check_exists(path)
    tables = sorted(one for one in path.iterdir() if one.suffix.lower() in _ONE)
    if len(tables) != 1:
        told = ", ".join(one.name for one in tables[:5]) or "none"
        raise PhotoError(f"{path} has no one table of its photos (found {told}); name the file")
    return tables[0]


def say_read(path: Path, told: dict[str, str]) -> str:
    """Which columns of which table are read as what, in a line; empty where names are plain."""
    file = find_table(path)
    if file.suffix.lower() not in _ONE:
        return ""
    found = find_columns(_names(file), told, file)
    guessed = [f"{wanted} from {name}" for wanted, name in found.items() if name != wanted]
    return f"{file}: read {', '.join(guessed)}" if guessed else ""


def _names(file: Path) -> list[str]:
    """The names of the columns, from the first line alone."""
    line = _first_line(file)
    return next(csv.reader([line], delimiter=_delimiter(line)), [])


def _first_line(file: Path) -> str:
    """The first line that is not empty."""
    with file.open("rb") as opened:
        lines = decode_text(opened.read(1 << 16), whole=False).splitlines()
    return next((line for line in lines if line.strip()), "")


def read(path: Path, /, zone: int | None = None, *, files: bool = True, **names: str) -> Photos:
    """Read a table; `names` says which of its columns is path, east, north, latitude, ….

    Paths in the table are relative to it, or to `images/` beside it.  A row is skipped, with the
    reason, when its file is not there or its position is none.  files: False where nobody will
    open them, as with descriptors that others computed; paths then stay as the table has them.
    """
    file = find_table(path)
    table = load_table(file)
    found = find_columns(table.column_names, names, file)
    columns = _positions(table, found, zone)
    if "latitude" in columns:
        _refuse_swapped(columns["latitude"], columns["longitude"], found, file)
    if "heading" in found:
        columns["heading"] = numbers(table.column(found["heading"]))
    if "time" in found:
        columns["time"] = times(table.column(found["time"]))
    if "sequence" in found:
        columns["sequence"] = table.column(found["sequence"]).cast(pa.string()).combine_chunks()
    reasons = _unplaced(table, found, columns)
    if "path" in found:
        columns["path"] = table.column(found["path"])
        if files:
            columns["path"], gone = _files(columns["path"], file)
            reasons = gone | reasons
    others = set(table.column_names) - set(found.values()) - set(columns)
    for name in [one for one in table.column_names if one in others]:
        columns[name] = table.column(name).combine_chunks()
    photos = gather(columns, reasons=reasons, where=file)
    if not files:
        return photos
    unlisted = _unlisted(path, columns.get("path", [])) if path.is_dir() else []
    skipped = [Skipped(one, f"{file.name} does not list it") for one in unlisted]
    return leave_repeats(Photos(photos.table, [*photos.skipped, *skipped]))


def _unlisted(folder: Path, listed: Sequence[str]) -> list[str]:
    """Pictures of a folder that its table does not name."""
    known = set(map(os.path.normpath, listed))
    return sorted(one for one in walk_pictures(folder) if os.path.normpath(one) not in known)


def _refuse_swapped(
    latitude: Doubles, longitude: Doubles, found: dict[str, str], file: Path
) -> None:
    """Recognise latitude and longitude in each other's place: no latitude is beyond 90."""
    beyond = (np.abs(latitude) > 90) & (np.abs(latitude) <= 180)
    if beyond.any() and beyond.mean() > 0.5 and not (np.abs(longitude) > 90).any():
        raise PhotoError(
            f"{file} has latitude and longitude swapped ({found['latitude']} reaches "
            f"{np.nanmax(np.abs(latitude)):g}); read it so: --column "
            f"latitude={found['longitude']} --column longitude={found['latitude']}"
        )


def load_table(file: Path, text: tuple[str, ...] = ()) -> pa.Table:
    """Load a table of any of the formats; the columns named in `text` are not read as numbers."""
    try:
        if file.suffix.lower() == ".parquet":
            return pq.read_table(file)
        if file.suffix.lower() in (".geojson", ".json"):
            return _geojson(file)
        return _each_once(_csv(file, text), file)
    except (pa.ArrowException, OSError, AttributeError, TypeError, ValueError) as cause:
        raise PhotoError(f"{file} cannot be read as a table ({cause}); check its rows") from cause
    except KeyError as cause:
        raise PhotoError(f"{file} is no table: it has no {cause}; export it as GeoJSON") from cause


def _each_once(table: pa.Table, file: Path) -> pa.Table:
    """Columns of one name that are the same are one; those without a name say nothing."""
    names: list[str] = table.column_names
    at = {name: names.index(name) for name in names}
    for number, name in enumerate(names):
        if name.strip() and not table.column(number).equals(table.column(at[name])):
            raise PhotoError(f"{file} has two columns called {name!r}; rename one of them")
    return table.select([number for name, number in at.items() if name.strip()])


def _csv(file: Path, text: tuple[str, ...], encoding: str = "") -> pa.Table:
    """A table of text, whatever parts its columns; what is not Unicode is Western European."""
    delimiter, encoding = _delimiter(_first_line(file)), encoding or _encoding(file)
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
    return table if encoding != _UTF8 or _is_text(table) else _csv(file, text, "cp1252")


def _is_text(table: pa.Table) -> bool:
    """Whether names and cells could be decoded."""
    try:
        return not any(map(pa.types.is_binary, [one.type for one in table.schema if one.name]))
    except UnicodeDecodeError:
        return False


def _encoding(file: Path) -> str:
    with file.open("rb") as opened:
        found = text_encoding(opened.read(2))
    return _UTF8 if found == "utf-8-sig" else found


def _delimiter(first: str) -> str:
    """What parts the names of the columns: spreadsheets of many countries write semicolons."""
    return max(_MARKS, key=first.count)


def _geojson(file: Path) -> pa.Table:
    """What features tell; only a point is a position, and any of them may tell more than others."""
    rows = []
    for feature in json.loads(decode_text(file.read_bytes()))["features"]:
        shape = feature.get("geometry") or {}
        lon, lat = shape["coordinates"][:2] if shape.get("type") == "Point" else (None, None)
        rows.append({**(feature.get("properties") or {}), "longitude": lon, "latitude": lat})
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: _column([row.get(name) for row in rows]) for name in names})


def _column(values: list[Any]) -> pa.Array:
    """Values of one kind; of several, their texts."""
    try:
        return pa.array(values)
    except pa.ArrowException:
        return pa.array([None if value is None else str(value) for value in values])


def _positions(table: pa.Table, found: dict[str, str], zone: int | None) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if {"latitude", "longitude"} <= set(found):
        columns["latitude"] = numbers(table.column(found["latitude"]), read_angle)
        columns["longitude"] = numbers(table.column(found["longitude"]), read_angle)
    said = numbers(table.column(found["zone"])) if "zone" in found else None
    if not {"east", "north"} <= set(found):
        wanted = np.nan_to_num(said) if zone is None and said is not None else zone
        metres = to_metres(columns["latitude"], columns["longitude"], wanted)
        return columns | {"east": metres.east, "north": metres.north, "zone": metres.zone}
    columns["east"] = numbers(table.column(found["east"]))
    columns["north"] = numbers(table.column(found["north"]))
    columns["zone"] = np.full(len(columns["east"]), zone or 0)
    if "latitude" in columns:
        columns["zone"] = zone_of(columns["latitude"], columns["longitude"])
    if said is not None and any(table.column(found["zone"]).to_pylist()):
        unread = columns["zone"] if "latitude" in columns or zone is not None else np.nan
        columns["zone"] = np.where(np.isnan(said), unread, said)
    return columns


def _unplaced(table: pa.Table, found: dict[str, str], columns: dict[str, Any]) -> dict[int, str]:
    """What the rows say that have no position that can be read."""
    axes = _METRES if {*_METRES} <= set(found) else _DEGREES
    values = np.stack([columns[axis] for axis in axes])  # (2, N)
    reasons = {}
    for row in np.flatnonzero(np.isnan(values).any(axis=0)).tolist():
        cells = (table.column(found[axis])[row].as_py() or "empty" for axis in axes)
        told = ", ".join(map(" ".join, zip(axes, map(str, cells), strict=True)))
        reasons[row] = f"it has no position ({told})"
    for row in np.flatnonzero(np.isnan(columns["zone"])).tolist():
        cell = table.column(found["zone"])[row].as_py() or "empty"
        reasons[row] = f"its UTM zone is {cell}; write 33, or -33 in the south"
    nowhere = (values == 0).all(axis=0) & (axes == _DEGREES)
    return reasons | dict.fromkeys(np.flatnonzero(nowhere).tolist(), NO_FIX)


def _files(names: pa.ChunkedArray, file: Path) -> tuple[list[str], dict[int, str]]:
    """Where each file of the table lies, and the rows whose file is not there."""
    paths, reasons, find = [], {}, files_beside(file)
    for row, name in enumerate(names.to_pylist()):
        text = str(name or "")
        path = find(text)
        paths.append(path or text)
        if path is None:
            reasons[row] = f"there is no such file beside {file}"
    return paths, reasons


def find_columns(
    present: Sequence[str], told: Mapping[str, str], where: object = "the table"
) -> dict[str, str]:
    """Which column is the path, which the position …: what was told, else the usual names.

    x and y are degrees where the table has no other and calls nothing else metres.
    """
    if unknown := sorted(set(told) - set(USUAL)):
        raise SettingError(
            f"{unknown[0]!r} is nothing a table is asked for; name {', '.join(USUAL)}, as in "
            "--column latitude=gps_lat"
        )
    for wanted, name in told.items():
        if name not in present:
            raise PhotoError(
                f"{where} has no column {name!r} for {wanted}; it has {', '.join(present)}"
            )
    found = dict(told)
    for wanted in USUAL:
        match = usual_column(wanted, present)
        if wanted not in found and match is not None and match not in found.values():
            found[wanted] = match
    if not ({*_METRES} <= set(found) or {*_DEGREES} <= set(found)):
        raise UnplacedError(
            f"{where} has no positions (columns: {', '.join(present)}); name them: --column "
            "latitude=NAME --column longitude=NAME, or east and north"
        )
    return found


def usual_column(wanted: str, present: Sequence[str]) -> str | None:
    """The column that has one of the usual names of what is wanted."""
    lower = {name.lower().strip().replace(" ", "_"): name for name in present}
    return next((lower[one] for one in USUAL[wanted] if one in lower), None)


def parse_columns(told: Sequence[str]) -> dict[str, str]:
    """What --column says: latitude=gps_lat."""
    found = {}
    for one in told:
        wanted, equals, name = one.partition("=")
        if not (wanted and equals and name):
            raise SettingError(f"--column {one!r} is not NAME=COLUMN, as in latitude=gps_lat")
        found[wanted] = name
    return found
