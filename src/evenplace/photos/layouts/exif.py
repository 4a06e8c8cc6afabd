"""A folder of photos as a phone or camera leaves them: position, heading and time in the EXIF."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import ExifTags, Image

from evenplace.errors import UnplacedError
from evenplace.photos.gather import gather
from evenplace.photos.geodesy import to_metres
from evenplace.photos.pictures import open_image
from evenplace.photos.scan import first_pictures, picture_paths
from evenplace.photos.table import Photos

GPS, BASE, IFD = ExifTags.GPS, ExifTags.Base, ExifTags.IFD
NAN = float("nan")


class Shot(NamedTuple):
    """What the EXIF of one photo says."""

    latitude: float = NAN
    longitude: float = NAN
    heading: float = NAN
    time: np.datetime64 = np.datetime64("NaT", "s")
    reason: str = ""


def recognises(path: Path) -> bool:
    """Whether there are pictures at all: this is the layout of last resort."""
    return path.is_dir() and bool(first_pictures(path, 1))


def read(path: Path, pattern: str | None = None, zone: int | None = None) -> Photos:
    """Read the headers of every picture; those without a position are skipped."""
    paths = picture_paths(path, pattern)
    shots = [read_shot(one) for one in paths.to_pylist()]
    latitude = np.array([shot.latitude for shot in shots])
    longitude = np.array([shot.longitude for shot in shots])
    reasons = {row: shot.reason for row, shot in enumerate(shots) if shot.reason}
    if len(reasons) == len(shots):
        raise UnplacedError(
            f"none of the {len(shots)} photos in {path} says where it was taken, for example "
            f"{Path(paths[0].as_py()).name}: {reasons[0]}; name them as SF-XL does, or give a table"
        )
    metres = to_metres(latitude, longitude, zone)
    return gather(
        {
            "path": paths,
            "east": metres.east,
            "north": metres.north,
            "zone": metres.zone,
            "heading": np.array([shot.heading for shot in shots], np.float32),
            "time": np.array([shot.time for shot in shots]),
            "latitude": latitude,
            "longitude": longitude,
        },
        reasons=reasons,
        zone=zone,
        where=path,
    )


def read_shot(path: str) -> Shot:
    """Read one photo's position, heading and time, or the reason why there is none."""
    try:
        with open_image(path) as image:
            exif = image.getexif()
            gps, details = exif.get_ifd(IFD.GPSInfo), exif.get_ifd(IFD.Exif)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as cause:
        return Shot(reason=f"it cannot be opened ({cause})")
    time = _time(details.get(BASE.DateTimeOriginal) or exif.get(BASE.DateTime))
    if not gps or GPS.GPSLatitude not in gps or GPS.GPSLongitude not in gps:
        return Shot(time=time, reason="its EXIF has no GPS position")
    try:
        latitude = _degrees(gps[GPS.GPSLatitude], gps.get(GPS.GPSLatitudeRef, "N"), "S")
        longitude = _degrees(gps[GPS.GPSLongitude], gps.get(GPS.GPSLongitudeRef, "E"), "W")
        heading = float(gps.get(GPS.GPSImgDirection, NAN))
    except (TypeError, ValueError, ZeroDivisionError) as cause:
        return Shot(time=time, reason=f"its GPS position cannot be read ({cause})")
    if latitude == 0 and longitude == 0:  # what many cameras write before the first fix
        return Shot(time=time, reason="its GPS position is 0, 0, which cameras write without a fix")
    return Shot(latitude, longitude, heading, time)


def _degrees(parts: Any, side: str, negative: str) -> float:
    degrees, minutes, seconds = (float(part) for part in parts)
    value = degrees + minutes / 60 + seconds / 3600
    return -value if str(side).upper().startswith(negative) else value


def _time(text: Any) -> np.datetime64:
    try:
        date, clock = str(text).strip("\x00 ").split(" ")
        return np.datetime64(f"{date.replace(':', '-')}T{clock}", "s")
    except ValueError:
        return np.datetime64("NaT", "s")
