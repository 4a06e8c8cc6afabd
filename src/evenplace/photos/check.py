"""Looking at photos before anything is made of them: what was understood, what was left out."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from evenplace.errors import PhotoError
from evenplace.photos.files import whole_file
from evenplace.photos.pictures import open_picture
from evenplace.photos.read import find_layout, read_photos
from evenplace.photos.scan import check_exists
from evenplace.photos.table import Photos, Skipped

TILE = 160
ACROSS = 6


@dataclass(frozen=True)
class Check:
    """What a reader made of a path."""

    layout: str
    photos: Photos
    unreadable: tuple[Skipped, ...] = ()  # of the photos that were opened

    def lines(self) -> list[str]:
        """What was understood, a sentence a line."""
        photos = self.photos
        wide, high = np.ptp(photos.east), np.ptp(photos.north)
        known = int(np.isfinite(photos.heading).sum())
        dated = photos.time[~np.isnat(photos.time)]
        spots = _count_spots(photos)
        lines = [
            f"layout {self.layout}: {len(photos):,} photos at {spots:,} different positions",
            f"UTM zone {', '.join(map(str, photos.zones))}, {wide:,.0f} m by {high:,.0f} m"
            if photos.zones != [0]
            else f"local metres, {wide:,.0f} m by {high:,.0f} m",
            f"heading known for {known:,}, time for {len(dated):,}"
            + (f" ({str(dated.min())[:10]} to {str(dated.max())[:10]})" if len(dated) else ""),
        ]
        if photos.cities:
            lines.append(f"cities: {', '.join(photos.cities)}")
        extra = [name for name in photos.table.column_names if name not in _MAIN]
        if extra:
            lines.append(f"also known: {', '.join(extra)}")
        return lines

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
        at = np.unique(np.linspace(0, len(self.photos) - 1, count).astype(int))
        rows: list[dict[str, Any]] = self.photos[at].table.to_pylist()
        return rows


_MAIN = ("path", "east", "north", "zone", "heading", "time")


def check_photos(
    path: str | Path, layout: str | None = None, sheet: str | Path | None = None, **settings: Any
) -> Check:
    """Read photos, say what was understood, and put a few of them on a sheet of thumbnails."""
    check_exists(Path(path))
    name = layout or find_layout(Path(path))
    photos = read_photos(path, layout=name, **settings)
    unreadable: list[Skipped] = []
    if sheet is not None and "path" in photos.table.column_names:
        picture = contact_sheet(photos, unreadable)
        with whole_file(sheet) as draft:
            picture.save(draft)
    return Check(name, photos, tuple(unreadable))


def contact_sheet(photos: Photos, unreadable: list[Skipped], count: int = 24) -> Image.Image:
    """Thumbnails of photos spread evenly over the set; those that do not open are noted."""
    at = np.unique(np.linspace(0, len(photos) - 1, count).astype(int))
    tiles = []
    for path in photos[at].paths:
        try:
            tiles.append(open_picture(path, TILE))
        except PhotoError as cause:
            unreadable.append(Skipped(path, str(cause)))
    down = max(1, -(-len(tiles) // ACROSS))
    sheet = Image.new("RGB", (ACROSS * TILE, down * TILE), "white")
    for number, tile in enumerate(tiles):
        sheet.paste(tile, (number % ACROSS * TILE, number // ACROSS * TILE))
    return sheet


def _count_spots(photos: Photos) -> int:
    order = np.lexsort((photos.north, photos.east))
    moved = (np.diff(photos.east[order]) != 0) | (np.diff(photos.north[order]) != 0)
    return int(np.count_nonzero(moved)) + 1


def _kind(reason: str) -> str:
    """A reason without its numbers, so that like reasons count together."""
    return "".join("#" if one.isdigit() else one for one in reason)
