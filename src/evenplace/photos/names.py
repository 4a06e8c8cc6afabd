"""SF-XL file names, the field's common tongue: fifteen fields between @ signs, read in bulk.

    @east@north@zone@letter@latitude@longitude@pano@tile@heading@pitch@roll@height@time@note@.jpg

CosPlace, EigenPlaces, Divide&Classify and VPR-datasets-downloader all write and read it.
Fields may be empty; only east and north must be there.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenplace.photos.scan import base_names
from evenplace.photos.table import Skipped

FIELDS = (
    "start", "east", "north", "zone", "letter", "latitude", "longitude", "pano", "tile",
    "heading", "pitch", "roll", "height", "time", "note", "suffix",
)  # fmt: skip
NUMBERS = ("latitude", "longitude", "pitch", "roll", "height")
WORDS = ("pano", "tile", "note")
TEMPLATE = "@east@north@zone@letter@lat@lon@pano@tile@heading@pitch@roll@height@time@note@.jpg"


@dataclass(frozen=True)
class NamedRows:
    """What names say: the rows that could be read, their columns, and the others with a reason."""

    rows: NDArray[np.int64]
    columns: dict[str, pa.Array]
    skipped: tuple[Skipped, ...]


def read_names(paths: pa.Array) -> NamedRows:
    """Read the fields of SF-XL names, about a million a second.

    A name that does not parse is skipped with its reason; the folder it lies in never matters.
    """
    fields = pc.split_pattern(base_names(paths), "@")
    counts = np.asarray(pc.list_value_length(fields))
    reasons: dict[int, str] = {
        int(row): f"its name has {counts[row] - 1} fields where {TEMPLATE} has 15"
        for row in np.flatnonzero(counts != len(FIELDS))
    }
    rows = np.flatnonzero(counts == len(FIELDS))
    parts = _columns(fields if len(rows) == len(counts) else fields.take(pa.array(rows)))
    numbers = {name: _numbers(parts[name]) for name in ("east", "north", "zone", "heading")}
    bad = np.zeros(len(rows), bool)
    for name in ("east", "north"):
        bad |= ~np.isfinite(numbers[name])
    for at in np.flatnonzero(bad):
        east, north = parts["east"][at].as_py(), parts["north"][at].as_py()
        reasons[int(rows[at])] = (
            f"its name gives east {east!r} and north {north!r}, not two numbers"
        )
    columns = _typed(parts, numbers)
    if bad.any():
        keep = pa.array(np.flatnonzero(~bad))
        columns = {name: values.take(keep) for name, values in columns.items()}
        rows = rows[~bad]
    skipped = tuple(Skipped(paths[row].as_py(), reasons[row]) for row in sorted(reasons))
    return NamedRows(rows, columns, skipped)


def _columns(fields: pa.Array) -> dict[str, pa.Array]:
    """One array a field.  The values of an n-field list column lie n apart in one flat array."""
    flat = fields.flatten()
    index = np.arange(0, len(flat), len(FIELDS))
    return {name: flat.take(pa.array(index + at)) for at, name in enumerate(FIELDS)}


def _typed(
    parts: dict[str, pa.Array], numbers: dict[str, NDArray[np.float64]]
) -> dict[str, pa.Array]:
    south = pc.and_(pc.less(parts["letter"], "N"), pc.not_equal(parts["letter"], ""))
    zone = np.nan_to_num(numbers["zone"])
    zone = np.where(np.abs(zone) <= 60, zone, 0) * np.where(np.asarray(south), -1, 1)
    columns = {
        "east": pa.array(numbers["east"]),
        "north": pa.array(numbers["north"]),
        "zone": pa.array(zone.astype(np.int8)),
        "heading": pa.array(numbers["heading"].astype(np.float32)),
    }
    if (time := read_times(parts["time"])).null_count < len(time):
        columns["time"] = time
    for name in NUMBERS:
        if _filled(parts[name]) and not np.isnan(values := _numbers(parts[name])).all():
            columns[name] = pa.array(values)
    for name in WORDS:
        if _filled(parts[name]):
            columns[name] = parts[name]
    return columns


def _filled(texts: pa.Array) -> bool:
    return bool(pc.any(pc.not_equal(texts, "")).as_py())


def _numbers(texts: pa.Array) -> NDArray[np.float64]:
    """Texts as numbers, NaN where empty or unreadable; one cast when all are good."""
    if not _filled(texts):
        return np.full(len(texts), np.nan)
    blank = pc.equal(texts, "")
    if pc.any(blank).as_py():
        texts = pc.if_else(blank, "nan", texts)
    try:
        return np.asarray(texts.cast(pa.float64()))
    except pa.ArrowInvalid:
        return np.array([_number(text) for text in texts.to_pylist()])


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def read_times(texts: pa.Array) -> pa.Array:
    """Times written YYYYMM, YYYYMMDD or YYYYMMDD_hhmmss; null where empty or otherwise written."""
    if not _filled(texts):
        return pa.nulls(len(texts), pa.timestamp("s"))
    texts = texts.cast(pa.string())
    length = pc.utf8_length(texts)
    month, day = pc.equal(length, 6), pc.equal(length, 8)
    padded = pc.case_when(
        pc.make_struct(month, day),
        pc.binary_join_element_wise(texts, "01_000000", ""),
        pc.binary_join_element_wise(texts, "_000000", ""),
        texts,
    )
    return pc.strptime(padded, format="%Y%m%d_%H%M%S", unit="s", error_is_null=True)
