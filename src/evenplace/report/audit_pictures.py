"""Sample photos for a page: small copies inside it while they last, links to the files after."""

import base64
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import numpy as np

from evenplace.errors import PhotoError
from evenplace.photos.pictures import open_picture
from evenplace.photos.table import Photos
from evenplace.places.table import Places

SIDE = 112
A_PLACE = 3
LINKED = 20_000  # places beyond which the page would grow by links alone


@dataclass
class Samples:
    """Image sources by place, and the files that could not be opened."""

    sources: dict[int, list[str]] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)


def sample_pictures(photos: Photos, places: Places, folder: Path, inside: int = 300) -> Samples:
    """Choose up to three photos of each place; the first `inside` are copied into the page.

    Copies go round the places, one each before any gets a second; the others are links relative to
    `folder`, which work while page and photos stay where they are.
    """
    samples = Samples()
    if "path" not in photos.table.column_names or not len(places):
        return samples
    rows, starts = places.members()
    paths = photos.table.column("path")
    for turn in range(A_PLACE):
        for place in _spread_order(len(places)):
            mine = rows[starts[place] : starts[place + 1]]
            if turn >= min(len(mine), A_PLACE):
                continue
            chosen = mine[(turn * len(mine)) // min(len(mine), A_PLACE)]
            path = paths[int(chosen)].as_py()
            source = ""
            if inside > 0:
                source = thumbnail(path, samples.unreadable)
                inside -= bool(source)
            elif len(places) <= LINKED:
                source = quote(os.path.relpath(path, folder))
            else:
                return samples
            if source:
                samples.sources.setdefault(place, []).append(source)
    return samples


def thumbnail(path: str, unreadable: list[str]) -> str:
    """A small copy as a data URL; empty, with the file noted, when it cannot be opened."""
    try:
        picture = open_picture(path)
    except PhotoError:
        unreadable.append(path)
        return ""
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    small = picture.crop((left, top, left + side, top + side)).resize((SIDE, SIDE))
    packed = io.BytesIO()
    small.save(packed, "JPEG", quality=72)
    return f"data:image/jpeg;base64,{base64.b64encode(packed.getvalue()).decode()}"


def _spread_order(count: int) -> Iterator[int]:
    """All places in an order that leaps across the map, so that the first few are everywhere."""
    yield from np.random.default_rng(0).permutation(count).tolist()
