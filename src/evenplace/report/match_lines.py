"""The points that a query and its answer share, drawn as lines between the two pictures.

Only where the run's index keeps points of its photos; those of a query are found again.
"""

import base64
import html
import io

import numpy as np
from PIL import Image

from evenplace.errors import PhotoError
from evenplace.photos.pictures import open_within
from evenplace.retrieval import Index
from evenplace.retrieval.local_features import LOCAL_FEATURES
from evenplace.retrieval.second_look import SecondLook
from evenplace.retrieval.update import find_photos

_SIDE = 220  # pixels of a picture's longer side
_GAP = 8
_MOST = 60  # lines


def open_look(index: Index | None) -> SecondLook | None:
    """A second look at the photos of an index that keeps their points."""
    kinds = [] if index is None else [name for name in index.columns if name in LOCAL_FEATURES]
    return SecondLook(index, features=kinds[0]) if index is not None and kinds else None


def match_drawing(look: SecondLook | None, query: str, answer: str) -> str:
    """Both pictures side by side and their points; empty where they cannot be compared."""
    row = -1 if look is None or not answer else int(find_photos(look.index, [answer])[0])
    if look is None or row < 0:
        return ""
    try:
        pictures = [open_within(path, _SIDE) for path in (query, answer)]
    except PhotoError:
        return ""
    pairs = look.pairs(query, row)  # (M, 4)
    right = pictures[0].width + _GAP
    width, height = right + pictures[1].width, max(one.height for one in pictures)
    sides = np.array([side for one in pictures for side in one.size])
    ends = pairs[:: max(1, len(pairs) // _MOST)] * sides + (0, 0, right, 0)
    lines = "".join(
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
        for x1, y1, x2, y2 in ends.tolist()
    )
    images = "".join(
        f'<image href="{_source(one)}" x="{left}" width="{one.width}" height="{one.height}"/>'
        for one, left in zip(pictures, (0, right), strict=True)
    )
    said = html.escape(f"{len(pairs)} points match the first answer")
    return (
        f'<details class="matches"><summary>{said}</summary>'
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{said}">{images}{lines}</svg>'
        "</details>"
    )


def _source(picture: Image.Image) -> str:
    packed = io.BytesIO()
    picture.save(packed, "JPEG", quality=72)
    return f"data:image/jpeg;base64,{base64.b64encode(packed.getvalue()).decode()}"
