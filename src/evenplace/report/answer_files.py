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
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from evenplace.run.located import Located

Lines = Sequence[Located]
COLUMNS = (
    "photo", "status", "latitude", "longitude", "uncertainty_m", "confidence", "calibrated",
    "verified_matches", "reason", "match", "similarity", "time", "east", "north", "zone",
    "own_gps_m", "credit",
)  # fmt: skip
_EARTH = 6_371_000.0


def answer_row(line: Located) -> dict[str, Any]:
    """What is told of a photo, by column; nothing that was not answered has a position."""
    spot = line.spot if line.answered else None
    best = line.matches[0] if line.matches else None
    return dict(
        zip(
            COLUMNS,
            (
                line.photo,
                line.status,
                spot and spot.latitude,
                spot and spot.longitude,
                None if spot is None else round(spot.major, 1),
                None if best is None else line.confidence,
                line.calibrated,
                line.verified,
                line.reason,
                best and best.path,
                best and best.similarity,
                line.taken or (None if line.second is None else f"{line.second:.2f} s"),
                spot and spot.east,
                spot and spot.north,
                spot and spot.zone,
                own_gps_gap(line),
                best and best.credit,
            ),
            strict=True,
        )
    )


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
    root = ET.Element("gpx", version="1.1", creator="EvenPlace",
                      xmlns="http://www.topografix.com/GPX/1/1")  # fmt: skip
    answers = [line for line in lines if line.answered]
    for line in answers:
        point = _gpx_point(root, "wpt", line)
        _text(point, "name", Path(line.photo).name)
        _text(point, "desc", say_sure(line))
        _text(point, "src", line.matches[0].path)
    timed = sorted((line for line in answers if line.taken), key=lambda line: line.taken)
    if timed:
        track = ET.SubElement(ET.SubElement(root, "trk"), "trkseg")
        for line in timed:
            _gpx_point(track, "trkpt", line)
    return _xml(root)


def kml_bytes(lines: Lines) -> bytes:
    root = ET.Element("kml", xmlns="http://www.opengis.net/kml/2.2")
    document = ET.SubElement(root, "Document")
    for line in lines:
        mark = ET.SubElement(document, "Placemark")
        _text(mark, "name", Path(line.photo).name)
        _text(mark, "description", say_sure(line) if line.answered else line.reason)
        if line.taken:
            _text(ET.SubElement(mark, "TimeStamp"), "when", f"{line.taken}Z")
        extended = ET.SubElement(mark, "ExtendedData")
        for name, value in answer_row(line).items():
            if value is not None:
                _text(ET.SubElement(extended, "Data", name=name), "value", str(value))
        if line.answered and line.spot is not None:
            point = ET.SubElement(mark, "Point")
            _text(point, "coordinates", f"{line.spot.longitude},{line.spot.latitude},0")
    return _xml(root)


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


def _gpx_point(parent: ET.Element, tag: str, line: Located) -> ET.Element:
    assert line.spot is not None
    point = ET.SubElement(parent, tag, lat=str(line.spot.latitude), lon=str(line.spot.longitude))
    if line.taken:
        _text(point, "time", f"{line.taken}Z")
    return point


def _text(parent: ET.Element, tag: str, text: str) -> None:
    printable = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
    ET.SubElement(parent, tag).text = printable


def _xml(root: ET.Element) -> bytes:
    ET.indent(root)
    return b"%s\n" % ET.tostring(root, "utf-8", xml_declaration=True)


WRITERS: dict[str, Callable[[Lines], bytes]] = {
    ".csv": csv_bytes,
    ".parquet": parquet_bytes,
    ".geojson": geojson_bytes,
    ".gpx": gpx_bytes,
    ".kml": kml_bytes,
}
