"""The page of one or several evaluated systems: who finds what, in the head and in the tail."""

import html
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evenplace.errors import RunError
from evenplace.evaluation import Scores
from evenplace.places.tiers import TIERS
from evenplace.report.figures import inline_svg, rank_count, tier_bars
from evenplace.report.gallery import gallery_html
from evenplace.report.map import Cells, Points, map_html
from evenplace.report.page import Figure, Section, figures_html, page, table_html, write_page
from evenplace.report.tables import COLUMNS, GAIN_COLUMNS, gain_rows, score_rows


def write_report(scores: Scores | Sequence[Scores], out: str | Path) -> Path:
    """Write out/index.html: one file that opens from disk with no network."""
    systems = [scores] if isinstance(scores, Scores) else list(scores)
    if not systems:
        raise RunError("there is nothing to report; name at least one evaluated run")
    for other in systems[1:]:
        if other.predictions.paths != systems[0].predictions.paths:
            raise RunError(
                f"{other.name} and {systems[0].name} were asked different queries; "
                "evaluate both on the same ones"
            )
    sections = [
        Section("", _glance(systems)),
        Section("Scores", _tables(systems), _table_caption(systems)),
        Section("Head, middle, tail", _bars(systems), _bars_caption(systems)),
        Section("The long tail", _curve(systems), _curve_caption(systems)),
        Section("Where", _map(systems[-1]), _map_caption(systems[-1])),
        Section("Queries and answers", gallery_html(systems), _GALLERY),
        Section("What it costs", _cost(systems), "Median and 95th percentile of one query."),
    ]
    title = "How even is it? " + " · ".join(system.name for system in systems)
    return write_page(page(title, sections), Path(out) / "index.html")


_GALLERY = (
    "Left the query, then the five best answers of each system: green frames are right, red "
    "ones wrong, with the metres between answer and query. Queries the systems disagree on come "
    "first, those of the tail before the others."
)


def _glance(systems: Sequence[Scores]) -> str:
    best = systems[-1]
    tail = best.tail.intervals[1]
    tiles = [
        Figure(f"{best.recall[1]:.1f} %", "R@1 overall", f"{best.overall.queries} queries"),
        Figure(f"{tail.mean:.1f} %", "R@1 in the tail", f"{best.tail.queries} queries"),
        Figure(f"{best.pool.recall[1]:.1f} %", "pool recall", "no ranking can exceed it"),
        Figure(f"{best.cost.pool_size:.0f}", "candidates a query", f"of {_photos(best)} places"),
    ]
    return f"<p>{html.escape(best.name)}</p>" + figures_html(tiles)


def _photos(scores: Scores) -> str:
    return f"{len(scores.places):,}"


def _tables(systems: Sequence[Scores]) -> str:
    rows = [[html.escape(cell) for cell in row] for row in score_rows(systems)]
    text = table_html(COLUMNS, rows)
    if len(systems) > 1:
        gains = [[html.escape(cell) for cell in row] for row in gain_rows(systems)]
        text += table_html(GAIN_COLUMNS, gains)
    return text


def _table_caption(systems: Sequence[Scores]) -> str:
    first, cost = systems[0], systems[0].cost
    return (
        f"{first.overall.queries} queries, {cost.answerable} of which have a match in the "
        f"database (the others count as failures), {first.untiered} at no known place, "
        f"{cost.skipped} unreadable. Brackets are 95 % bootstrap intervals over spots; "
        "* marks differences whose interval excludes 0. LR@1 is the classifier alone; pool is the "
        f"share of queries whose shortlist holds a match. {cost.unreachable} database photos are "
        "in no place of the classifier and out of its reach."
    )


def _bars(systems: Sequence[Scores]) -> str:
    return inline_svg(tier_bars(systems), "R@1 by tier")


def _bars_caption(systems: Sequence[Scores]) -> str:
    first = systems[0]
    counts = ", ".join(f"{tier} {first.tier(tier).queries}" for tier in TIERS)
    return (
        "R@1 overall and by tier of the query's place: the 30 % most photographed places, the "
        f"middle 40 %, the 30 % least photographed. Queries: {counts}. Where the whiskers of two "
        "bars overlap widely, believe the table of differences rather than your eyes."
    )


def _curve(systems: Sequence[Scores]) -> str:
    return inline_svg(rank_count(systems), "photos and recall by rank of the place")


def _curve_caption(systems: Sequence[Scores]) -> str:
    counts = systems[0].places.counts
    return (
        f"{len(counts)} places ranked by photo count ({counts.max()} to {counts.min()} photos, "
        "log axis) and, for each tenth of them, the R@1 of the queries taken there."
    )


def _map(scores: Scores) -> str:
    run = scores.predictions
    right = run.first_right == 0
    texts = [
        f"{'right' if ok else 'wrong'}, confidence {sure:.2f}"
        for ok, sure in zip(right, run.confidence, strict=True)
    ]
    cells = Cells(
        scores.places.outlines,
        scores.places.tiers.astype(np.int64),
        facts={"photos": scores.places.counts},
    )
    return map_html(cells, Points(run.positions, (~right).astype(np.int64), texts=texts, radius=3))


def _map_caption(scores: Scores) -> str:
    right = int((scores.predictions.first_right == 0).sum())
    return (
        f"The places coloured by tier and the {len(scores.predictions)} queries of "
        f"{html.escape(scores.name)}: {right} answered right. Drag, zoom, click."
    )


def _cost(systems: Sequence[Scores]) -> str:
    stages = list(systems[0].cost.latency)
    rows = [
        [
            html.escape(scores.name),
            *(f"{one.median_ms:.2f} / {one.p95_ms:.2f}" for one in scores.cost.latency.values()),
            f"{scores.cost.pool_size:.0f}",
            f"{scores.cost.index_bytes / 2**20:.1f} MiB",
        ]
        for scores in systems
    ]
    return table_html(["system", *(f"{s}, ms" for s in stages), "candidates", "index"], rows)
