"""Queries beside their best answers, framed green where right and red where wrong."""

import base64
import html
import io
from collections.abc import Sequence

import numpy as np

from evenplace.errors import PhotoError
from evenplace.evaluation import Predictions, Scores
from evenplace.photos.pictures import open_picture
from evenplace.places.tiers import TIERS
from evenplace.report.page import asset

_SIDE = 112
_SHOWN = 5


def gallery_html(systems: Sequence[Scores], count: int = 12, seed: int = 0) -> str:
    """A block a query: the query, then each system's top 5; tail queries first.

    Queries on which the systems differ are shown before those on which they agree.
    """
    chosen = _choose([scores.predictions for scores in systems], count, seed)
    blocks = "".join(_block(systems, query) for query in chosen)
    return f"<style>{asset('gallery.css')}</style>{blocks}"


def _choose(runs: Sequence[Predictions], count: int, seed: int) -> list[int]:
    right = np.stack([run.first_right == 0 for run in runs])  # (systems, Q)
    differ = np.asarray(right.any(axis=0) & ~right.all(axis=0))
    shuffled = np.random.default_rng(seed).permutation(len(runs[0]))
    tier = runs[0].tiers[shuffled]
    order = shuffled[np.lexsort((-tier, ~differ[shuffled]))]
    return [int(query) for query in order[:count]]


def _block(systems: Sequence[Scores], query: int) -> str:
    asked = systems[0].predictions
    tier = TIERS[asked.tiers[query]] if asked.tiers[query] >= 0 else "no place"
    rows = "".join(
        f'<div class="answers"><span class="who">{html.escape(scores.name)}</span>'
        + "".join(_answer(scores.predictions, query, rank) for rank in range(_SHOWN))
        + "</div>"
        for scores in systems
    )
    return (
        f'<figure class="asked" data-tier="{tier}"><div class="query">'
        f"{_thumbnail(asked.paths[query], 'the query')}<figcaption>query, {tier}</figcaption></div>"
        f"<div>{rows}</div></figure>"
    )


def _answer(run: Predictions, query: int, rank: int) -> str:
    path = run.hit_paths[query][rank]
    if not path:
        return '<span class="none">no photo</span>'
    gap = float(np.linalg.norm(run.hit_positions[query, rank] - run.positions[query]))
    kind = "right" if run.hit_right[query, rank] else "wrong"
    text = f"{kind}, {gap:.0f} m away"
    return f'<span class="{kind}" title="{text}">{_thumbnail(path, text)}<i>{gap:.0f} m</i></span>'


def _thumbnail(path: str, text: str) -> str:
    """The photo small and inside the page; a photo that has gone leaves its text."""
    try:
        picture = open_picture(path, _SIDE)
    except PhotoError:
        return f'<span class="none">{html.escape(text)}</span>'
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=72)
    source = base64.b64encode(data.getvalue()).decode()
    return f'<img alt="{html.escape(text)}" src="data:image/jpeg;base64,{source}">'
