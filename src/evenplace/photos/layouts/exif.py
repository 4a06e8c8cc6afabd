"""A folder of photos as a phone or camera leaves them: position, heading and time in the EXIF."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import ExifTags, Image

from evenplace.photos.gather import NO_FIX, Seen, gather_seen
from evenplace.photos.layouts.cells import read_time
from evenplace.photos.pictures import open_image
from evenplace.photos.scan import first_pictures, picture_paths
from evenplace.photos.table import Photos

GPS, BASE, IFD = ExifTags.GPS, ExifTags.Base, ExifTags.IFD


def recognises(path: Path) -> bool:
    """Whether there are pictures at all: this is the layout of last resort."""
    return bool(first_pictures(path, 1))


def read(path: Path, pattern: str | None = None, zone: int | None = None) -> Photos:
    """Read the headers of every picture; those without a position are skipped."""
    seen = [read_shot(one) for one in picture_paths(path, pattern).to_pylist()]
    return gather_seen(seen, zone, path, remedy="name them as SF-XL does, or give a table")


def read_shot(path: str) -> Seen:
    """Read one photo's position, heading and time, or the reason why there is none."""
    try:
        with open_image(path) as image:
            exif = image.getexif()
            gps, details = exif.get_ifd(IFD.GPSInfo), exif.get_ifd(IFD.Exif)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as cause:
        return Seen(path, reason=f"it cannot be opened ({cause})")
    time = read_time(details.get(BASE.DateTimeOriginal) or exif.get(BASE.DateTime))
    if not gps or GPS.GPSLatitude not in gps or GPS.GPSLongitude not in gps:
        return Seen(path, time=time, reason="its EXIF has no GPS position")
    try:
        latitude = _degrees(gps[GPS.GPSLatitude], gps.get(GPS.GPSLatitudeRef, "N"), "S")
        longitude = _degrees(gps[GPS.GPSLongitude], gps.get(GPS.GPSLongitudeRef, "E"), "W")
        heading = float(gps.get(GPS.GPSImgDirection, "nan"))
    except (TypeError, ValueError, ZeroDivisionError) as cause:
        return Seen(path, time=time, reason=f"its GPS position cannot be read ({cause})")
    if latitude == 0 and longitude == 0:
        return Seen(path, time=time, reason=NO_FIX)
    return Seen(path, latitude, longitude, heading, time)


def _degrees(parts: Any, side: str, negative: str) -> float:
    """Degrees, minutes and seconds; some programs write fewer, with decimals."""
    value = float(sum(float(part) / 60**at for at, part in enumerate(np.atleast_1d(parts))))
    return -value if str(side).upper().startswith(negative) else value
