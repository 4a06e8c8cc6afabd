"""Answers to many photos put into a file of the kind its ending says.

.csv .parquet    a row a photo, whatever became of it
.geojson .kml    a feature a photo; without an answer it has no geometry
.gpx             a waypoint an answer, and a track of those whose time is known
.html            a page: a map of them in clusters, each with what it looks like.  A block a photo
                 is on the page once; a click on the map shows the same block there
"""

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment
from markupsafe import Markup

from evenplace.errors import RunError, SettingError
from evenplace.photos.files import check_folder, whole_file
from evenplace.photos.geodesy import say_spot
from evenplace.places import Places
from evenplace.report.map import Cells, Points, map_html
from evenplace.report.page import Figure, Section, page, part, say, templates
from evenplace.report.pictures import Pictures
from evenplace.run.locate_many import ABSTAINED, UNREADABLE, Located

Lines = Sequence[Located]
GLOBE = (".geojson", ".gpx", ".kml")  # kinds of files that know degrees only
MOODS = (("sure", "--good"), ("likely", "--middle"), ("a guess", "--bad"))
_SURE, _LIKELY = 0.9, 0.5  # as `serve/assets/answer.js` has them
COPIED = 1000  # pictures that are copied into the page; the others stay links
_EARTH = 6_371_000.0


def check_out(out: Path, kinds: Sequence[str], zones: Sequence[int], replace: bool) -> None:
    """Refuse a file before hours of work: of no kind, there already, or where none can be."""
    kind = out.suffix.lower()
    if kind not in kinds:
        raise SettingError(f"--out {out} ends in no kind of file there is; use {', '.join(kinds)}")
    if 0 in zones and kind in GLOBE:
        flat = [one for one in kinds if one not in GLOBE]
        raise SettingError(
            f"--out {out} needs degrees, and these photos have local metres; use {', '.join(flat)}"
        )
    if out.is_dir():
        raise RunError(f"{out} is a folder; choose another name")
    check_folder(out.parent, RunError)
    if out.exists() and not replace:
        raise RunError(f"{out} exists; choose another name, or write it anew with --replace")


def write_answers(lines: Lines, outs: Sequence[Path], places: Places) -> None:
    """Write answers whole, into all files or none.  places: what the map page shows as known."""
    with ExitStack() as all_of_them:
        for out in outs:
            kind, draft = out.suffix.lower(), all_of_them.enter_context(whole_file(out, RunError))
            if kind == ".html":
                draft.write_bytes(_bytes(answer_page(lines, places, out.parent)))
            else:
                draft.write_bytes(WRITERS[kind](lines))


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
    for row in rows:
        row |= {name: _bytes(row[name]).decode() for name in ("photo", "reason")}
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
    return _bytes(json.dumps(made, ensure_ascii=False, allow_nan=False))


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


def _bytes(text: str) -> bytes:
    """UTF-8, with a question mark for each byte of a name that is none."""
    return text.encode("utf-8", "replace")


def _printable(text: object) -> str:
    """What XML can hold: a name may have bytes that are no letters."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in str(text))


@cache
def _templates() -> Environment:
    own, base = templates().overlay(), lambda path: Path(path).name
    own.filters = {**own.filters, "printable": _printable, "sure": say_sure, "base": base}
    return own


def mood(line: Located) -> int:
    """A row of MOODS; only a probability makes sure."""
    if line.calibrated and line.confidence >= _SURE:
        return 0
    return 1 if _LIKELY <= line.confidence <= 1 else 2  # above: a count of matches, say


def answer_page(lines: Lines, places: Places, folder: Path) -> str:
    """The page; pictures beyond the first thousand are links relative to `folder`."""
    answers = [line for line in lines if line.answered and line.spot is not None]
    pictures = Pictures(folder, COPIED)
    blocks = [_block(number, line, pictures) for number, line in enumerate(answers)]
    others = [_block(-1, line, pictures) for line in lines if line.status == ABSTAINED]
    unread = [(Path(one.photo).name, one.reason) for one in lines if one.status == UNREADABLE]
    sections = [Section("", part("tiles", _figures(lines)))]
    if answers:
        sections += [
            Section("Where they were taken", _map(answers, places), _caption(answers)),
            Section(
                "Photo by photo", part("located", blocks), "The photo, and what it looks like."
            ),
        ]
    if others:
        sections.append(Section("Without an answer", part("located", others)))
    if unread:
        sections.append(Section("Unreadable", part("reasons", unread)))
    return page("Where these photos were taken", sections, foot=_credits(lines))


def _figures(lines: Lines) -> list[Figure]:
    count = Counter(line.status for line in lines)
    answers = [line for line in lines if line.answered]
    sure = float(np.median([line.confidence for line in answers])) if answers else 0.0
    metres = [line.spot.major for line in answers if line.spot is not None]
    return [
        Figure(f"{len(lines):,}", "photos"),
        Figure(f"{len(answers):,}", "answered"),
        Figure(f"{count[ABSTAINED]:,}", "without an answer"),
        Figure(f"{count[UNREADABLE]:,}", "unreadable"),
        Figure(f"{sure:.2f}", "median confidence"),
        Figure(f"{np.median(metres) if metres else 0:.0f} m", "median uncertainty"),
    ]


def _map(answers: Lines, places: Places) -> Markup:
    spots = np.array([(line.spot.east, line.spot.north) for line in answers if line.spot])
    photographed = np.flatnonzero(places.counts > 0)
    cells = Cells(
        places.outlines[photographed],
        np.zeros(len(photographed), np.uint8),
        (("photographed places", "--faint"),),
        {"photos": places.counts[photographed]},
    )
    points = Points(
        spots,
        np.array([mood(line) for line in answers], np.uint8),
        MOODS,
        [f"#photo-{number}" for number in range(len(answers))],
        radius=6,
        clusters=True,
    )
    return map_html(cells, points, label="map of the answers; they are listed below too")


def _caption(answers: Lines) -> Markup:
    many = Counter(mood(line) for line in answers)
    moods = [(name, colour, f"{many[number]:,}") for number, (name, colour) in enumerate(MOODS)]
    return say("answers", moods, next((one.doubt for one in answers if not one.calibrated), ""))


def _block(number: int, line: Located, pictures: Pictures) -> dict[str, Any]:
    name = Path(line.photo).name
    best = line.matches[0] if line.matches else None
    spot = line.spot if line.answered else None
    return {
        "number": number,
        "name": name,
        "photo": pictures.html(line.photo, name),
        "match": pictures.html(best.path, f"match {Path(best.path).name}") if best else "",
        "where": say_spot(spot.east, spot.north, spot.latitude, spot.longitude) if spot else "",
        "told": say_sure(line) if line.answered else line.reason,
    }


def _credits(lines: Lines) -> str:
    """Whose photos are shown, where their licences ask for it."""
    named = sorted({one.credit for line in lines for one in line.matches[:1] if one.credit})
    return f"Photos: {'; '.join(named)}" if named else ""


COLUMNS = tuple(answer_row(Located("", UNREADABLE)))
WRITERS: dict[str, Callable[[Lines], bytes]] = {
    ".csv": csv_bytes,
    ".parquet": parquet_bytes,
    ".geojson": geojson_bytes,
    ".gpx": gpx_bytes,
    ".kml": kml_bytes,
}
KINDS = (*WRITERS, ".html")
