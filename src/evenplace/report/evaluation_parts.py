"""The sections of the evaluation page; each says what to see and how many queries it rests on.

Q queries · C places
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from markupsafe import Markup
from matplotlib.figure import Figure as Drawing

from evenplace.evaluation import Scores, compare_pairs
from evenplace.places.tiers import TIERS
from evenplace.report import curves, tables
from evenplace.report.figures import inline_svg, rank_count, tier_bars
from evenplace.report.gallery import gallery_html, open_look
from evenplace.report.page import Figure, Section, part, slim_table
from evenplace.report.pictures import Pictures
from evenplace.report.reasons import REASON_COLUMNS, reason_rows
from evenplace.report.run_files import Kept
from evenplace.report.scatter import LEAST, tail_places
from evenplace.retrieval.verification import REFUTED, VERIFIED


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
        return Markup('<div class="wide">{}</div>').format(self.draw(name, figure, label))


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


def glance(told: Told) -> Section:
    best = told.last
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


def score_tables(told: Told) -> Section:
    systems, first, cost = told.systems, told.systems[0], told.systems[0].cost
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


def tiers(told: Told) -> Section:
    systems, first = told.systems, told.systems[0]
    counts = ", ".join(f"{tier} {first.tier(tier).queries}" for tier in TIERS)
    return Section(
        "Head, middle, tail",
        told.wide("tiers", tier_bars(systems, (1, 5, 10)), "R@1, R@5 and R@10 by tier")
        + slim_table(tables.TIER_COLUMNS, tables.tier_rows(systems)),
        "R@1, R@5 and R@10 overall and by tier of the query's place: the 30 % most photographed "
        f"places, the middle 40 %, the 30 % least photographed. Queries: {counts}. Where the "
        "whiskers of two bars overlap, believe the table of differences above, not your eyes.",
    )


def long_tail(told: Told) -> Section:
    systems, counts = told.systems, told.systems[0].places.counts
    diversity = told.kept[-1].diversity() if told.kept else None
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
    figure = rank_count(systems[0].places, systems, diversity)
    drawing = told.wide("long-tail", figure, "photos and recall by rank of the place")
    return Section("The long tail", drawing, caption)


def conditions(told: Told) -> Section | None:
    systems, rows = told.systems, tables.condition_rows(told.systems)
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


def gallery(told: Told) -> Section:
    run = told.last.predictions
    caption = (
        f"Some of {len(run)} queries, {int((~run.right).sum())} of which "
        f"{told.last.name} answers wrong. Left the query, then the five best "
        "answers of each system: green frames are right, red ones wrong, with the metres between "
        "answer and query and the likely reason of a failure."
    )
    look = open_look(told.kept[-1].index if told.kept else None)
    if look is not None:
        caption += " Points that match the first answer are drawn where it is opened."
    return Section(
        "Queries and answers", gallery_html(told.systems, told.pictures, look=look), caption
    )


def failures(told: Told) -> Section | None:
    rows = reason_rows(told.systems)
    if not rows:
        return None
    wrong = int((~told.last.predictions.right).sum())
    return Section(
        "Why it fails",
        slim_table(REASON_COLUMNS, rows, texts=(1, len(REASON_COLUMNS) - 1)),
        f"The likely reason of each failure ({wrong} of {told.last.name}), from "
        "positions and ranks alone. What is not in the pool no ranking can mend. Where pictures "
        f"were looked at twice: verified, {VERIFIED} points or more match the wrong answer, which "
        f"then shows the same thing from elsewhere; refuted, at most {REFUTED} do.",
    )


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
    caption = (
        f"Every source of confidence on the same {len(run)} answers of {last.name}, "
        f"{int(run.right.sum())} of them right; “own” is the one the system answers with. The "
        "table has the share of queries that can be answered at 95 and 99 % precision."
    )
    table = slim_table(tables.KNOWING_COLUMNS, tables.knowing_rows(told.systems), texts=(1,))
    return Section("Does it know?", figures + table, caption)


def metres(told: Told) -> Section:
    said = ", ".join(
        f"{one.name} {one.position.median:.0f} m (p90 {one.position.p90:,.0f} m)"
        for one in told.systems
    )
    return Section(
        "How far off",
        told.wide("metres", curves.error_curve(told.systems), "position error"),
        f"Share of the {told.last.overall.queries} queries whose estimated position is within so "
        f"many metres; median {said}. The dotted line is at 25 m.",
    )


def cost(told: Told) -> Section:
    return Section(
        "What it costs",
        slim_table(*tables.cost_table(told.systems)),
        "Sizes, and the median / 95th percentile milliseconds of one query by stage, asked one by "
        "one on the machine that evaluated. Memory is that of the process.",
    )


def training(told: Told) -> Section | None:
    logs = {one.name: one.log for one in told.kept if one.log}
    if not logs:
        return None
    epochs = ", ".join(f"{name} {len(lines)}" for name, lines in logs.items())
    return Section(
        "Training",
        told.wide("training", curves.training_curve(logs), "loss by epoch"),
        f"Loss by epoch ({epochs}); dashed, where kept, the recall on held-out photos.",
    )
