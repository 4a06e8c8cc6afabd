"""An answer as plain data: what the service says and what `evenplace locate --json` prints.

Positions are metres (UTM east and north, with the zone) and degrees, where the database is tied
to the globe.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenplace.photos.gather import credits_of
from evenplace.photos.geodesy import degrees
from evenplace.places.tiers import TIERS
from evenplace.retrieval.answers import Answer
from evenplace.retrieval.index import Index
from evenplace.retrieval.manifest import NAME

_DAYLIGHT = "take it again in daylight, level, from across the street, with whole facades in view"
_THIN = 10  # photos below which a place is too thin to recognise from every side


def index_name(folder: Path) -> str:
    """A short name of the generation that answers; its photos are called by it.  8 hex digits."""
    return hashlib.blake2b((folder / NAME).read_bytes(), digest_size=4).hexdigest()


def answer_json(index: Index, found: Answer, name: str) -> dict[str, Any]:
    """One answer, as lists and numbers; `answers_json` of one."""
    return answers_json(index, [found], name)[0]


def answers_json(index: Index, answers: Sequence[Answer], name: str) -> list[dict[str, Any]]:
    """Answers, as lists and numbers.  name: of the index, in the names of its photos.

    A hit's `path` is for whoever holds the database; the service keeps it to itself.  All
    positions become degrees together: each call costs as much as a hundred numbers.
    """
    where: list[tuple[float, float]] = []
    zones: list[int] = []
    zone = index.photos.zone
    for found in answers:
        rows = [hit.row for hit in found.hits]
        where += [(found.position.east, found.position.north)] if rows else []
        where += [hit.position for hit in found.hits] + [guess.centre for guess in found.places]
        zones += zone[rows[:1] + rows].tolist()  # a position is around its first hit
        zones += index.places.zones[[guess.place for guess in found.places]].tolist()
    spots = iter(spots_json(where, zones))
    known = _known_of(index, {hit.row for found in answers for hit in found.hits})
    return [_answer(index, found, name, spots, known) for found in answers]


def _known_of(index: Index, rows: set[int]) -> dict[int, dict[str, Any]]:
    """Which way photos of the database look and whose they are, each looked up once."""
    heading, order = index.photos.heading, sorted(rows)
    return {
        row: {"heading": round(ahead, 1) if np.isfinite(ahead) else None, "credit": credit}
        for row, ahead, credit in zip(
            order, heading[order].tolist(), credits_of(index.photos, order), strict=True
        )
    }


def _answer(
    index: Index,
    found: Answer,
    name: str,
    spots: Iterator[dict[str, Any]],
    known: dict[int, dict[str, Any]],
) -> dict[str, Any]:
    return {
        "kind": "answer",
        "abstains": found.abstains,
        "reason": found.reason,
        "remedy": what_would_help(found) if found.abstains else "",
        "confidence": round(float(found.confidence), 4),
        "calibrated": found.calibrated,
        "doubt": found.doubt,
        "meaning": found.meaning,
        "position": _position(found, next(spots)) if found.hits else None,
        "hits": [
            next(spots)
            | {
                "photo": f"{name}-{hit.row}",
                "path": hit.path,
                "similarity": round(float(hit.similarity), 4),
                "distance": round(float(hit.distance), 5),
                "place": hit.place,
                "tier": tier_name(index, hit.place),
                **known[hit.row],
                "inliers": hit.inliers,
            }
            | ({} if hit.pairs is None else {"pairs": hit.pairs.round(4).tolist()})
            for hit in found.hits
        ],
        "places": [
            next(spots)
            | {
                "place": guess.place,
                "posterior": min(1.0, round(float(guess.posterior), 6)),
                "photos": guess.photos,
                "tier": guess.tier,
            }
            for guess in found.places
        ],
        "elapsed_ms": {stage: round(ms, 2) for stage, ms in found.elapsed_ms.items()},
        "looked": found.looked,
    }


def what_would_help(found: Answer) -> str:
    """Advice that fits what was found: a thin place wants photos, a rich one a better query."""
    if not found.places:
        return _DAYLIGHT
    photos = found.places[0].photos
    if photos < _THIN:
        number = "one photo" if photos == 1 else f"{photos} photos"
        return f"{_DAYLIGHT}; the likeliest place has only {number}, and more of it would help"
    return f"{_DAYLIGHT}; or add photos of that street to the database"


def spots_json(positions: ArrayLike, zones: ArrayLike) -> list[dict[str, Any]]:
    """Positions in metres of their zone, and in degrees where there is a globe: (n, 2), (n)."""
    metres = np.asarray(positions, np.float64).reshape(-1, 2)
    globe = degrees(metres, zones).round(7).tolist()
    each = np.broadcast_to(np.asarray(zones, np.int64), len(metres)).tolist()
    return [
        {"east": east, "north": north, "zone": zone}
        | {"latitude": _known(latitude), "longitude": _known(longitude)}
        for (east, north), (latitude, longitude), zone in zip(
            metres.round(2).tolist(), globe, each, strict=True
        )
    ]


def _known(degree: float) -> float | None:
    return None if np.isnan(degree) else degree


def tier_name(index: Index, place: int) -> str:
    """The name of a place's tier; `none` outside every place."""
    known = index.places.tiers
    return TIERS[known[place]] if 0 <= place < len(known) else "none"


def _position(found: Answer, spot: dict[str, Any]) -> dict[str, Any]:
    shape = found.position.ellipse
    ellipse = {
        "major": round(shape.major, 2),
        "minor": round(shape.minor, 2),
        "bearing": round(shape.bearing, 1),
    }
    return spot | {"ellipse": ellipse}
