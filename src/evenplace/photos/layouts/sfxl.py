"""SF-XL and everything named like it: a picture's name says where it was taken.

    @east@north@zone@letter@latitude@longitude@pano@tile@heading@pitch@roll@height@time@note@.jpg

Fifteen fields between @ signs, read in bulk; they may be empty, but for east and north.  The
folders around do not matter.  CosPlace, EigenPlaces, Divide&Classify and VPR-datasets-downloader
(Pitts30k, Tokyo, St Lucia and others) all write and read it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenplace.arrays import Doubles, Ints
from evenplace.errors import PhotoError
from evenplace.photos.gather import gather
from evenplace.photos.layouts.cells import numbers
from evenplace.photos.scan import first_pictures, picture_paths
from evenplace.photos.table import Photos, Skipped

FIELDS = (
    "start", "east", "north", "zone", "letter", "latitude", "longitude", "pano", "tile",
    "heading", "pitch", "roll", "height", "time", "note", "suffix",
)  # fmt: skip
NUMBERS = ("latitude", "longitude", "pitch", "roll", "height")
WORDS = ("pano", "tile", "note")
BLOCK = 1 << 15  # names at a time: what the processor's cache holds
TEMPLATE = "@east@north@zone@letter@lat@lon@pano@tile@heading@pitch@roll@height@time@note@.jpg"
LOOKED_AT = 20


def recognises(path: Path) -> bool:
    """Whether most of the first pictures have names with @ signs."""
    names = [name.rsplit("/", 1)[-1] for name in first_pictures(path, LOOKED_AT)]
    return bool(names) and sum(name.count("@") >= 3 for name in names) > len(names) / 2


def read(path: Path, pattern: str | None = None) -> Photos:
    """Read every picture below a folder by its name."""
    return from_names(picture_paths(path, pattern), path)


def from_names(paths: pa.Array, where: Path) -> Photos:
    """Make photos of paths whose base names are in the SF-XL form."""
    read = read_names(paths)
    if not len(read.rows):
        example = read.skipped[0]
        raise PhotoError(
            f"none of the {len(paths)} names in {where} gives a position, for example "
            f"{example.path.rsplit('/', 1)[-1]}; name them {TEMPLATE} or pass layout="
        )
    kept = paths if len(read.rows) == len(paths) else paths.take(pa.array(read.rows))
    return gather({"path": kept, **read.columns}, read.skipped, where=where)


@dataclass(frozen=True)
class NamedRows:
    """What names say: the rows that could be read, their columns, and the others with a reason."""

    rows: Ints
    columns: dict[str, pa.Array]
    skipped: tuple[Skipped, ...]


def read_names(paths: pa.Array) -> NamedRows:
    """Read the fields of SF-XL names, about a million a second.

    A name that does not parse is skipped with its reason; the folder it lies in never matters.
    """
    starts = range(0, max(len(paths), 1), BLOCK)
    blocks = [_read_block(paths.slice(start, BLOCK)) for start in starts]
    if len(blocks) == 1:
        return blocks[0]
    tables = [pa.table(block.columns) for block in blocks]
    table = pa.concat_tables(tables, promote_options="default").combine_chunks()
    return NamedRows(
        np.concatenate([block.rows + start for block, start in zip(blocks, starts, strict=True)]),
        {name: table.column(name).combine_chunks() for name in table.column_names},
        tuple(one for block in blocks for one in block.skipped),
    )


def _read_block(paths: pa.Array) -> NamedRows:
    rows, parts = _split(paths)
    whole = np.zeros(len(paths), bool)
    whole[rows] = True
    reasons = {
        int(row): f"its name has {_fields_of(paths[row])} fields where {TEMPLATE} has 15"
        for row in np.flatnonzero(~whole)
    }
    known = {name: numbers(parts[name]) for name in ("east", "north", "heading")}
    bad = ~(np.isfinite(known["east"]) & np.isfinite(known["north"]))
    for at in np.flatnonzero(bad):
        east, north = parts["east"][at].as_py(), parts["north"][at].as_py()
        told = f"its name gives east {east!r} and north {north!r}, not two numbers"
        reasons[int(rows[at])] = told
    columns = _typed(parts, known)
    if bad.any():
        keep = pa.array(np.flatnonzero(~bad))
        columns = {name: values.take(keep) for name, values in columns.items()}
        rows = rows[~bad]
    skipped = tuple(Skipped(paths[row].as_py(), reasons[row]) for row in sorted(reasons))
    return NamedRows(rows, columns, skipped)


def _split(paths: pa.Array) -> tuple[Ints, dict[str, pa.Array]]:
    """The rows whose names have all fields, and one array a field of them.

    Splitting from the end leaves the folder in the first part, which must end where the name
    begins: otherwise an @ of the folder stands in for one the name lacks.
    """
    fields = pc.split_pattern(paths, "@", max_splits=len(FIELDS) - 1, reverse=True)
    rows = np.flatnonzero(np.asarray(pc.list_value_length(fields)) == len(FIELDS))
    if len(rows) < len(paths):
        fields = fields.take(pa.array(rows))
    flat = fields.flatten()  # the values of one field lie len(FIELDS) apart
    first = np.arange(0, len(flat), len(FIELDS))
    parts = {name: flat.take(pa.array(first + at)) for at, name in enumerate(FIELDS[:-1])}
    start = parts.pop("start")
    begins = np.asarray(pc.or_(pc.equal(start, ""), pc.ends_with(start, "/")))
    if not begins.all():
        rows, keep = rows[begins], pa.array(np.flatnonzero(begins))
        parts = {name: values.take(keep) for name, values in parts.items()}
    return rows, parts


def _fields_of(path: pa.Scalar) -> int:
    return str(path).rsplit("/", 1)[-1].count("@")


def _typed(parts: dict[str, pa.Array], known: dict[str, Doubles]) -> dict[str, pa.Array]:
    south = _once(parts["letter"], lambda text: pc.and_(pc.less(text, "N"), pc.greater(text, "")))
    zone = np.nan_to_num(np.asarray(_once(parts["zone"], lambda text: pa.array(numbers(text)))))
    zone = np.where(np.abs(zone) <= 60, zone, 0) * np.where(np.asarray(south), -1, 1)
    columns = {
        "east": pa.array(known["east"]),
        "north": pa.array(known["north"]),
        "zone": pa.array(zone.astype(np.int8)),
        "heading": pa.array(known["heading"].astype(np.float32)),
    }
    time = _once(parts["time"], read_times)
    if time.null_count < len(time):
        columns["time"] = time
    for name in NUMBERS:
        if _filled(parts[name]) and not np.isnan(values := numbers(parts[name])).all():
            columns[name] = pa.array(values)
    for name in WORDS:
        if _filled(parts[name]):
            columns[name] = parts[name]
    return columns


def _once(texts: pa.Array, read: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Read each different text once: a city has one zone and a few dozen dates."""
    encoded = texts.dictionary_encode()
    return read(encoded.dictionary).take(encoded.indices)


def _filled(texts: pa.Array) -> bool:
    return bool(pc.any(pc.not_equal(texts, "")).as_py())


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
