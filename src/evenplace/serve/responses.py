"""What the engine knows → what the API says.  Paths of files stay here."""

from typing import Any

import numpy as np

from evenplace.arrays import Ints
from evenplace.places.tiers import TIERS, gini, imbalance_ratio
from evenplace.retrieval import Answer as Found
from evenplace.retrieval.answer_json import answer_json, spots_json, tier_name
from evenplace.retrieval.calibration import why_uncalibrated
from evenplace.serve import schema
from evenplace.serve.served_index import ServedIndex
from evenplace.serve.settings import Settings


def say_answer(served: ServedIndex, found: Found) -> schema.Answer:
    """One answer of the engine."""
    plain = answer_json(served.engine.index, found, served.version)
    for hit in plain["hits"]:
        del hit["path"]
    return schema.Answer(**plain)


def say_places(served: ServedIndex, places: Ints) -> list[schema.Place]:
    """Some cells of the map."""
    return [schema.Place(**fields) for fields in _place_fields(served, places)]


def say_place_detail(
    served: ServedIndex, place: int, offset: int, limit: int
) -> schema.PlaceDetail:
    """One cell, its outline, and the photos from `offset` on."""
    index = served.engine.index
    rows = index.rows_of(np.array([place]))[0][offset : offset + limit]
    photos, zone = index.photos[rows], index.places.zones[place]
    spots = spots_json(photos.positions, photos.zone)
    return schema.PlaceDetail(
        **_place_fields(served, np.array([place]))[0],
        index=served.version,
        outline=[schema.Spot(**spot) for spot in spots_json(served.outlines[place], zone)],
        pictures=[
            schema.PlacePhoto(
                **spot,
                photo=f"{served.version}-{row}",
                heading=round(float(heading), 1) if np.isfinite(heading) else None,
                time=None if np.isnat(time) else str(time),
            )
            for spot, row, heading, time in zip(
                spots, rows, photos.heading, photos.time, strict=True
            )
        ],
    )


def _place_fields(served: ServedIndex, places: Ints) -> list[dict[str, Any]]:
    known = served.engine.index.places
    spots = spots_json(known.centres[places], known.zones[places])
    return [
        spot
        | {
            "place": int(place),
            "tier": tier_name(served.engine.index, int(place)),
            "photos": int(served.sizes[place]),
            "trained": int(known.counts[place]),
            "area": round(float(known.areas[place]), 1),
        }
        for spot, place in zip(spots, places, strict=True)
    ]


def say_about(served: ServedIndex, settings: Settings) -> schema.About:
    """The database in a few numbers."""
    index, sizes = served.engine.index, served.sizes
    filled = sizes > 0
    return schema.About(
        index=served.version,
        photos=len(index),
        outside=int(len(index) - sizes.sum()),
        places=int(filled.sum()),
        tiers={
            name: int((index.places.tiers[filled] == tier).sum()) for tier, name in enumerate(TIERS)
        },
        gini=round(gini(sizes[filled]), 3),
        imbalance=round(imbalance_ratio(sizes[filled]), 1) if filled.any() else 1.0,
        zones=np.unique(index.places.zones).tolist(),
        tiles=settings.tiles,
        tiles_from=settings.tile_origin,
        tiles_credit=settings.tiles_credit,
        calibrated=not (doubt := why_uncalibrated(served.engine.calibration)),
        doubt=doubt,
        min_precision=settings.min_precision,
        photo_bytes=settings.limits.photo_bytes,
        request_bytes=settings.limits.request_bytes,
        photo_pixels=settings.limits.photo_pixels,
    )
