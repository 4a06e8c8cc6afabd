"""Panoramax: STAC items (GeoJSON) with azimuth, licence and producer, the pictures beside them."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from evenplace.errors import PhotoError
from evenplace.photos.gather import UNDATED, Seen, files_beside, gather_seen, json_head
from evenplace.photos.table import Photos


def recognises(path: Path) -> bool:
    """Whether it is a collection of STAC items."""
    head = json_head(path, ".json", ".geojson")
    return '"FeatureCollection"' in head and ('"stac_version"' in head or "view:azimuth" in head)


def read(path: Path, zone: int | None = None) -> Photos:
    """Read the items whose pictures are here: ID.jpg, or the name they were uploaded under."""
    find = files_beside(path)
    try:
        items = json.loads(path.read_text(encoding="utf-8"))["features"]
        seen = [_read(item, find) for item in items]
    except (KeyError, TypeError, ValueError) as cause:
        raise PhotoError(f"{path} is no collection of items ({cause!r}); fetch it again") from cause
    return gather_seen(seen, zone, path)


def seen_of(item: dict[str, Any], path: str) -> Seen:
    """One photo of the API's answer."""
    told = item["properties"]
    longitude, latitude = item["geometry"]["coordinates"][:2]
    azimuth = told.get("view:azimuth")
    named = [
        one["name"] for one in item.get("providers") or [] if "producer" in one.get("roles", ())
    ]
    links = [one["href"] for one in item.get("links") or [] if one.get("rel") == "self"]
    return Seen(
        path,
        latitude,
        longitude,
        heading=float("nan" if azimuth is None else azimuth) % 360,
        time=_time(told.get("datetime")),
        producer=str(told.get("geovisio:producer") or (named[0] if named else "")),
        licence=str(told.get("license") or ""),
        source=links[0] if links else str(item["id"]),
        sequence=str(item.get("collection") or ""),
    )


def _read(item: dict[str, Any], find: Callable[[str], str | None]) -> Seen:
    name, original = f"{item['id']}.jpg", str(item["properties"].get("original_file:name", ""))
    path = find(name) or find(original)
    if path is None:
        return Seen(name, reason="there is no such file beside the items")
    return seen_of(item, path)


def _time(text: str | None) -> np.datetime64:
    try:
        seconds = int(datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp())
    except ValueError:
        return UNDATED
    return np.datetime64(seconds, "s")
