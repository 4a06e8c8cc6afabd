"""Photos: a table of what was taken and where, one row a photo, each column a numpy array.

Knows nothing of pixels, file names or places.

    path     large_string    what open() takes; the column may be absent
    east     float64         UTM metres
    north    float64         UTM metres
    zone     int8            UTM zone number, negative south of the equator, 0 for local metres
    heading  float32         degrees clockwise from north, NaN where unknown
    time     timestamp[s]    null where unknown; the column may be absent
    city     string          the data set's name of it, or ours; absent where all are of one

Readers add what else they know: note, pano, tile, pitch, frame, sequence (the drive it is of),
place, latitude, longitude.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from evenplace.arrays import Array, Doubles, Floats
from evenplace.errors import PhotoError
from evenplace.photos.cities import find_cities, is_made_up, zone_name
from evenplace.photos.files import whole_file

METADATA = b"evenplace.skipped"
ZONE_GAP = 1e5  # metres between photos of two zones on the third axis of `Photos.points`
TYPES = {
    "path": pa.large_string(),
    "east": pa.float64(),
    "north": pa.float64(),
    "zone": pa.int8(),
    "heading": pa.float32(),
    "time": pa.timestamp("s"),
}


@dataclass(frozen=True)
class Skipped:
    """A photo that a reader left out, and why."""

    path: str
    reason: str


class Photos:
    """Photos with their positions; immutable, cheap to slice, the same on disk as in memory."""

    __slots__ = ("skipped", "table")
    table: pa.Table
    skipped: tuple[Skipped, ...]

    def __init__(self, table: pa.Table, skipped: Sequence[Skipped] = ()) -> None:
        """Wrap a table that is already right; `from_arrays` is the one that checks."""
        object.__setattr__(self, "table", table.combine_chunks())
        object.__setattr__(self, "skipped", tuple(skipped))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Photos do not change; make new ones instead of setting {name}")

    def __reduce__(self) -> tuple[type[Self], tuple[pa.Table, tuple[Skipped, ...]]]:
        """Copy and pickle by making them anew: what refuses to change cannot be filled in."""
        return type(self), (self.table, self.skipped)

    @classmethod
    def from_arrays(
        cls,
        *,
        east: ArrayLike,
        north: ArrayLike,
        zone: ArrayLike = 0,
        heading: ArrayLike | None = None,
        time: ArrayLike | pa.Array | None = None,
        path: Sequence[str] | pa.Array | None = None,
        skipped: Sequence[Skipped] = (),
        **columns: Any,
    ) -> Self:
        """Make photos of plain arrays, refusing what no map can hold.

        Arrays of the right type are not copied.  Without a `city` column photos of several zones,
        or of clusters more than 20 km apart, get one (`photos.cities`).
        """
        east, north = np.asarray(east, np.float64), np.asarray(north, np.float64)
        made: dict[str, Any] = {} if path is None else {"path": _paths(path)}
        made |= {"east": east, "north": north}
        made["zone"] = _zones(zone, len(east))
        made["heading"] = _headings(heading, len(east))
        if time is not None:
            made["time"] = _times(time)
        made |= columns
        _check_lengths(made, len(east))
        _check_finite(made, "east", "north")
        if "city" not in made:
            made |= _cities(east, north, made["zone"])
        arrays = [
            value if isinstance(value, pa.Array) else pa.array(value) for value in made.values()
        ]
        return cls(pa.table(arrays, names=list(made)), skipped)

    @classmethod
    def at(cls, positions: Doubles, zone: ArrayLike = 0) -> Self:
        """Photos of which only the positions are known: (N, 2)."""
        return cls.from_arrays(east=positions[:, 0], north=positions[:, 1], zone=zone)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        return f"Photos({len(self)} photos, {len(self.skipped)} skipped, {self.table.column_names})"

    def __getitem__(self, which: slice | Array | Sequence[int]) -> "Photos":
        """Choose photos by a slice, by row numbers, or by a mask as long as they are."""
        if isinstance(which, slice) and which.step in (None, 1):
            start, stop, _ = which.indices(len(self))
            return Photos(self.table.slice(start, max(stop - start, 0)), self.skipped)
        rows = np.arange(len(self))[which if isinstance(which, slice) else np.asarray(which)]
        if rows.ndim != 1:
            raise PhotoError(
                f"photos are chosen by a slice, row numbers or a mask, not by {which!r}"
            )
        return Photos(self.table.take(pa.array(rows)), self.skipped)

    def column(self, name: str) -> Array:
        """One column as numpy: the very memory of the table where the type allows it."""
        if name not in self.table.column_names:
            known = ", ".join(self.table.column_names)
            raise PhotoError(f"these photos have no column {name!r}; they have {known}")
        values = self.table.column(name)
        if values.num_chunks == 0:
            return np.empty(0, values.type.to_pandas_dtype())
        array: Array = values.chunk(0).to_numpy(zero_copy_only=False)
        return array

    @property
    def east(self) -> Doubles:
        return self.column("east")

    @property
    def north(self) -> Doubles:
        return self.column("north")

    @property
    def zone(self) -> NDArray[np.int8]:
        return self.column("zone")

    @property
    def heading(self) -> Floats:
        return self.column("heading")

    @property
    def time(self) -> NDArray[np.datetime64]:
        """When each photo was taken, NaT where unknown."""
        if "time" not in self.table.column_names:
            return np.full(len(self), np.datetime64("NaT"), "datetime64[s]")
        return self.column("time").astype("datetime64[s]")

    @property
    def positions(self) -> Doubles:
        """East and north side by side: (N, 2), a copy."""
        return np.stack([self.east, self.north], axis=1)

    @property
    def paths(self) -> list[str]:
        if "path" not in self.table.column_names:
            raise PhotoError(
                "these photos have no files (made from arrays); pass path= to from_arrays"
            )
        paths: list[str] = self.table.column("path").to_pylist()
        return paths

    @property
    def names(self) -> list[str]:
        """Paths, or row numbers where there are no files."""
        known = "path" in self.table.column_names
        return self.paths if known else [f"row {row}" for row in range(len(self))]

    @property
    def zones(self) -> list[int]:
        """The UTM zones the photos are in, in ascending order; one, unless there are cities."""
        if len(self) and self.zone.min() == self.zone.max():
            return [int(self.zone[0])]
        counted = np.bincount(self.zone.astype(np.int16) + 128)
        return [int(number) - 128 for number in np.flatnonzero(counted)]

    @property
    def cities(self) -> list[str]:
        """The names of the cities, in ascending order."""
        if "city" not in self.table.column_names:
            return [zone_name(zone) for zone in self.zones]
        return sorted(pc.unique(self.table.column("city")).to_pylist())

    @property
    def city(self) -> NDArray[np.int32]:
        """Each photo's city, a row of `cities`: (N,)."""
        if "city" not in self.table.column_names:
            return np.zeros(len(self), np.int32)
        names = pa.array(self.cities, self.table.schema.field("city").type)
        rows = pc.index_in(self.table.column("city"), value_set=names)
        return np.asarray(rows).astype(np.int32)

    @property
    def points(self) -> Doubles:
        """Positions whose distances are right within a zone and never small across zones: (N, 3).

        East, north, and `apart`.
        """
        return np.stack([self.east, self.north, self.apart], axis=1)

    @property
    def apart(self) -> Doubles:
        """A third axis that keeps zones 100 km apart; zeros without memory for one zone: (N,)."""
        if len(self.zones) < 2:
            return np.broadcast_to(np.float64(0), len(self))
        apart: Doubles = (self.zone.astype(np.float64) - self.zone[0]) * ZONE_GAP
        return apart

    def write(self, path: str | Path) -> None:
        """Write a Parquet file, with what was skipped and why in its metadata."""
        skipped = json.dumps([asdict(one) for one in self.skipped]).encode()
        with whole_file(path) as draft:
            pq.write_table(self.table.replace_schema_metadata({METADATA: skipped}), draft)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read what `write` wrote."""
        try:
            table = pq.read_table(path)
        except (OSError, pa.ArrowException) as cause:
            raise PhotoError(
                f"{path} is no Parquet file of photos ({cause}); check the path"
            ) from cause
        for name in ("east", "north", "zone", "heading"):
            if name not in table.column_names or table.schema.field(name).type != TYPES[name]:
                raise PhotoError(
                    f"{path} has no column {name} of type {TYPES[name]}; "
                    "read a table of your own with read_photos(path)"
                )
        if "time" in table.column_names:  # Parquet knows no seconds
            at = table.column_names.index("time")
            table = table.set_column(at, "time", table.column("time").cast(TYPES["time"]))
        found = (table.schema.metadata or {}).get(METADATA, b"[]")
        return cls(
            table.replace_schema_metadata(None), [Skipped(**one) for one in json.loads(found)]
        )


def join_photos(parts: Sequence[Photos]) -> Photos:
    """Put photos of several folders or cities into one set; columns some lack are null there."""
    if not parts:
        raise PhotoError("there are no photos to join; give at least one set")
    tables = [part.table for part in parts]
    if not all(is_made_up(name) for part in parts for name in part.cities):
        tables = [_with_city(part) for part in parts]
    else:  # names of ours count the cities of one set
        tables = [table.drop_columns([*{"city"} & {*table.column_names}]) for table in tables]
    table = pa.concat_tables(tables, promote_options="permissive")
    if "city" not in table.column_names:
        axes = (np.asarray(table.column(name)) for name in ("east", "north", "zone"))
        for name, values in _cities(*axes).items():
            table = table.append_column(name, values)
    return Photos(table, [one for part in parts for one in part.skipped])


def _with_city(photos: Photos) -> pa.Table:
    """The table with a name in every row, to stand beside tables that have names."""
    if "city" in photos.table.column_names:
        return photos.table
    return photos.table.append_column("city", pa.array(photos.cities * len(photos), pa.string()))


def _cities(east: Any, north: Any, zone: Any) -> dict[str, pa.Array]:
    """A column of names where there are several cities, none where all photos are of one."""
    names, numbers = find_cities(east, north, zone)
    return {"city": pa.array(names).take(pa.array(numbers))} if len(names) > 1 else {}


def _paths(path: Sequence[str] | pa.Array) -> pa.Array:
    if isinstance(path, pa.ChunkedArray):
        path = path.combine_chunks()
    if isinstance(path, pa.Array):
        return path.cast(pa.large_string())
    return pa.array([str(one) for one in path], pa.large_string())


def _zones(zone: ArrayLike, length: int) -> NDArray[np.int8]:
    zones = np.asarray(zone)
    beyond = (zones < -60) | (zones > 60)
    if beyond.any():
        raise PhotoError(
            f"there is no UTM zone {zones[beyond].flat[0]}; "
            "zones are 1 to 60, negative in the south, 0 for local metres"
        )
    return np.broadcast_to(zones.astype(np.int8), zones.shape or (length,))


def _headings(heading: ArrayLike | None, length: int) -> Floats:
    if heading is None:
        return np.full(length, np.nan, np.float32)
    degrees = np.asarray(heading, np.float32)
    if degrees.size and not (
        np.nanmin(degrees, initial=0) >= 0 and np.nanmax(degrees, initial=0) < 360
    ):
        if np.isinf(degrees).any():
            row = int(np.flatnonzero(np.isinf(degrees))[0])
            raise PhotoError(
                f"photo {row} has heading {degrees[row]}; give degrees, or NaN for unknown"
            )
        degrees = np.mod(degrees, np.float32(360))
        degrees = np.where(degrees >= 360, np.float32(0), degrees)  # -1e-9 mod 360 rounds to 360
    return degrees


def _times(time: ArrayLike | pa.Array) -> pa.Array:
    if isinstance(time, pa.ChunkedArray):
        time = time.combine_chunks()
    if not isinstance(time, pa.Array):
        time = pa.array(np.asarray(time, "datetime64[s]"))
    return time.cast(pa.timestamp("s"))


def _check_lengths(columns: dict[str, Any], length: int) -> None:
    for name, values in columns.items():
        if len(values) != length:
            raise PhotoError(
                f"there are {length} values of east but {len(values)} of {name}; give one a photo"
            )


def _check_finite(columns: dict[str, Any], *names: str) -> None:
    for name in names:
        values = columns[name]
        if values.ndim != 1:
            raise PhotoError(f"{name} has shape {values.shape}; give one number a photo")
        finite = np.isfinite(values)
        if not finite.all():
            row = int(np.flatnonzero(~finite)[0])
            photo = columns["path"][row].as_py() if "path" in columns else f"photo {row}"
            raise PhotoError(
                f"{photo} has {name} = {values[row]} ({np.sum(~finite)} such); "
                "leave photos without a position out"
            )
