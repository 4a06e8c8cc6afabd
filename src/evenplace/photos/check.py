"""Looking at photos before anything is made of them: what was understood, what was left out."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from evenplace.arrays import evenly
from evenplace.errors import PhotoError
from evenplace.photos.choose import spots_of
from evenplace.photos.files import whole_file
from evenplace.photos.geodesy import degrees, to_metres
from evenplace.photos.layouts import tables, track
from evenplace.photos.nearby import find_nearby
from evenplace.photos.pictures import open_picture
from evenplace.photos.read import find_layout, read_photos
from evenplace.photos.scan import check_exists, is_archive, other_files, say_others, unpacked
from evenplace.photos.table import Photos, Skipped

TILE = 160
ACROSS = 6
ACROSS_BORDER = 1000.0  # metres between photos of one town in two zones
TRIED = 24  # photos that are opened


@dataclass(frozen=True)
class Check:
    """What a reader made of a path."""

    layout: str
    photos: Photos
    unreadable: tuple[Skipped, ...] = ()  # of the photos that were opened
    others: Counter[str] = field(default_factory=Counter)  # files that are no pictures, by ending

    def lines(self) -> list[str]:
        """What was understood, a sentence a line."""
        photos = self.photos
        known = int(np.isfinite(photos.heading).sum())
        dated = photos.time[~np.isnat(photos.time)]
        spots = int(spots_of(photos).max()) + 1
        lines = [
            f"layout {self.layout}: {len(photos):,} photos at {spots:,} different positions",
            *_places(photos),
            *_borders(photos),
            f"heading known for {known:,}, time for {len(dated):,}"
            + (f" ({str(dated.min())[:10]} to {str(dated.max())[:10]})" if len(dated) else ""),
        ]
        extra = [name for name in photos.table.column_names if name not in _MAIN]
        if extra:
            lines.append(f"also known: {', '.join(extra)}")
        return lines + ([others] if (others := say_others(self.others)) else [])

    def left_out(self) -> list[tuple[str, int, str]]:
        """Each reason for leaving photos out, how many it took, and one of them."""
        kinds = [(_kind(one.reason), one.path) for one in (*self.photos.skipped, *self.unreadable)]
        examples: dict[str, str] = {}
        for kind, path in kinds:
            examples.setdefault(kind, path)
        counts = Counter(kind for kind, _ in kinds).most_common()
        return [(kind, count, examples[kind]) for kind, count in counts]

    def rows(self, count: int = 3) -> list[dict[str, Any]]:
        """A few photos as they were understood, from the beginning, the middle and the end."""
        some = self.photos[evenly(len(self.photos), count)]
        rows: list[dict[str, Any]] = some.table.to_pylist()
        return rows


_MAIN = ("path", "east", "north", "zone", "heading", "time", "city")


def _places(photos: Photos) -> list[str]:
    """A line a city: its zone and how far it reaches."""
    names, city = photos.cities, photos.city
    lines = []
    for number, name in enumerate(names):
        mine = photos if len(names) == 1 else photos[city == number]
        zone = (
            "local metres" if mine.zones == [0] else f"UTM zone {', '.join(map(str, mine.zones))}"
        )
        told = "" if len(names) == 1 else f"{name}: {len(mine):,} photos, "
        lines.append(f"{told}{zone}, {np.ptp(mine.east):,.0f} m by {np.ptp(mine.north):,.0f} m")
    return lines


def _borders(photos: Photos) -> list[str]:
    """A line for each two zones whose photos stand within reach of each other."""
    lines = []
    for one, other in combinations([zone for zone in photos.zones if zone], 2):
        here, there = (photos[photos.zone == zone] for zone in (one, other))
        latitude, longitude = degrees(there.positions, other).T
        moved = to_metres(latitude, longitude, one)
        if find_nearby(here, Photos.from_arrays(**vars(moved)), ACROSS_BORDER).counts.any():
            larger = one if len(here) >= len(there) else other
            lines.append(
                f"UTM zones {one} and {other} meet among the photos, and none is near one of the "
                f"other zone; read them as one: --zone {larger}, or a column zone"
            )
    return lines


def check_photos(
    path: str | Path, /, layout: str | None = None, sheet: str | Path | None = None, **settings: Any
) -> Check:
    """Read photos, say what was understood, and put a few of them on a sheet of thumbnails."""
    check_exists(Path(path))
    told = [name for name, value in settings.items() if value is not None]
    name = layout or find_layout(Path(path), told)
    photos = read_photos(path, layout=name, **settings)
    if "path" not in photos.table.column_names:
        raise PhotoError(
            f"{path} says where photos are and not which files they are; name the column: --column "
            "path=NAME (descriptors that others computed need no files: index --descriptors)"
        )
    unreadable: list[Skipped] = []
    picture = contact_sheet(photos, unreadable)  # which tries a few, wanted or not
    if len(unreadable) == min(len(photos), TRIED):
        raise PhotoError(f"none of {len(unreadable)} photos opens, as {unreadable[0].reason}")
    if sheet is not None:
        _save(picture, Path(sheet))
    where = unpacked(Path(path)) if is_archive(path) else Path(path)
    others = other_files(where) if where.is_dir() else Counter()
    for ending in (*tables.SUFFIXES, *track.ENDINGS, ".txt"):  # which tell of the photos
        others.pop(ending, None)
    return Check(name, photos, tuple(unreadable), others)


def _save(picture: Image.Image, sheet: Path) -> None:
    if sheet.exists():
        raise PhotoError(f"{sheet} exists; choose another name for the sheet")
    if sheet.suffix.lower() not in Image.registered_extensions():
        raise PhotoError(f"{sheet} ends in no kind of picture there is; call it sheet.jpg")
    with whole_file(sheet) as draft:
        picture.save(draft)


def contact_sheet(photos: Photos, unreadable: list[Skipped]) -> Image.Image:
    """Thumbnails of photos spread evenly over the set; those that do not open are noted."""
    tiles = []
    for path in photos[evenly(len(photos), TRIED)].paths:
        try:
            tiles.append(open_picture(path, TILE))
        except PhotoError as cause:
            unreadable.append(Skipped(path, str(cause)))
    down = max(1, -(-len(tiles) // ACROSS))
    sheet = Image.new("RGB", (ACROSS * TILE, down * TILE), "white")
    for number, tile in enumerate(tiles):
        sheet.paste(tile, (number % ACROSS * TILE, number // ACROSS * TILE))
    return sheet


def _kind(reason: str) -> str:
    """A reason without its numbers, so that like reasons count together."""
    return "".join("#" if one.isdigit() else one for one in reason)
