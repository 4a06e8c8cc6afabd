"""What the engine knows → what the API says.  Paths of files stay here."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenplace.places.imbalance import gini, imbalance_ratio
from evenplace.places.tiers import TIERS
from evenplace.retrieval import Answer as Found
from evenplace.serve import schema
from evenplace.serve.settings import Settings
from evenplace.serve.snapshot import Snapshot, degrees

_DAYLIGHT = "take it again in daylight, level, from across the street, with whole facades in view"
_THIN = 10  # photos below which a place is too thin to recognise from every side


def say_answer(snapshot: Snapshot, found: Found) -> schema.Answer:
    """One answer of the engine."""
    known = snapshot.engine.index
    rows = [hit.row for hit in found.hits]
    zones = known.photos.zone[rows[:1] + rows].tolist()  # the position is around the first hit
    zones += known.places.zones[[guess.place for guess in found.places]].tolist()
    # One conversion to degrees for all positions: each call costs as much as a hundred numbers.
    where = [(found.position.east, found.position.north)] if found.hits else []
    where += [hit.position for hit in found.hits] + [guess.centre for guess in found.places]
    spots = iter(_spots(where, zones))
    return schema.Answer(
        abstains=found.abstains,
        reason=found.reason,
        remedy=what_would_help(found) if found.abstains else "",
        confidence=round(float(found.confidence), 4),
        calibrated=snapshot.engine.calibration is not None,
        position=_position(found, zones[0], next(spots)) if found.hits else None,
        hits=[
            schema.Hit(
                **next(spots),
                photo=snapshot.photo_id(hit.row),
                similarity=round(float(hit.similarity), 4),
                distance=round(float(hit.distance), 5),
                place=hit.place,
                tier=snapshot.tier(hit.place),
                heading=_heading(snapshot.headings[hit.row]),
            )
            for hit in found.hits
        ],
        places=[
            schema.PlaceGuess(
                **next(spots),
                place=guess.place,
                posterior=min(1.0, round(float(guess.posterior), 6)),
                photos=guess.photos,
                tier=snapshot.tier(guess.place),
            )
            for guess in found.places
        ],
        elapsed_ms={stage: round(ms, 2) for stage, ms in found.elapsed_ms.items()},
    )


def _position(found: Found, zone: int, spot: dict[str, Any]) -> schema.Position:
    ellipse = found.position.ellipse
    return schema.Position(
        **spot,
        zone=zone,
        ellipse=schema.Ellipse(
            major=round(ellipse.major, 2),
            minor=round(ellipse.minor, 2),
            bearing=round(ellipse.bearing, 1),
        ),
    )


def what_would_help(found: Found) -> str:
    """Advice that fits what was found: a thin place wants photos, a rich one a better query."""
    if not found.places:
        return _DAYLIGHT
    photos = found.places[0].photos
    if photos < _THIN:
        number = "one photo" if photos == 1 else f"{photos} photos"
        return f"{_DAYLIGHT}; the likeliest place has only {number}, and more of it would help"
    return f"{_DAYLIGHT}; or add photos of that street to the database"


def say_places(snapshot: Snapshot, places: NDArray[np.int64]) -> list[schema.Place]:
    """Some cells of the map."""
    return [schema.Place(**fields) for fields in _place_fields(snapshot, places)]


def say_place_detail(snapshot: Snapshot, place: int, offset: int, limit: int) -> schema.PlaceDetail:
    """One cell, its outline, and the photos from `offset` on."""
    index = snapshot.engine.index
    rows = snapshot.rows_of(place)[offset : offset + limit]
    photos, zone = index.photos[rows], index.places.zones[place]
    spots = _spots(photos.positions, photos.zone)
    return schema.PlaceDetail(
        **_place_fields(snapshot, np.array([place]))[0],
        index=snapshot.version,
        outline=[schema.Spot(**spot) for spot in _spots(snapshot.outlines[place], zone)],
        pictures=[
            schema.PlacePhoto(
                **spot,
                photo=snapshot.photo_id(int(row)),
                heading=_heading(heading),
                time=None if np.isnat(time) else str(time),
            )
            for spot, row, heading, time in zip(
                spots, rows, photos.heading, photos.time, strict=True
            )
        ],
    )


def _place_fields(snapshot: Snapshot, places: NDArray[np.int64]) -> list[dict[str, Any]]:
    known = snapshot.engine.index.places
    spots = _spots(known.centres[places], known.zones[places])
    return [
        spot
        | {
            "place": int(place),
            "tier": snapshot.tier(int(place)),
            "photos": int(snapshot.sizes[place]),
            "trained": int(known.counts[place]),
            "area": round(float(known.areas[place]), 1),
        }
        for spot, place in zip(spots, places, strict=True)
    ]


def say_about(snapshot: Snapshot, settings: Settings) -> schema.About:
    """The database in a few numbers."""
    index, sizes = snapshot.engine.index, snapshot.sizes
    filled = sizes > 0
    return schema.About(
        index=snapshot.version,
        photos=len(index),
        outside=int(len(index) - sizes.sum()),
        places=int(filled.sum()),
        tiers={
            name: int((index.places.tiers[filled] == tier).sum()) for tier, name in enumerate(TIERS)
        },
        gini=round(gini(sizes[filled]), 3),
        imbalance=round(imbalance_ratio(sizes[filled]), 1) if filled.any() else 1.0,
        zone=index.places.maps[0].zone,
        tiles=settings.tiles,
        tiles_from=settings.tile_origin,
        tiles_credit=settings.tiles_credit,
        calibrated=snapshot.engine.calibration is not None,
        min_precision=settings.min_precision,
        photo_bytes=settings.limits.photo_bytes,
        photo_pixels=settings.limits.photo_pixels,
    )


def _spots(positions: ArrayLike, zones: ArrayLike) -> list[dict[str, Any]]:
    """Positions in metres, and in degrees where there is a globe: (n, 2)."""
    metres = np.asarray(positions, np.float64).reshape(-1, 2)
    globe = degrees(metres, zones).round(7).tolist()
    return [
        {"east": east, "north": north}
        | {"latitude": _known(latitude), "longitude": _known(longitude)}
        for (east, north), (latitude, longitude) in zip(
            metres.round(2).tolist(), globe, strict=True
        )
    ]


def _known(degree: float) -> float | None:
    return None if np.isnan(degree) else degree


def _heading(heading: np.float32) -> float | None:
    return round(float(heading), 1) if np.isfinite(heading) else None
