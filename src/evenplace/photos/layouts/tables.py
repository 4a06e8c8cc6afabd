"""A table of photos: CSV, TSV, Parquet or GeoJSON, with UTM metres or latitude and longitude.

Columns are found by their usual names, or named: `read_photos("p.csv", east="x", north="y")`.
A folder with an `index.csv`, or with one table of its photos, counts as that table.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from evenplace.arrays import Doubles
from evenplace.errors import PhotoError, SettingError, UnplacedError
from evenplace.photos.files import shipped_tables
from evenplace.photos.gather import files_beside, gather
from evenplace.photos.geodesy import to_metres, zone_of
from evenplace.photos.scan import check_exists
from evenplace.photos.table import Photos

SUFFIXES = (".csv", ".tsv", ".parquet", ".geojson", ".json")
INDEX = "index.csv"
_ONE = (".csv", ".tsv")  # a single one beside photos is their table
USUAL: dict[str, tuple[str, ...]] = shipped_tables("photos/layouts/columns.toml")
_DEGREES, _METRES = ("latitude", "longitude"), ("east", "north")


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
    line = _first_line(file).decode("utf-8-sig", "replace").strip("\r\n")
    return next(csv.reader([line], delimiter=_delimiter(file)), [])


def _first_line(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.readline(1 << 16)


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
    reasons: dict[int, str] = {}
    if "path" in found:
        named = table.column(found["path"])
        columns["path"], reasons = _files(named, file) if files else (named, {})
    others = set(table.column_names) - set(found.values()) - set(columns)
    for name in [one for one in table.column_names if one in others]:
        columns[name] = table.column(name).combine_chunks()
    return gather(columns, reasons=reasons, where=file)


def _refuse_swapped(
    latitude: Doubles, longitude: Doubles, found: dict[str, str], file: Path
) -> None:
    """Recognise latitude and longitude in each other's place: no latitude is beyond 90."""
    beyond = np.abs(latitude) > 90
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
    first = _first_line(file)
    marks = (",", ";", "\t") if file.suffix.lower() != ".tsv" else ("\t",)
    return max(marks, key=lambda mark: first.count(mark.encode()))


def numbers(column: pa.Array | pa.ChunkedArray) -> Doubles:
    """A column as numbers, NaN where it holds none; one cast when all are good."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.if_else(pc.equal(column, ""), "nan", column)
    try:
        return np.asarray(column.cast(pa.float64()), np.float64)
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
        return float(value.replace(",", ".") if isinstance(value, str) else value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")


def _geojson(file: Path) -> pa.Table:
    features = json.loads(file.read_text(encoding="utf-8"))["features"]
    rows = []
    for feature in features:
        lon, lat = (feature.get("geometry") or {}).get("coordinates", (None, None))[:2]
        rows.append({**(feature.get("properties") or {}), "longitude": lon, "latitude": lat})
    return pa.Table.from_pylist(rows)


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
