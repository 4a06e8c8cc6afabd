"""The page of one or several evaluated systems: who finds what, in the head and in the tail.

A function a section; each says what to see and how many queries it rests on.

Q queries · C places
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure as Drawing

from evenplace.errors import RunError
from evenplace.evaluation import Scores, compare_pairs
from evenplace.photos.files import read_log, write_text
from evenplace.places import Places
from evenplace.places.coverage import Diversity, measure_diversity
from evenplace.places.tiers import TIERS
from evenplace.report import curves, tables
from evenplace.report.figures import inline_svg, rank_count, save_figure, tier_bars
from evenplace.report.gallery import NOWHERE, gallery_html, open_look
from evenplace.report.map import Points, draw_places, map_html, say_cities, tiles_under
from evenplace.report.page import Figure, Section, page, part, say, slim_table
from evenplace.report.pictures import Pictures, sample_pictures
from evenplace.report.reasons import REASON_COLUMNS, reason_rows, tell_reasons
from evenplace.report.scatter import LEAST, tail_places
from evenplace.retrieval import Index, open_index
from evenplace.retrieval.point_matching import REFUTED, VERIFIED

A_PAGE = 300  # photos of places inside the page; the others are links
PICTURED = 150  # queries whose photos the map shows; wrong answers first


@dataclass(frozen=True)
class Kept:
    """What a run folder keeps that a page can show: its index, if any, and its log."""

    name: str
    index: Index | None
    log: tuple[dict[str, Any], ...]  # lines of log.jsonl

    def diversity(self) -> Diversity | None:
        """How alike the photos of each place look; None without an index."""
        if self.index is None:
            return None
        places = replace(self.index.places, labels=self.index.labels)
        return measure_diversity(self.index.descriptors, places)


def read_kept(run: Path, asked: Places | None = None) -> Kept:
    """Look into a run folder; what is not there is not shown.

    asked: the places of its scores.  An index that has others by now numbers them anew: its photos
    would be shown as those of other places.
    """
    index = open_index(run / "index") if (run / "index" / "manifest.json").exists() else None
    if index is not None and asked is not None and not np.array_equal(index.places.ids, asked.ids):
        index = None
    return Kept(run.name, index, tuple(read_log(run / "log.jsonl")))


@dataclass(frozen=True)
class Told:
    """What the sections tell of: the systems, the first of them the baseline, and their runs."""

    systems: Sequence[Scores]
    kept: Sequence[Kept]
    folder: Path  # where the page will lie
    tiles: str | None = None
    pictures: Pictures = field(default_factory=Pictures)
    drawn: dict[str, Drawing] = field(default_factory=dict)  # by name, for papers

    @property
    def last(self) -> Scores:
        return self.systems[-1]

    def draw(self, name: str, figure: Drawing, label: str) -> Markup:
        """A figure on the page, kept as a file too."""
        self.drawn[name] = figure
        return inline_svg(figure, label)

    def wide(self, name: str, figure: Drawing, label: str) -> Markup:
        return part("across", self.draw(name, figure, label))


def write_report(
    scores: Scores | Sequence[Scores],
    out: str | Path,
    *,
    runs: Sequence[str | Path] = (),
    tiles: str | None = None,
) -> Path:
    """Write out/index.html, one file that opens from disk with no network, and out/figures/.

    The first system is what the others are compared with.  runs: the folder each system came
    from; with it the page also shows how alike the photos of a place look, tail places before and
    after, photos of a place on the map, and how training went.  tiles: the address of a base map
    ("https://…/{z}/{x}/{y}.png") to lay under the places; without it nothing is asked of the
    network.
    """
    systems = [scores] if isinstance(scores, Scores) else list(scores)
    _check(systems, runs)
    kept = [read_kept(Path(run), one.places) for run, one in zip(runs, systems, strict=False)]
    told = Told(systems, kept, Path(out), tiles)
    sections = [made for make in SECTIONS if (made := make(told)) is not None]
    for name, figure in told.drawn.items():
        save_figure(figure, told.folder / "figures" / name)
    title = "How even is it? " + " · ".join(system.name for system in systems)
    return write_text(told.folder / "index.html", page(title, sections, lead=lead(systems)))


def _check(systems: Sequence[Scores], runs: Sequence[str | Path]) -> None:
    if not systems:
        raise RunError("there is nothing to report; name at least one evaluated run")
    if runs and len(runs) != len(systems):
        raise RunError(f"{len(systems)} systems and {len(runs)} run folders; give one each")
    for other in systems[1:]:
        if other.predictions.paths != systems[0].predictions.paths:
            raise RunError(
                f"{other.name} and {systems[0].name} were asked different queries; "
                "evaluate both on the same ones"
            )
        if other.truth != systems[0].truth:
            raise RunError(
                f"{other.name} was asked within {other.truth} and {systems[0].name} within "
                f"{systems[0].truth}; evaluate both alike"
            )


def lead(systems: Sequence[Scores]) -> Markup:
    """The page in one sentence."""
    best, first = systems[-1], systems[0]
    several = len(systems) > 1
    gain = compare_pairs(best.predictions, first.predictions, 2) if several else None
    return say("lead", best, first, gain)


def glance(told: Told) -> Section:
    best = told.last
    own = best.knowing.get("own")
    answered = f"{100 * own.coverage['95']:.0f} %" if own else "–"
    # a study does not time the network
    timed = "a query" if "extract" in best.cost.latency else "to search, network not timed"
    tiles = [
        Figure(f"{best.recall[1]:.1f} %", "R@1 overall", f"{best.overall.queries} queries"),
        Figure(f"{best.tail.recall[1]:.1f} %", "R@1 in the tail", f"{best.tail.queries} queries"),
        Figure(f"{best.pool.recall[1]:.1f} %", "pool recall", "no ranking can exceed it"),
        Figure(f"{best.position.median:.0f} m", "median error", f"p90 {best.position.p90:,.0f} m"),
        Figure(answered, "can be answered", "with 95 % of it right"),
        Figure(f"{best.cost.median_ms:.0f} ms", timed, f"{len(best.places):,} places"),
    ]
    return Section("", Markup("<p>{}</p>{}").format(best.name, part("tiles", tiles)))


def score_tables(told: Told) -> Section:
    systems, first = told.systems, told.systems[0]
    text = slim_table(tables.COLUMNS, tables.score_rows(systems))
    if len(systems) > 1:
        text += slim_table(tables.GAIN_COLUMNS, tables.gain_rows(systems))
    if differ := tables.say_databases(systems):
        text += Markup("<p>{}</p>").format(differ)
    return Section("Scores", text, say("scores", first, first.cost))


def tiers(told: Told) -> Section:
    systems = told.systems
    counts = ", ".join(f"{tier} {systems[0].tier(tier).queries}" for tier in TIERS)
    bars = told.wide("tiers", tier_bars(systems, (1, 5, 10)), "R@1, R@5 and R@10 by tier")
    table = slim_table(tables.TIER_COLUMNS, tables.tier_rows(systems))
    return Section("Head, middle, tail", bars + table, say("tiers", counts))


def long_tail(told: Told) -> Section:
    first = told.systems[0]
    index = told.kept[-1].index if told.kept else None
    same = index is not None and np.array_equal(index.places.ids, first.places.ids)
    diversity = told.kept[-1].diversity() if same else None
    figure = rank_count(first.places, told.systems, diversity)
    drawing = told.wide("long-tail", figure, "photos and recall by rank of the place")
    asked = int((first.predictions.places >= 0).sum())
    alike = "" if diversity is None else told.last.name
    return Section("The long tail", drawing, say("long_tail", first.places.counts, asked, alike))


def conditions(told: Told) -> Section | None:
    rows = tables.condition_rows(told.systems)
    if not rows:
        return None
    columns = [*tables.CONDITION_COLUMNS, *(f"R@1 {scores.name}" for scores in told.systems)]
    return Section("Conditions", slim_table(columns, rows, texts=(1,)), say("conditions"))


def where(told: Told) -> Section:
    """The map: places by tier, queries right and wrong, and what a click tells."""
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
    drawn = map_html(cells, points, tiles=tiles_under(told.tiles, places))
    caption = say("where", places, run, scores.name, say_cities(places))
    switch = part("tier_switch", list(TIERS))  # which the gallery below follows too
    return Section("Where", switch + drawn + part("answer_dots"), caption)


def _right_by_place(scores: Scores) -> list[str]:
    """ "3 of 4" for each place that was asked about.  (C,)."""
    run, count = scores.predictions, len(scores.places)
    at = run.places >= 0
    asked = np.bincount(run.places[at], minlength=count)
    right = np.bincount(run.places[at & run.right], minlength=count)
    return [f"{r} of {a}" if a else "–" for r, a in zip(right, asked, strict=True)]


def _query_texts(scores: Scores, pictures: Pictures) -> list[Markup]:
    """What a click on each query tells; 150 of them, wrong answers first, with their photos."""
    run, reasons = scores.predictions, tell_reasons(scores)
    pictured = set(np.argsort(run.right, kind="stable")[:PICTURED].tolist())
    texts = []
    for query in range(len(run)):
        tier = TIERS[run.tiers[query]] if run.tiers[query] >= 0 else NOWHERE
        sources = None
        if query in pictured:
            shown = (run.paths[query], run.hit_paths[query][0])
            sources = [source for path in shown if path and (source := pictures.source(path))]
        texts.append(part("told", reasons[query], tier, f"{run.confidence[query]:.2f}", sources))
    return texts


def gallery(told: Told) -> Section:
    look = open_look(told.kept[-1].index if told.kept else None)
    caption = say("gallery", told.last.predictions, told.last.name, look is not None)
    return Section(
        "Queries and answers", gallery_html(told.systems, told.pictures, look=look), caption
    )


def failures(told: Told) -> Section | None:
    rows = reason_rows(told.systems)
    if not rows:
        return None
    wrong = int((~told.last.predictions.right).sum())
    table = slim_table(REASON_COLUMNS, rows, texts=(1, len(REASON_COLUMNS) - 1))
    caption = say("failures", wrong, told.last.name, VERIFIED, REFUTED)
    return Section("Why it fails", table, caption)


def before_and_after(told: Told) -> Section | None:
    """Tail places as the first and the last system see them; None without indexes or openTSNE."""
    title = "Tail places, before and after"
    chosen = sorted({0, len(told.systems) - 1}) if told.kept else []
    indexes = [index for at in chosen if (index := told.kept[at].index) is not None]
    if not indexes or len(indexes) < len(chosen) or find_spec("openTSNE") is None:
        return None
    if (drawn := tail_places([told.systems[at] for at in chosen], indexes)) is None:
        return Section(title, Markup(), f"Fewer than two tail places have {LEAST} photos.")
    return Section(title, told.wide("tail-places", drawn[0], "t-SNE of tail places"), drawn[1])


def confidence(told: Told) -> Section:
    last, run = told.last, told.last.predictions
    drawings = {
        "precision-recall": (curves.precision_recall(last), "Up and to the right is good."),
        "risk-coverage": (curves.risk_coverage(last), "Low is good; dotted: 5 % risk."),
        "reliability": (curves.reliability_bars(last), "On the dotted line, sure means right."),
    }
    figures = part("figures", [(told.draw(name, one, name), f"{text} {len(run)} answers.")
                               for name, (one, text) in drawings.items()])  # fmt: skip
    table = slim_table(tables.KNOWING_COLUMNS, tables.knowing_rows(told.systems), texts=(1,))
    return Section("Does it know?", figures + table, say("confidence", run, last.name))


def metres(told: Told) -> Section:
    said = ", ".join(
        f"{one.name} {one.position.median:.0f} m (p90 {one.position.p90:,.0f} m)"
        for one in told.systems
    )
    drawing = told.wide("metres", curves.error_curve(told.systems), "position error")
    return Section("How far off", drawing, say("metres", told.last.overall.queries, said))


def cost(told: Told) -> Section:
    return Section("What it costs", slim_table(*tables.cost_table(told.systems)), say("cost"))


def training(told: Told) -> Section | None:
    logs = {one.name: one.log for one in told.kept if one.log}
    if not logs:
        return None
    epochs = ", ".join(f"{name} {len(lines)}" for name, lines in logs.items())
    drawing = told.wide("training", curves.training_curve(logs), "loss by epoch")
    return Section("Training", drawing, say("training", epochs))


SECTIONS = (
    glance, score_tables, tiers, long_tail, conditions, where, gallery, failures,
    before_and_after, confidence, metres, cost, training,
)  # fmt: skip
