"""Answers to many photos put into a file of the kind its ending says.

The page is a map of them in clusters, each with what it looks like.

A block a photo is on the page once; a click on the map shows the same block there.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from evenplace.errors import RunError, SettingError
from evenplace.photos.files import whole_file
from evenplace.places import Places
from evenplace.report.answer_files import WRITERS, say_sure
from evenplace.report.map import Cells, Points, map_html
from evenplace.report.page import Figure, Section, page, part, say
from evenplace.report.pictures import Pictures
from evenplace.run.located import ABSTAINED, UNREADABLE, Located

KINDS = (*WRITERS, ".html")
GLOBE = (".geojson", ".gpx", ".kml")  # kinds that know degrees only
MOODS = (("sure", "--good"), ("likely", "--middle"), ("a guess", "--bad"))
_SURE, _LIKELY = 0.9, 0.5  # as `serve/assets/answer.js` has them
COPIED = 1000  # pictures that are copied into the page; the others stay links


def check_out(out: Path, zones: Sequence[int]) -> None:
    """Refuse a file of a kind nobody knows, or one that needs degrees where there are none."""
    kind = out.suffix.lower()
    if kind not in KINDS:
        raise SettingError(f"--out {out} ends in no kind of answers; use {', '.join(KINDS)}")
    if 0 in zones and kind in GLOBE:
        raise SettingError(
            f"--out {out} needs degrees, and this database has local metres; use .csv, .parquet "
            "or .html"
        )


def write_answers(lines: Sequence[Located], out: Path, places: Places) -> None:
    """Write answers whole.  places: what the map page shows as photographed."""
    kind = out.suffix.lower()
    with whole_file(out, RunError) as draft:
        if kind == ".html":
            draft.write_text(answer_page(lines, places, out.parent), encoding="utf-8")
        else:
            draft.write_bytes(WRITERS[kind](lines))


def mood(line: Located) -> int:
    """A row of MOODS; only a probability makes sure."""
    if line.calibrated and line.confidence >= _SURE:
        return 0
    return 1 if line.confidence >= _LIKELY else 2


def answer_page(lines: Sequence[Located], places: Places, folder: Path) -> str:
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


def _figures(lines: Sequence[Located]) -> list[Figure]:
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


def _map(answers: Sequence[Located], places: Places) -> Markup:
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


def _caption(answers: Sequence[Located]) -> Markup:
    many = Counter(mood(line) for line in answers)
    moods = [(name, colour, f"{many[number]:,}") for number, (name, colour) in enumerate(MOODS)]
    return say("answers", moods, next((one.doubt for one in answers if not one.calibrated), ""))


def _block(number: int, line: Located, pictures: Pictures) -> dict[str, Any]:
    name = Path(line.photo).name
    best = line.matches[0] if line.matches else None
    return {
        "number": number,
        "name": name,
        "photo": pictures.html(line.photo, name),
        "match": pictures.html(best.path, f"match {Path(best.path).name}") if best else "",
        "where": _where(line),
        "told": say_sure(line) if line.answered else line.reason,
    }


def _where(line: Located) -> str:
    if not line.answered or line.spot is None:
        return ""
    spot = line.spot
    if spot.latitude is None:
        return f"east {spot.east:.0f}, north {spot.north:.0f}"
    return f"{spot.latitude:.6f}, {spot.longitude:.6f}"


def _credits(lines: Sequence[Located]) -> str:
    """Whose photos are shown, where their licences ask for it."""
    named = sorted({one.credit for line in lines for one in line.matches[:1] if one.credit})
    return f"Photos: {'; '.join(named)}" if named else ""
