"""Queries beside their best answers: rescued, lost and failed, by tier.

Every kind has some queries of every tier, so that the page's tier switch always finds some.

    Q queries · M points that match
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from markupsafe import Markup

from evenplace.arrays import Ints
from evenplace.errors import PhotoError
from evenplace.evaluation import Predictions, Scores
from evenplace.evaluation.predictions import FAR
from evenplace.photos.pictures import open_within
from evenplace.places.tiers import TIERS
from evenplace.report.page import part
from evenplace.report.pictures import Pictures, data_url
from evenplace.report.reasons import tell_reasons
from evenplace.retrieval import Index
from evenplace.retrieval.local_features import LOCAL_FEATURES
from evenplace.retrieval.second_look import SecondLook

A_TIER = 4  # queries of one kind and tier on the page
NOWHERE = "no place"
KINDS = {
    "rescued": "wrong before, right now",
    "lost": "right before, wrong now",
    "failed": "wrong",
    "found": "right",
}
_SHOWN = 5
_SIDE, _GAP = 220, 8  # pixels of a matched picture's longer side, and between two
_MOST = 60  # lines between them


def gallery_html(
    systems: Sequence[Scores], pictures: Pictures | None = None, look: SecondLook | None = None
) -> Markup:
    """A block a query: the query, then each system's top 5, with the likely reason of a failure.

    Rescued and lost compare the last system with the first.  look: draws the points that the
    query and the last system's answer share.
    """
    pictures = pictures or Pictures()
    reasons = [tell_reasons(scores) for scores in systems]
    kinds, blocks = [], Markup()
    for kind, chosen in _sort(systems).items():
        total = sum(len(rows) for rows in chosen.values())
        if total:
            kinds.append((kind, KINDS[kind], f"{total:,}"))
        for tier, rows in chosen.items():
            some = np.random.default_rng((0, len(tier))).permutation(rows)[:A_TIER]
            for query in some.tolist():
                blocks += _block(systems, reasons, query, tier, kind, pictures, look)
    return part("gallery", list(TIERS), kinds, blocks)


def _sort(systems: Sequence[Scores]) -> dict[str, dict[str, Ints]]:
    """The queries of each kind, and of each tier within it."""
    before, now = systems[0].predictions.right, systems[-1].predictions.right
    kinds = {"failed": ~now, "found": now}
    if len(systems) > 1:
        kinds = {"rescued": ~before & now, "lost": before & ~now, "failed": ~now}
    tiers = systems[0].predictions.tiers
    labels = {tier: number for number, tier in enumerate(TIERS)} | {NOWHERE: -1}
    order = ("tail", "middle", "head", NOWHERE)
    return {
        kind: {tier: np.flatnonzero(mine & (tiers == labels[tier])) for tier in order}
        for kind, mine in kinds.items()
    }


def _block(
    systems: Sequence[Scores],
    reasons: Sequence[Sequence[str]],
    query: int,
    tier: str,
    kind: str,
    pictures: Pictures,
    look: SecondLook | None,
) -> Markup:
    asked = systems[0].predictions
    photos = int(asked.photographed[query])
    many = f", {photos} {'photo' if photos == 1 else 'photos'} of its place" if photos else ""
    return part(
        "asked",
        tier=tier,
        kind=kind,
        hidden=kind not in ("rescued", "failed"),
        query=pictures.html(asked.paths[query], "the query"),
        caption=f"query, {tier}{many}",
        systems=[
            (one.name, why[query], _answers(one.predictions, query, pictures))
            for one, why in zip(systems, reasons, strict=True)
        ],
        matches=match_drawing(
            look, asked.paths[query], systems[-1].predictions.hit_paths[query][0]
        ),
    )


def _answers(run: Predictions, query: int, pictures: Pictures) -> list[dict[str, Any]]:
    """The first five answers; one that is missing has no path."""
    told: list[dict[str, Any]] = []
    shown = zip(run.hit_paths[query], run.hit_metres[query], run.hit_right[query], strict=True)
    for path, gap, right in islice(shown, _SHOWN):
        kind, far = "right" if right else "wrong", f"{gap:.0f} m" if gap < FAR else "another city"
        text = f"{kind}, {far} away"
        picture = pictures.html(path, text) if path else ""
        told.append({"path": path, "kind": kind, "text": text, "far": far, "picture": picture})
    return told + [{"path": ""}] * (_SHOWN - len(told))


def open_look(index: Index | None) -> SecondLook | None:
    """A second look at the photos of an index that keeps their points."""
    kinds = [] if index is None else [name for name in index.columns if name in LOCAL_FEATURES]
    return SecondLook(index, features=kinds[0]) if index is not None and kinds else None


def match_drawing(look: SecondLook | None, query: str, answer: str) -> Markup:
    """Both pictures side by side and their points; empty where they cannot be compared.

    Only an index that keeps points of its photos can be; those of a query are found again.
    """
    row = -1 if look is None or not answer else int(look.index.find([answer])[0])
    if look is None or row < 0:
        return Markup()
    try:
        pictures = [open_within(path, _SIDE) for path in (query, answer)]
    except PhotoError:
        return Markup()
    pairs = look.pairs(query, row)  # (M, 4)
    right = pictures[0].width + _GAP
    sides = np.array([side for one in pictures for side in one.size])
    ends = pairs[:: max(1, len(pairs) // _MOST)] * sides + (0, 0, right, 0)
    return part(
        "matches",
        f"{len(pairs)} points match the first answer",
        right + pictures[1].width,
        max(one.height for one in pictures),
        images=[
            {"href": data_url(one), "x": left, "width": one.width, "height": one.height}
            for one, left in zip(pictures, (0, right), strict=True)
        ],
        lines=ends.tolist(),
    )
