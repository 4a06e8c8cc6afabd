"""Photos on a page: small copies inside it while they last, links to the files after."""

import base64
import os
from pathlib import Path
from urllib.parse import quote

import numpy as np
from markupsafe import Markup
from PIL import Image

from evenplace.errors import PhotoError
from evenplace.photos.pictures import jpeg_bytes, open_picture
from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.report.page import part

SIDE = 112
A_PLACE = 3
LINKED = 20_000  # places beyond which the page would grow by links alone


class Pictures:
    """Image sources by path, each made once; a photo that cannot be opened leaves its text.

    most: copies inside the page; later photos are links relative to `folder`, which work while
    page and photos stay where they are.
    """

    def __init__(self, folder: Path | None = None, most: int = 1_000_000) -> None:
        self.unreadable: list[str] = []
        self._folder, self.left = folder, most
        self._made: dict[str, str] = {}

    def source(self, path: str) -> str:
        """The `src` of a photo, empty where there is none: a frame of a film has no file."""
        if path not in self._made:
            self._made[path] = "" if "#t=" in path else self._source(path)
        return self._made[path]

    def html(self, path: str, text: str) -> Markup:
        return part("picture", self.source(path), text, self._folder is not None)

    def _source(self, path: str) -> str:
        if self.left <= 0:
            return "" if self._folder is None else quote(os.path.relpath(path, self._folder))
        try:
            picture = open_picture(path)
        except PhotoError:
            self.unreadable.append(path)
            return ""
        self.left -= 1
        side = min(picture.size)
        left, top = (picture.width - side) // 2, (picture.height - side) // 2
        return data_url(picture.crop((left, top, left + side, top + side)).resize((SIDE, SIDE)))


def sample_pictures(photos: Photos, places: Places, pictures: Pictures) -> dict[int, list[str]]:
    """Sources of up to three photos of each place, in an order that leaps across the map.

    One each before any gets a second, so that the copies inside the page are everywhere.
    """
    found: dict[int, list[str]] = {}
    if "path" not in photos.table.column_names or not len(places):
        return found
    rows, starts = places.members()
    paths = photos.table.column("path")
    leaping = np.random.default_rng(0).permutation(len(places)).tolist()
    for turn, place in ((turn, place) for turn in range(A_PLACE) for place in leaping):
        mine = rows[starts[place] : starts[place + 1]]
        if pictures.left <= 0 and len(places) > LINKED:
            break
        if turn < min(len(mine), A_PLACE):
            chosen = mine[(turn * len(mine)) // min(len(mine), A_PLACE)]
            if source := pictures.source(paths[int(chosen)].as_py()):
                found.setdefault(place, []).append(source)
    return found


def data_url(picture: Image.Image) -> str:
    """A picture as the source of an <img>."""
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg_bytes(picture, quality=72)).decode()}"
