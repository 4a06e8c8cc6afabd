"""The map of an evaluation: places by tier, queries right and wrong, and what a click tells."""

from dataclasses import replace

import numpy as np
from markupsafe import Markup

from evenplace.evaluation import Scores
from evenplace.places.tiers import TIERS
from evenplace.report.evaluation_parts import Told
from evenplace.report.gallery import NOWHERE, tier_switch
from evenplace.report.map import Points, draw_places, map_html, say_cities, tiles_under
from evenplace.report.page import Section, part
from evenplace.report.pictures import Pictures, sample_pictures
from evenplace.report.reasons import find_reasons, tell_reason

A_PAGE = 300  # photos of places inside the page; the others are links
PICTURED = 150  # queries whose photos the map shows; wrong answers first
_DOTS = Markup(
    '<p class="dots"><span><b style="background:var(--good)"></b>query answered right</span>'
    '<span><b style="background:var(--bad)"></b>answered wrong</span></p>'
)


def where(told: Told) -> Section:
    scores, kept = told.last, told.kept
    run, places = scores.predictions, scores.places
    found: dict[int, list[str]] = {}
    if kept and kept[-1].index is not None:
        index = kept[-1].index
        labelled = replace(index.places, labels=index.labels)
        found = sample_pictures(index.photos, labelled, Pictures(told.folder, A_PAGE))
    sheets, cells = draw_places(places, {"queries right": _right_by_place(scores)}, found)
    points = Points(
        sheets.points(run.positions, run.zones),
        (~run.right).astype(np.int64),
        texts=_query_texts(scores, told.pictures),
        radius=3.5,
        groups=[int(tier) for tier in run.tiers],
    )
    caption = (
        f"The {len(places):,} places coloured by tier and the {len(run)} queries of "
        f"{scores.name}: {int(run.right.sum())} green ones answered right, the red "
        "ones wrong. Drag to move (two fingers on a phone), click a place for its photos or a "
        "query for its answer; the switch shows one tier, here and in the gallery."
        + say_cities(places)
    )
    drawn = map_html(cells, points, tiles=tiles_under(told.tiles, places))
    return Section("Where", tier_switch() + drawn + _DOTS, caption)


def _right_by_place(scores: Scores) -> list[str]:
    """ "3 of 4" for each place that was asked about.  (C,)."""
    run, count = scores.predictions, len(scores.places)
    at = run.places >= 0
    asked = np.bincount(run.places[at], minlength=count)
    right = np.bincount(run.places[at & run.right], minlength=count)
    return [f"{r} of {a}" if a else "–" for r, a in zip(right, asked, strict=True)]


def _query_texts(scores: Scores, pictures: Pictures) -> list[Markup]:
    """What a click on each query tells; 150 of them, wrong answers first, with their photos."""
    run, reasons = scores.predictions, find_reasons(scores)
    pictured = set(np.argsort(run.right, kind="stable")[:PICTURED].tolist())
    texts = []
    for query in range(len(run)):
        tier = TIERS[run.tiers[query]] if run.tiers[query] >= 0 else NOWHERE
        reason, sources = tell_reason(scores, query, str(reasons[query])), None
        if query in pictured:
            shown = (run.paths[query], run.hit_paths[query][0])
            sources = [source for path in shown if path and (source := pictures.source(path))]
        texts.append(part("told", reason, tier, f"{run.confidence[query]:.2f}", sources))
    return texts
