"""Answers to many photos as a page: a map of them in clusters, each with what it looks like.

A block a photo is on the page once; a click on the map shows the same block there.
"""

import html
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np

from evenplace.places import Places
from evenplace.report.answer_files import say_sure
from evenplace.report.audit_pictures import thumbnail
from evenplace.report.map import Cells, Points, map_html
from evenplace.report.page import Figure, Section, asset, figures_html, page
from evenplace.run.located import ABSTAINED, UNREADABLE, Located

MOODS = (("sure", "--good"), ("likely", "--middle"), ("a guess", "--bad"))
_SURE, _LIKELY = 0.8, 0.5
COPIED = 1000  # pictures that are copied into the page; the others stay links


def mood(confidence: float) -> int:
    """A row of MOODS."""
    return 0 if confidence >= _SURE else 1 if confidence >= _LIKELY else 2


def answer_page(lines: Sequence[Located], places: Places, folder: Path) -> str:
    """The page; pictures beyond the first thousand are links relative to `folder`."""
    answers = [line for line in lines if line.answered and line.spot is not None]
    pictures = _Pictures(folder)
    blocks = [_block(number, line, pictures) for number, line in enumerate(answers)]
    others = [_block(-1, line, pictures) for line in lines if line.status == ABSTAINED]
    sections = [Section("", figures_html(_figures(lines)))]
    if answers:
        sections += [
            Section("Where they were taken", _map(answers, places), _caption(answers)),
            Section("Photo by photo", _list(blocks), "The photo, and what it looks like."),
        ]
    if others:
        sections.append(Section("Without an answer", _list(others)))
    unread = [line for line in lines if line.status == UNREADABLE]
    if unread:
        items = "".join(
            f"<li>{html.escape(Path(line.photo).name)}: {html.escape(line.reason)}</li>"
            for line in unread
        )
        sections.append(Section("Unreadable", f"<ul>{items}</ul>"))
    return page("Where these photos were taken", sections, foot=_credits(lines))


class _Pictures:
    """Small copies while they last, then links."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._left = folder, COPIED
        self._made: dict[str, str] = {}

    def html(self, path: str, text: str) -> str:
        if path not in self._made:
            self._made[path] = self._source(path)
        if not self._made[path]:
            return f'<span class="none">{html.escape(text)}</span>'
        return f'<img loading="lazy" alt="{html.escape(text)}" src="{self._made[path]}">'

    def _source(self, path: str) -> str:
        if "#t=" in path:
            return ""  # a frame has no file
        self._left -= 1
        return (
            thumbnail(path, []) if self._left >= 0 else quote(os.path.relpath(path, self._folder))
        )


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


def _map(answers: Sequence[Located], places: Places) -> str:
    spots = np.array([(line.spot.east, line.spot.north) for line in answers if line.spot])
    photographed = np.flatnonzero(places.counts > 0)
    cells = Cells(
        places.outlines[photographed],
        np.zeros(len(photographed), np.uint8),
        (("photographed places", "--line"),),
        {"photos": places.counts[photographed]},
    )
    points = Points(
        spots,
        np.array([mood(line.confidence) for line in answers], np.uint8),
        MOODS,
        [f"#photo-{number}" for number in range(len(answers))],
        radius=6,
        clusters=True,
    )
    return map_html(cells, points, label="map of the answers; they are listed below too")


def _caption(answers: Sequence[Located]) -> str:
    many = Counter(mood(line.confidence) for line in answers)
    marks = " ".join(
        f'<span class="mark" style="background:var({colour})"></span>{name} {many[number]:,}'
        for number, (name, colour) in enumerate(MOODS)
    )
    meaning = "their confidence is the share that is right"
    if doubt := next((line.doubt for line in answers if not line.calibrated), ""):
        meaning = f"their confidence is a score and no probability, since {html.escape(doubt)}"
    return f"{marks}; {meaning}. Choose a dot to see the photo beside its match."


def _list(blocks: Sequence[str]) -> str:
    return f'<style>{asset("answers.css")}</style><ol class="located">{"".join(blocks)}</ol>'


def _block(number: int, line: Located, pictures: _Pictures) -> str:
    name = html.escape(Path(line.photo).name)
    best = line.matches[0] if line.matches else None
    match = "" if best is None else pictures.html(best.path, f"match {Path(best.path).name}")
    told = html.escape(line.reason if not line.answered else say_sure(line))
    own = f' id="photo-{number}"' if number >= 0 else ""
    return (
        f'<li{own}><div class="strip">{pictures.html(line.photo, name)}{match}</div>'
        f"<b>{name}</b><p>{_where(line)}{told}</p></li>"
    )


def _where(line: Located) -> str:
    if not line.answered or line.spot is None:
        return ""
    spot = line.spot
    if spot.latitude is None:
        return f"east {spot.east:.0f}, north {spot.north:.0f}<br>"
    return f"{spot.latitude:.6f}, {spot.longitude:.6f}<br>"


def _credits(lines: Sequence[Located]) -> str:
    """Whose photos are shown, where their licences ask for it."""
    named = sorted({one.credit for line in lines for one in line.matches[:1] if one.credit})
    return f"<p>Photos: {html.escape('; '.join(named))}</p>" if named else ""
