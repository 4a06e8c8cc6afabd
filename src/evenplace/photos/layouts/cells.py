"""Cells of a table as numbers, angles and times, however a spreadsheet writes them."""

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenplace.arrays import Doubles

_ANGLE = re.compile(  # N 52° 30' 1.5", 52.5 N, -13:15:00
    r"([NSEW]?)\s*(-?)([\d.]+)\s*[°º:]?\s*(?:([\d.]+)\s*['′’:]?\s*)?(?:([\d.]+)\s*(?:[\"″”]|'')?\s*)?([NSEW]?)"
)
_TIME = re.compile(r"(\d{4})\D(\d\d)\D(\d\d)(?:\D(\d\d:\d\d(?::\d\d)?))?")


def read_number(value: object) -> float:
    try:
        return float(value.replace(",", ".") if isinstance(value, str) else value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")


def read_angle(value: object) -> float:
    """A number of degrees, or degrees, minutes and seconds with the side of the globe."""
    match = _ANGLE.fullmatch(str(value).replace(",", ".").strip().upper())
    if match is None:
        return read_number(value)
    side, sign, *texts, other = match.groups()
    degrees, *parts = (read_number(text or 0) for text in texts)
    if max(parts) >= 60:
        return float("nan")
    degrees += parts[0] / 60 + parts[1] / 3600
    return -degrees if sign or {side, other} & {"S", "W"} else degrees


def read_time(text: object) -> np.datetime64:
    """A clock's time, as in ISO or EXIF; a zone behind it is passed over.  NaT if it is none."""
    match = _TIME.match(str(text).strip("\x00 "))
    try:
        return np.datetime64("{}-{}-{}T{}".format(*match.groups("00:00")) if match else "NaT", "s")
    except ValueError:
        return np.datetime64("NaT", "s")


def numbers(
    column: pa.Array | pa.ChunkedArray, read: Callable[[object], float] = read_number
) -> Doubles:
    """A column as numbers, NaN where it holds none; one cast when all are good."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.if_else(pc.equal(column, ""), "nan", column)
    try:
        return np.asarray(column.cast(pa.float64()), np.float64)
    except pa.ArrowInvalid:
        return np.array([read(value) for value in column.to_pylist()])


def times(column: pa.ChunkedArray) -> pa.Array:
    """A column as times: dates, texts, or (milli)seconds since 1970; null where it is none."""
    values = column.combine_chunks()
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        seconds = numbers(column)
        seconds = np.where(seconds > 1e11, seconds / 1000, seconds)
        return pa.array(np.where(np.isnan(seconds), 0, seconds).astype("datetime64[s]"),
                        mask=np.isnan(seconds))  # fmt: skip
    try:
        return values.cast(pa.timestamp("s"), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        read = np.array([read_time(value) for value in values.to_pylist()], "datetime64[s]")
        return pa.array(read, mask=np.isnat(read))
