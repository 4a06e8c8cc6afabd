"""Google Takeout: photos, each with a JSON beside it that has the position and the time.

What has no JSON, or one that knows no position, is asked for its EXIF.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from evenplace.photos.gather import Seen, gather_seen
from evenplace.photos.layouts.exif import read_shot
from evenplace.photos.scan import first_pictures, picture_paths
from evenplace.photos.table import Photos

ENDINGS = (".json", ".supplemental-metadata.json")
CUT = 46  # characters that Takeout leaves of a JSON's name
_NUMBERED = re.compile(r"(.+)(\(\d+\))(\.\w+)")  # a(1).jpg, of which a.jpg(1).json tells


def recognises(path: Path) -> bool:
    """Whether one of the first pictures has its JSON."""
    return any(_beside(Path(one)) for one in first_pictures(path, 20))


def read(path: Path, pattern: str | None = None, zone: int | None = None) -> Photos:
    """Read every picture's JSON; those without a position are skipped."""
    seen = [_read(Path(one)) for one in picture_paths(path, pattern).to_pylist()]
    return gather_seen(seen, zone, path, remedy="ask for them with their position")


def _beside(photo: Path) -> Path | None:
    name, number = photo.name.replace("-edited.", "."), ""
    if twin := _NUMBERED.fullmatch(name):
        name, number = twin[1] + twin[3], twin[2]
    stems = [f"{name}{ending}".removesuffix(".json") for ending in ENDINGS]
    named = [f"{stem}{number}.json" for stem in (*stems, *(one[:CUT] for one in stems))]
    named += [f"{photo.name}{ending}" for ending in ENDINGS]
    return next((photo.with_name(one) for one in named if photo.with_name(one).is_file()), None)


def _read(photo: Path) -> Seen:
    told = _told(photo)
    shot = read_shot(str(photo)) if told.reason else told
    return replace(shot, reason=f"{told.reason}, and {shot.reason}") if shot.reason else shot


def _told(photo: Path) -> Seen:
    """What the JSON says."""
    beside = _beside(photo)
    if beside is None:
        return Seen(str(photo), reason="there is no JSON beside it")
    try:
        told = json.loads(beside.read_text(encoding="utf-8"))
        where = [told.get(name) or {} for name in ("geoData", "geoDataExif")]
        spots = [(one.get("latitude") or 0.0, one.get("longitude") or 0.0) for one in where]
        seconds = (told.get("photoTakenTime") or {}).get("timestamp")
        latitude, longitude = next((spot for spot in spots if spot != (0.0, 0.0)), (0.0, 0.0))
        if (latitude, longitude) == (0.0, 0.0):  # what Takeout writes for "unknown"
            return Seen(str(photo), reason="its JSON has no position")
        time = np.datetime64(None if seconds is None else int(seconds), "s")
        return Seen(str(photo), latitude, longitude, time=time)
    except (AttributeError, TypeError, ValueError) as cause:
        return Seen(str(photo), reason=f"{beside.name} cannot be read ({cause})")
