"""Answers to many photos as bytes of a file, by its ending.

.csv .parquet    a row a photo, whatever became of it
.geojson .kml    a feature a photo; without an answer it has no geometry
.gpx             a waypoint an answer, and a track of those whose time is known
"""

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from evenplace.report.page import templates
from evenplace.run.located import UNREADABLE, Located

Lines = Sequence[Located]
_EARTH = 6_371_000.0


def answer_row(line: Located) -> dict[str, Any]:
    """What is told of a photo, by column; nothing that was not answered has a position."""
    spot = line.spot if line.answered else None
    best = line.matches[0] if line.matches else None
    return {
        "photo": line.photo,
        "status": line.status,
        "latitude": spot and spot.latitude,
        "longitude": spot and spot.longitude,
        "uncertainty_m": spot and round(spot.major, 1),
        "confidence": best and line.confidence,
        "calibrated": line.calibrated,
        "verified_matches": line.verified,
        "reason": line.reason,
        "match": best and best.path,
        "similarity": best and best.similarity,
        "time": line.taken or (None if line.second is None else f"{line.second:.2f} s"),
        "east": spot and spot.east,
        "north": spot and spot.north,
        "zone": spot and spot.zone,
        "own_gps_m": own_gps_gap(line),
        "credit": best and best.credit,
    }


def own_gps_gap(line: Located) -> float | None:
    """Metres between the answer and the position the photo has in its EXIF, where it has one."""
    if line.own is None or not line.answered or line.spot is None or line.spot.latitude is None:
        return None
    assert line.spot.longitude is not None
    here, there = map(math.radians, (line.spot.latitude, line.own[0]))
    turn = math.radians(line.spot.longitude - line.own[1])
    half = math.sin((here - there) / 2) ** 2
    half += math.cos(here) * math.cos(there) * math.sin(turn / 2) ** 2
    return round(2 * _EARTH * math.asin(min(1.0, math.sqrt(half))), 1)


def csv_bytes(lines: Lines) -> bytes:
    text = io.StringIO(newline="")
    width = max((len(line.matches) for line in lines), default=0)
    others = [f"match_{number}" for number in range(2, width + 1)]
    table = csv.DictWriter(text, [*COLUMNS, *others], lineterminator="\n")
    table.writeheader()
    for line in lines:
        more = {f"match_{at}": one.path for at, one in enumerate(line.matches[1:], start=2)}
        table.writerow(answer_row(line) | more)
    return text.getvalue().encode("utf-8", "surrogateescape")


def parquet_bytes(lines: Lines) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [answer_row(line) | {"matches": _matches(line)} for line in lines]
    numbers = ("latitude", "longitude", "uncertainty_m", "confidence", "similarity", "east",
               "north", "own_gps_m")  # fmt: skip
    kinds = dict.fromkeys(COLUMNS, pa.string()) | dict.fromkeys(numbers, pa.float64())
    kinds |= {"calibrated": pa.bool_(), "verified_matches": pa.int64(), "zone": pa.int8()}
    match = pa.struct({"path": pa.string(), "latitude": pa.float64(), "longitude": pa.float64(),
                       "similarity": pa.float64(), "verified": pa.int64()})  # fmt: skip
    schema = pa.schema({**kinds, "matches": pa.list_(match)})
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), sink)
    return sink.getvalue()


def geojson_bytes(lines: Lines) -> bytes:
    features = []
    for line in lines:
        row = answer_row(line)
        where = [row.pop("longitude"), row.pop("latitude")]
        point = {"type": "Point", "coordinates": where} if line.answered else None
        row["matches"] = _matches(line)
        features.append({"type": "Feature", "geometry": point, "properties": row})
    made = {"type": "FeatureCollection", "features": features}
    return json.dumps(made, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def gpx_bytes(lines: Lines) -> bytes:
    answers = [line for line in lines if line.answered]
    timed = sorted((line for line in answers if line.taken), key=lambda line: line.taken)
    return _templates().get_template("gpx.xml").render(answers=answers, timed=timed).encode()


def kml_bytes(lines: Lines) -> bytes:
    rows = [(line, answer_row(line)) for line in lines]
    return _templates().get_template("kml.xml").render(rows=rows).encode()


def say_sure(line: Located) -> str:
    """How sure an answer is, and give or take how much."""
    metres = "" if line.spot is None else f"give or take {line.spot.major:.0f} m"
    matches = "" if line.verified is None else f", {line.verified} points match"
    return f"{metres}, confidence {line.confidence:.2f}{matches}"


def _matches(line: Located) -> list[dict[str, Any]]:
    return [
        {
            "path": one.path,
            "latitude": one.latitude,
            "longitude": one.longitude,
            "similarity": one.similarity,
            "verified": one.inliers,
        }
        for one in line.matches
    ]


def _printable(text: object) -> str:
    """What XML can hold: a name may have bytes that are no letters."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in str(text))


@cache
def _templates() -> Environment:
    own, base = templates().overlay(), lambda path: Path(path).name
    own.filters = {**own.filters, "printable": _printable, "sure": say_sure, "base": base}
    return own


COLUMNS = tuple(answer_row(Located("", UNREADABLE)))
WRITERS: dict[str, Callable[[Lines], bytes]] = {
    ".csv": csv_bytes,
    ".parquet": parquet_bytes,
    ".geojson": geojson_bytes,
    ".gpx": gpx_bytes,
    ".kml": kml_bytes,
}
