"""From what a reader found to `Photos`: rows without a position and other zones are set aside."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenplace.errors import PhotoError
from evenplace.photos.geodesy import NORTH, SOUTH
from evenplace.photos.table import Photos, Skipped


def gather(
    columns: Mapping[str, Any],
    skipped: Sequence[Skipped] = (),
    *,
    reasons: Mapping[int, str] | None = None,
    zone: int | None = None,
    where: object = "the table",
) -> Photos:
    """Make photos of columns, leaving out the rows with a reason, with no position, in other zones.

    Every row left out is in `Photos.skipped`; when none is left, that is an error.
    """
    east, north = (np.asarray(columns[name], np.float64) for name in ("east", "north"))
    zones = np.broadcast_to(np.asarray(columns.get("zone", 0), np.int8), east.shape)
    why = dict(reasons or {})
    _tell_poles(why, columns)
    for row in np.flatnonzero(~(np.isfinite(east) & np.isfinite(north))).tolist():
        why.setdefault(row, f"it has no position (east {east[row]}, north {north[row]})")
    if zone is not None:
        for row in np.flatnonzero(zones != zone).tolist():
            why.setdefault(row, f"it is in UTM zone {zones[row]}, and zone {zone} was asked for")
    left_out = [*skipped, *(Skipped(_name(columns, row), why[row]) for row in sorted(why))]
    if len(why) == len(east):
        example = left_out[0] if left_out else Skipped("nothing", "it has no rows")
        raise PhotoError(
            f"no photo of {where} can be placed, for example {example.path}: {example.reason}; "
            "check the coordinates, or name the layout and its columns"
        )
    made = {**columns, "east": east, "north": north, "zone": zones}
    if why:
        keep = np.ones(len(east), bool)
        keep[list(why)] = False
        made = {name: _choose(values, keep) for name, values in made.items()}
    return Photos.from_arrays(**made, skipped=left_out)


def keep_zone(photos: Photos, zone: int | None) -> Photos:
    """Keep the photos of one zone of several, and say that the others were left out."""
    if zone is None or photos.zones == [zone]:
        return photos
    away = photos[photos.zone != zone]
    if len(away) == len(photos):
        raise PhotoError(f"no photo is in UTM zone {zone}; they are in {photos.zones}")
    reasons = [f"it is in UTM zone {one}, and zone {zone} was asked for" for one in away.zone]
    out = [Skipped(*pair) for pair in zip(away.names, reasons, strict=True)]
    return Photos(photos[photos.zone == zone].table, [*photos.skipped, *out])


def _tell_poles(why: dict[int, str], columns: Mapping[str, Any]) -> None:
    """Say of photos near a pole why they have no metres."""
    if "latitude" in columns:
        latitude = np.asarray(columns["latitude"], np.float64)
        beyond = (latitude < SOUTH) | (latitude > NORTH)
        for row in np.flatnonzero(beyond).tolist():
            told = f"its latitude {latitude[row]:g} is beyond UTM, which ends at -80 and 84"
            if abs(latitude[row]) > 90:
                told = f"its latitude {latitude[row]:g} is beyond a pole; is it the longitude?"
            why.setdefault(row, told)


def _choose(values: Any, keep: NDArray[np.bool_]) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values.filter(pa.array(keep))
    if isinstance(values, np.ndarray):
        return values[keep]
    return [value for value, kept in zip(values, keep, strict=True) if kept]


def _name(columns: Mapping[str, Any], row: int) -> str:
    return str(columns["path"][row]) if "path" in columns else f"row {row}"
