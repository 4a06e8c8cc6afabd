"""Google Takeout: photos, each with a JSON beside it that has the position and the time."""

import json
from pathlib import Path

import numpy as np

from evenplace.photos.gather import Seen, gather_seen
from evenplace.photos.scan import first_pictures, picture_paths
from evenplace.photos.table import Photos

ENDINGS = (".json", ".supplemental-metadata.json")
CUT = 46  # characters that Takeout leaves of a JSON's name


def recognises(path: Path) -> bool:
    """Whether one of the first pictures has its JSON."""
    return any(_beside(Path(one)) for one in first_pictures(path, 20))


def read(path: Path, pattern: str | None = None, zone: int | None = None) -> Photos:
    """Read every picture's JSON; those without a position are skipped."""
    seen = [_read(Path(one)) for one in picture_paths(path, pattern).to_pylist()]
    return gather_seen(seen, zone, path, remedy="ask for them with their position")


def _beside(photo: Path) -> Path | None:
    names = [f"{photo.name}{ending}" for ending in ENDINGS]
    names += [f"{name.removesuffix('.json')[:CUT]}.json" for name in names]
    return next((photo.with_name(name) for name in names if photo.with_name(name).is_file()), None)


def _read(photo: Path) -> Seen:
    beside = _beside(photo)
    if beside is None:
        return Seen(str(photo), reason="there is no JSON beside it")
    try:
        told = json.loads(beside.read_text(encoding="utf-8"))
        where = [told.get(name) or {} for name in ("geoData", "geoDataExif")]
        spots = [(one.get("latitude", 0.0), one.get("longitude", 0.0)) for one in where]
        seconds = (told.get("photoTakenTime") or {}).get("timestamp")
        latitude, longitude = next((spot for spot in spots if spot != (0.0, 0.0)), (0.0, 0.0))
        if (latitude, longitude) == (0.0, 0.0):  # what Takeout writes for "unknown"
            return Seen(str(photo), reason="its JSON has no position")
        time = np.datetime64(None if seconds is None else int(seconds), "s")
        return Seen(str(photo), latitude, longitude, time=time)
    except (AttributeError, TypeError, ValueError) as cause:
        return Seen(str(photo), reason=f"{beside.name} cannot be read ({cause})")
