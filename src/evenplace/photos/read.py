"""Reading photos, whatever the layout: found by looking at the path, or named."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from evenplace.errors import PhotoError, unknown_name
from evenplace.photos.choose import keep_box, keep_cities, keep_named, keep_zone, leave_strays
from evenplace.photos.layouts import (
    exif,
    gsv,
    lists,
    mapillary,
    msls,
    nordland,
    panoramax,
    pitts30k,
    sfxl,
    tables,
    takeout,
    track,
)
from evenplace.photos.pictures import SUFFIXES
from evenplace.photos.scan import check_exists, is_archive, picture_paths, unpacked
from evenplace.photos.table import Photos


class Layout(Protocol):
    """A module that knows a way of laying photos out."""

    read: Callable[..., Photos]

    def recognises(self, path: Path) -> bool:
        """Whether a folder or file is laid out so."""


LAYOUTS: dict[str, Layout] = {  # in the order they are tried
    "gsv-cities": gsv,
    "msls": msls,
    "mapillary": mapillary,
    "panoramax": panoramax,
    "table": tables,
    "list": lists,
    "nordland": nordland,
    "pitts30k": pitts30k,
    "sf-xl": sfxl,
    "takeout": takeout,
    "track": track,
    "exif": exif,
}


def read_photos(
    path: str | Path,
    /,
    layout: str | None = None,
    pattern: str | None = None,
    *,
    city: str | Sequence[str] | None = None,
    bbox: Sequence[float] | None = None,
    **settings: Any,
) -> Photos:
    """Read the photos of a folder, a zip or a table, with where and which way each was taken.

    `layout` is one of LAYOUTS, found by looking when not named; `pattern` is a shell pattern for
    file names; `zone=` keeps one UTM zone, `city=` one city or several, `bbox=` west, south, east
    and north in degrees.  A table's own names of columns are told as `latitude="gps_lat"`,
    `path="image_name"`.  Each layout's module says what else it understands; settings that are
    None are left to it.  Nothing is dropped in silence: see `Photos.skipped`, which also names a
    few photos far from all others; ask for their city, or city="all", to keep them.
    """
    where = Path(path)
    check_exists(where)
    where = unpacked(where) if is_archive(where) else where
    given = {key: value for key, value in settings.items() if value is not None}
    name = layout or find_layout(where, given)
    if name not in LAYOUTS:
        raise unknown_name("layout", name, LAYOUTS)
    zone, known = given.pop("zone", None), inspect.signature(LAYOUTS[name].read).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in known.values())
    if not takes_any and (unknown := set(given) - set(known)):
        raise PhotoError(f"the layout {name} has no setting {sorted(unknown)[0]!r}; leave it out")
    usual = {"pattern": pattern, "zone": zone}  # not every layout asks while it reads
    given |= {key: usual[key] for key in usual.keys() & known.keys()}
    photos = keep_zone(LAYOUTS[name].read(where, **given), zone)
    photos = photos if bbox is None else keep_box(photos, bbox)
    if pattern is not None and "pattern" not in known:
        photos = keep_named(photos, pattern)
    if city is None:
        return photos if zone is not None else leave_strays(photos)
    return keep_cities(photos, [city] if isinstance(city, str) else city)


def read_rows(
    path: str | Path,
    layout: str | None = None,
    *,
    city: str | Sequence[str] | None = None,
    **chosen: Any,
) -> Photos:
    """Photos for descriptors that others computed, whether their files are here or not.

    Every row, strays too, but for those of other cities, zones or places than were asked for.
    """
    name = layout or find_layout(Path(path), {key for key in chosen if chosen[key] is not None})
    files = False if name == "table" else None
    return read_photos(path, name, city=city or "all", files=files, **chosen)


def find_layout(path: Path, settings: Iterable[str] = ()) -> str:
    """The first layout that recognises the path; a table where settings name its columns."""
    if tables.USUAL.keys() & set(settings) - {"zone"}:
        return "table"
    path = unpacked(path) if is_archive(path) else path
    for name, layout in LAYOUTS.items():
        if layout.recognises(path):
            return name
    if path.suffix.lower() in SUFFIXES:
        raise PhotoError(f"{path} is one photo; name its folder, or a table of photos")
    if path.is_file():
        raise PhotoError(
            f"{path} is no table of photos (looked for {', '.join(tables.SUFFIXES)}); "
            "check the path, or pass layout="
        )
    picture_paths(path)  # says what it looked for: a folder with pictures is at least an EXIF one
    raise PhotoError(f"no layout recognises {path}; pass layout= ({', '.join(LAYOUTS)})")
