"""Queries beside their best answers: rescued, lost and failed, by tier.

Every kind has some queries of every tier, so that the page's tier switch always finds some.

    Q queries
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenplace.evaluation import Predictions, Scores
from evenplace.evaluation.predictions import FAR
from evenplace.places.tiers import TIERS
from evenplace.report.audit_pictures import thumbnail
from evenplace.report.match_lines import match_drawing
from evenplace.report.page import asset
from evenplace.report.reasons import find_reasons, tell_reason
from evenplace.retrieval.second_look import SecondLook

A_TIER = 4  # queries of one kind and tier on the page
_SHOWN = 5
NOWHERE = "no place"
KINDS = {
    "rescued": "wrong before, right now",
    "lost": "right before, wrong now",
    "failed": "wrong",
    "found": "right",
}


@dataclass
class Pictures:
    """Small copies of photos, each made once; a photo that has gone leaves its text."""

    made: dict[str, str] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)

    def source(self, path: str) -> str:
        if path not in self.made:
            self.made[path] = thumbnail(path, self.unreadable)
        return self.made[path]

    def html(self, path: str, text: str) -> str:
        source = self.source(path)
        if not source:
            return f'<span class="none">{html.escape(text)}</span>'
        return f'<img alt="{html.escape(text)}" src="{source}">'


def gallery_html(
    systems: Sequence[Scores],
    pictures: Pictures | None = None,
    seed: int = 0,
    look: SecondLook | None = None,
) -> str:
    """A block a query: the query, then each system's top 5, with the likely reason of a failure.

    Rescued and lost compare the last system with the first.  look: draws the points that the
    query and the last system's answer share.
    """
    pictures = pictures or Pictures()
    reasons = [find_reasons(scores) for scores in systems]
    buttons, blocks = "", ""
    for kind, chosen in _sort(systems).items():
        total = sum(len(rows) for rows in chosen.values())
        if not total:
            continue
        pressed = "true" if not buttons else "false"
        buttons += (
            f'<button type="button" data-kind="{kind}" aria-pressed="{pressed}" '
            f'title="{KINDS[kind]}">{kind} {total:,}</button>'
        )
        for tier, rows in chosen.items():
            generator = np.random.default_rng((seed, len(tier)))
            some = generator.permutation(rows)[:A_TIER]
            blocks += "".join(
                _block(systems, reasons, int(query), tier, kind, pictures, look) for query in some
            )
    return (
        f"<style>{asset('gallery.css')}</style>{tier_switch()}"
        f'<div class="kinds switch" role="group" aria-label="kind of query">{buttons}</div>'
        f'<div class="gallery">{blocks}<p class="nothing" hidden>No such query.</p></div>'
    )


def tier_switch() -> str:
    """Buttons that choose a tier for the whole page."""
    names = ("all", *TIERS)
    buttons = "".join(
        f'<button type="button" data-tier="{name}" '
        f'aria-pressed="{"true" if name == "all" else "false"}">'
        + (f'<span class="mark {name}"></span>' if name in TIERS else "")
        + f"{name}</button>"
        for name in names
    )
    return f'<div class="tiers switch" role="group" aria-label="tier">{buttons}</div>'


def _sort(systems: Sequence[Scores]) -> dict[str, dict[str, NDArray[np.int64]]]:
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
    reasons: Sequence[NDArray[np.str_]],
    query: int,
    tier: str,
    kind: str,
    pictures: Pictures,
    look: SecondLook | None,
) -> str:
    asked = systems[0].predictions
    rows = "".join(
        f'<div class="answers"><span class="who">{html.escape(scores.name)}'
        f"<small>{html.escape(tell_reason(scores, query, str(why[query])))}</small></span>"
        + "".join(_answer(scores.predictions, query, rank, pictures) for rank in range(_SHOWN))
        + "</div>"
        for scores, why in zip(systems, reasons, strict=True)
    )
    rows += match_drawing(look, asked.paths[query], systems[-1].predictions.hit_paths[query][0])
    hidden = "" if kind in ("rescued", "failed") else " hidden"
    photos = int(asked.photographed[query])
    many = f", {photos} {'photo' if photos == 1 else 'photos'} of its place" if photos else ""
    caption = f"query, {tier}{many}"
    return (
        f'<figure class="asked" data-tier="{tier}" data-kind="{kind}"{hidden}><div class="query">'
        f"{pictures.html(asked.paths[query], 'the query')}"
        f"<figcaption>{caption}</figcaption></div><div>{rows}</div></figure>"
    )


def _answer(run: Predictions, query: int, rank: int, pictures: Pictures) -> str:
    path = run.hit_paths[query][rank] if rank < run.hit_paths.shape[1] else ""
    if not path:
        return '<span class="none">no photo</span>'
    gap = float(run.hit_metres[query, rank])
    kind = "right" if run.hit_right[query, rank] else "wrong"
    far = f"{gap:.0f} m" if gap < FAR else "another city"
    text = f"{kind}, {far} away"
    picture = pictures.html(path, text)
    return f'<span class="{kind}" title="{text}">{picture}<i>{far}</i></span>'
