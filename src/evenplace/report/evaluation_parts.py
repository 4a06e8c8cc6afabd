"""The sections of the evaluation page; each says what to see and how many queries it rests on.

Q queries · C places
"""

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

from evenplace.evaluation import Scores, compare_pairs
from evenplace.places.tiers import TIERS
from evenplace.report import curves, tables
from evenplace.report.figures import inline_svg, rank_count, tier_bars
from evenplace.report.gallery import NOWHERE, gallery_html, open_look, tier_switch
from evenplace.report.map import Cells, Points, lay_out, map_html, tiles_under
from evenplace.report.page import Figure, Section, part, slim_table
from evenplace.report.pictures import Pictures, sample_pictures
from evenplace.report.reasons import REASON_COLUMNS, find_reasons, reason_rows, tell_reason
from evenplace.report.run_files import Kept
from evenplace.report.scatter import LEAST, tail_places
from evenplace.retrieval.verification import REFUTED, VERIFIED

A_PAGE = 300  # photos of places inside the page; the others are links
PICTURED = 150  # queries whose photos the map shows; wrong answers first


def draw_figures(systems: Sequence[Scores], kept: Sequence[Kept]) -> dict[str, Drawing]:
    """The figures of the page that papers want as files."""
    last = systems[-1]
    figures = {
        "tiers": tier_bars(systems, (1, 5, 10)),
        "long-tail": rank_count(systems[0].places, systems, kept[-1].diversity() if kept else None),
        "precision-recall": curves.precision_recall(last),
        "risk-coverage": curves.risk_coverage(last),
        "reliability": curves.reliability_bars(last),
        "metres": curves.error_curve(systems),
    }
    if (scatter := _scatter(systems, kept)) is not None:
        figures["tail-places"] = scatter[0]
    return figures


def lead(systems: Sequence[Scores]) -> Markup:
    """The page in one sentence."""
    best, first = systems[-1], systems[0]
    text = Markup("<b>{}</b> finds <b>{:.1f} %</b> of {:,} queries, and {:.1f} % of the {:,} in "
                  "the tail").format(best.name, best.recall[1], best.overall.queries,
                                     best.tail.recall[1], best.tail.queries)  # fmt: skip
    if len(systems) == 1:
        return text + "."
    gain = compare_pairs(best.predictions, first.predictions, 2)
    verdict = "" if gain.gain.excludes_zero else ", which could be chance"
    return text + (
        f": {gain.gain.mean:+.1f} points over {first.name} there "
        f"({gain.won} queries won, {gain.lost} lost{verdict})."
    )


def glance(systems: Sequence[Scores]) -> Section:
    best = systems[-1]
    own = best.knowing.get("own")
    tiles = [
        Figure(f"{best.recall[1]:.1f} %", "R@1 overall", f"{best.overall.queries} queries"),
        Figure(f"{best.tail.recall[1]:.1f} %", "R@1 in the tail", f"{best.tail.queries} queries"),
        Figure(f"{best.pool.recall[1]:.1f} %", "pool recall", "no ranking can exceed it"),
        Figure(f"{best.position.median:.0f} m", "median error", f"p90 {best.position.p90:,.0f} m"),
        Figure(
            f"{100 * own.coverage['95']:.0f} %" if own else "–",
            "can be answered",
            "with 95 % of it right",
        ),
        Figure(f"{best.cost.median_ms:.0f} ms", _timed(best), f"{len(best.places):,} places"),
    ]
    return Section("", Markup("<p>{}</p>{}").format(best.name, part("tiles", tiles)))


def _timed(scores: Scores) -> str:
    """What the milliseconds are of: a study does not time the network."""
    return "a query" if "extract" in scores.cost.latency else "to search, network not timed"


def score_tables(systems: Sequence[Scores]) -> Section:
    first, cost = systems[0], systems[0].cost
    text = slim_table(tables.COLUMNS, tables.score_rows(systems))
    if len(systems) > 1:
        text += slim_table(tables.GAIN_COLUMNS, tables.gain_rows(systems))
    caption = (
        f"{first.overall.queries} queries, right within {first.truth}; "
        f"{cost.answerable} have a match in the database: R@1 counts the others as failures, "
        f"“findable” leaves them out. {first.untiered} are at no known place, {cost.skipped} could "
        "not be read. Brackets are 95 % intervals over spots; * marks differences whose interval "
        "excludes 0; p is McNemar's. LR@1 is the classifier alone, pool the share of queries whose "
        f"shortlist holds a match. {cost.unreachable} database photos are in no place of the "
        "classifier and out of its reach."
    )
    return Section("Scores", text, caption)


def tiers(systems: Sequence[Scores]) -> Section:
    first = systems[0]
    counts = ", ".join(f"{tier} {first.tier(tier).queries}" for tier in TIERS)
    return Section(
        "Head, middle, tail",
        _wide(tier_bars(systems, (1, 5, 10)), "R@1, R@5 and R@10 by tier")
        + slim_table(tables.TIER_COLUMNS, tables.tier_rows(systems)),
        "R@1, R@5 and R@10 overall and by tier of the query's place: the 30 % most photographed "
        f"places, the middle 40 %, the 30 % least photographed. Queries: {counts}. Where the "
        "whiskers of two bars overlap, believe the table of differences above, not your eyes.",
    )


def long_tail(systems: Sequence[Scores], kept: Sequence[Kept]) -> Section:
    counts = systems[0].places.counts
    diversity = kept[-1].diversity() if kept else None
    caption = (
        f"{len(counts):,} places ranked by photo count ({counts.max()} to {counts.min()} photos, "
        f"log axis), and for each tenth of them the R@1 of the "
        f"{int((systems[0].predictions.places >= 0).sum())} queries taken there."
    )
    if diversity is not None:
        caption += (
            " The green band is how alike the photos of a place look to "
            f"{systems[-1].name} (mean cosine, one deviation either side; places of "
            "two photos and more)."
        )
    drawing = _wide(
        rank_count(systems[0].places, systems, diversity), "photos and recall by rank of the place"
    )
    return Section("The long tail", drawing, caption)


def conditions(systems: Sequence[Scores]) -> Section | None:
    rows = tables.condition_rows(systems)
    if not rows:
        return None
    columns = [*tables.CONDITION_COLUMNS, *(f"R@1 {scores.name}" for scores in systems)]
    return Section(
        "Conditions",
        slim_table(columns, rows, texts=(1,)),
        "R@1 of the queries under each condition, with the number it rests on. “looking” is the "
        "query's heading, “turned” the angle to the match that looks most alike, “away” the metres "
        "to the nearest match. Queries about which a condition is unknown are left out.",
    )


def where(
    scores: Scores, kept: Sequence[Kept], pictures: Pictures, folder: Path, tiles: str | None
) -> Section:
    run, places = scores.predictions, scores.places
    facts: dict[str, NDArray[np.int64] | list[str]] = {
        "photos": places.counts,
        "queries right": _right_by_place(scores),
    }
    if len(places.maps) > 1:
        facts["city"] = [places.maps[home].city for home in places.home]
    found: dict[int, list[str]] = {}
    if kept and kept[-1].index is not None:
        index = kept[-1].index
        labelled = replace(index.places, labels=index.labels)
        found = sample_pictures(index.photos, labelled, Pictures(folder, A_PAGE))
    sheets = lay_out(places)
    outlines = sheets.outlines(places.outlines)
    cells = Cells(outlines, places.tiers.astype(np.int64), facts=facts, pictures=found)
    points = Points(
        sheets.points(run.positions, run.zones),
        (~run.right).astype(np.int64),
        texts=_query_texts(scores, pictures),
        radius=3.5,
        groups=[int(tier) for tier in run.tiers],
    )
    caption = (
        f"The {len(places):,} places coloured by tier and the {len(run)} queries of "
        f"{scores.name}: {int(run.right.sum())} green ones answered right, the red "
        "ones wrong. Drag to move (two fingers on a phone), click a place for its photos or a "
        "query for its answer; the switch shows one tier, here and in the gallery."
    )
    if len(places.maps) > 1:
        caption += f" The cities lie beside each other: {', '.join(places.cities)}."
    drawn = map_html(cells, points, tiles=tiles_under(tiles, places))
    return Section("Where", tier_switch() + drawn + _DOTS, caption)


def gallery(systems: Sequence[Scores], kept: Sequence[Kept], pictures: Pictures) -> Section:
    run = systems[-1].predictions
    caption = (
        f"Some of {len(run)} queries, {int((~run.right).sum())} of which "
        f"{systems[-1].name} answers wrong. Left the query, then the five best "
        "answers of each system: green frames are right, red ones wrong, with the metres between "
        "answer and query and the likely reason of a failure."
    )
    look = open_look(kept[-1].index if kept else None)
    if look is not None:
        caption += " Points that match the first answer are drawn where it is opened."
    return Section("Queries and answers", gallery_html(systems, pictures, look=look), caption)


def failures(systems: Sequence[Scores]) -> Section | None:
    rows = reason_rows(systems)
    if not rows:
        return None
    wrong = int((~systems[-1].predictions.right).sum())
    return Section(
        "Why it fails",
        slim_table(REASON_COLUMNS, rows, texts=(1, len(REASON_COLUMNS) - 1)),
        f"The likely reason of each failure ({wrong} of {systems[-1].name}), from "
        "positions and ranks alone. What is not in the pool no ranking can mend. Where pictures "
        f"were looked at twice: verified, {VERIFIED} points or more match the wrong answer, which "
        f"then shows the same thing from elsewhere; refuted, at most {REFUTED} do.",
    )


def before_and_after(systems: Sequence[Scores], kept: Sequence[Kept]) -> Section | None:
    title = "Tail places, before and after"
    if not kept or kept[0].index is None or find_spec("openTSNE") is None:
        return None
    if (drawn := _scatter(systems, kept)) is None:
        return Section(title, Markup(), f"Fewer than two tail places have {LEAST} photos.")
    return Section(title, _wide(drawn[0], "t-SNE of tail places"), drawn[1])


def confidence(systems: Sequence[Scores]) -> Section:
    last = systems[-1]
    run = last.predictions
    drawings = [
        (curves.precision_recall(last), "precision against recall", "Up and to the right is good."),
        (curves.risk_coverage(last), "risk against coverage", "Low is good; dotted: 5 % risk."),
        (curves.reliability_bars(last), "reliability", "On the dotted line, sure means right."),
    ]
    figures = part("figures", [(inline_svg(one, label), f"{text} {len(run)} answers.")
                               for one, label, text in drawings])  # fmt: skip
    caption = (
        f"Every source of confidence on the same {len(run)} answers of {last.name}, "
        f"{int(run.right.sum())} of them right; “own” is the one the system answers with. The "
        "table has the share of queries that can be answered at 95 and 99 % precision."
    )
    table = slim_table(tables.KNOWING_COLUMNS, tables.knowing_rows(systems), texts=(1,))
    return Section("Does it know?", figures + table, caption)


def metres(systems: Sequence[Scores]) -> Section:
    told = ", ".join(
        f"{one.name} {one.position.median:.0f} m (p90 {one.position.p90:,.0f} m)" for one in systems
    )
    return Section(
        "How far off",
        _wide(curves.error_curve(systems), "position error"),
        f"Share of the {systems[0].overall.queries} queries whose estimated position is within so "
        f"many metres; median {told}. The dotted line is at 25 m.",
    )


def cost(systems: Sequence[Scores]) -> Section:
    return Section(
        "What it costs",
        slim_table(*tables.cost_table(systems)),
        "Sizes, and the median / 95th percentile milliseconds of one query by stage, asked one by "
        "one on the machine that evaluated. Memory is that of the process.",
    )


def training(kept: Sequence[Kept]) -> Section | None:
    logs = {one.name: one.log for one in kept if one.log}
    if not logs:
        return None
    epochs = ", ".join(f"{name} {len(lines)}" for name, lines in logs.items())
    return Section(
        "Training",
        _wide(curves.training_curve(logs), "loss by epoch"),
        f"Loss by epoch ({epochs}); dashed, where kept, the recall on held-out photos.",
    )


def _scatter(systems: Sequence[Scores], kept: Sequence[Kept]) -> tuple[Drawing, str] | None:
    """Tail places as the first and the last system see them; None without indexes or openTSNE."""
    chosen = [0, len(systems) - 1] if len(systems) > 1 else [0]
    found = [(systems[at], kept[at].index) for at in chosen] if kept else []
    indexes = [index for _, index in found if index is not None]
    if not indexes or len(indexes) < len(found) or find_spec("openTSNE") is None:
        return None
    return tail_places([scores for scores, _ in found], indexes)


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


def _wide(figure: Drawing, label: str) -> Markup:
    return Markup('<div class="wide">{}</div>').format(inline_svg(figure, label))


_DOTS = Markup(
    '<p class="dots"><span><b style="background:var(--good)"></b>query answered right</span>'
    '<span><b style="background:var(--bad)"></b>answered wrong</span></p>'
)
