"""What the columns of somebody's table are called, found by usual names or told."""

from collections.abc import Mapping, Sequence

from evenplace.errors import PhotoError, SettingError, UnplacedError

USUAL = {
    "path": ("path", "file", "filename", "file_name", "image", "image_path", "image_name", "img",
             "img_path", "photo", "photo_path", "picture", "filepath", "file_path", "name"),
    "east": ("east", "easting", "utm_east", "utm_e", "utm_easting", "utm_x", "x"),
    "north": ("north", "northing", "utm_north", "utm_n", "utm_northing", "utm_y", "y"),
    "latitude": ("latitude", "lat", "gps_latitude", "gps_lat", "gpslatitude", "lat_deg", "y_wgs84"),
    "longitude": ("longitude", "lon", "lng", "long", "gps_longitude", "gps_lon", "gps_lng",
                  "gps_long", "gpslongitude", "lon_deg", "x_wgs84"),
    "heading": ("heading", "bearing", "compass", "compass_angle", "yaw", "azimuth", "direction",
                "ca", "northdeg", "gpsimgdirection", "heading_to_landmark"),
    "zone": ("zone", "utm_zone", "zone_number"),
    "time": ("time", "timestamp", "captured_at", "shot_at", "taken_at", "date", "datetime",
             "date_time", "datetimeoriginal", "created_at"),
}  # fmt: skip
_DEGREES, _METRES = ("latitude", "longitude"), ("east", "north")


def find_columns(
    present: Sequence[str], told: Mapping[str, str], where: object = "the table"
) -> dict[str, str]:
    """Which column is the path, which the position …: what was told, else the usual names.

    x and y are degrees where the table has no other and calls nothing else metres.
    """
    if unknown := sorted(set(told) - set(USUAL)):
        raise SettingError(
            f"{unknown[0]!r} is nothing a table is asked for; name {', '.join(USUAL)}, as in "
            "--column latitude=gps_lat"
        )
    for wanted, name in told.items():
        if name not in present:
            raise PhotoError(
                f"{where} has no column {name!r} for {wanted}; it has {', '.join(present)}"
            )
    lower = {name.lower().strip().replace(" ", "_"): name for name in present}
    found = dict(told)
    for wanted, usual in USUAL.items():
        match = next((lower[one] for one in usual if one in lower), None)
        if wanted not in found and match is not None and match not in found.values():
            found[wanted] = match
    if not ({*_METRES} <= set(found) or {*_DEGREES} <= set(found)):
        raise UnplacedError(
            f"{where} has no positions (columns: {', '.join(present)}); name them: --column "
            "latitude=NAME --column longitude=NAME, or east and north"
        )
    return found


def say_columns(found: Mapping[str, str]) -> str:
    """Which columns were taken for what, where their names are others; empty if none is."""
    guessed = [f"{wanted} from {name}" for wanted, name in found.items() if name != wanted]
    return f"read {', '.join(guessed)}" if guessed else ""


def parse_columns(told: Sequence[str]) -> dict[str, str]:
    """What --column says: latitude=gps_lat."""
    found = {}
    for one in told:
        wanted, equals, name = one.partition("=")
        if not (wanted and equals and name):
            raise SettingError(f"--column {one!r} is not NAME=COLUMN, as in latitude=gps_lat")
        found[wanted] = name
    return found
