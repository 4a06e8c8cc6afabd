"""Findings → figures for papers, as SVG and PNG.

S seeds · V values of one setting
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from evenplace.report.curves import precision_recall, reliability_bars, risk_coverage
from evenplace.report.figures import STYLE, SYSTEM_COLOURS, save_figure, tier_bars
from evenplace.report.page import TIER_COLOURS
from evenplace.study.runs import Findings
from evenplace.study.tables import recall_by_area

Draw = Callable[[Findings], Figure]


def draw_tiers(found: Findings) -> Figure:
    """R@1 of every system, overall and by tier, with intervals over all seeds' queries.

    More systems than there are colours to tell apart get a line each.
    """
    if len(found.outcomes) > len(SYSTEM_COLOURS):
        return draw_steps(found)
    return tier_bars([one.joint for one in found.outcomes])


@mpl.rc_context(STYLE)
def draw_lines(found: Findings) -> Figure:
    """R@1 along each setting that was varied, overall and in the tail; bars are the seeds."""
    lines = dict.fromkeys(one.system.at[0] for one in found.outcomes if one.system.at)
    figure = Figure(figsize=(3.6 * max(len(lines), 1), 3.2), layout="constrained")
    for number, line in enumerate(lines):
        axes: Any = figure.add_subplot(1, len(lines), number + 1)
        mine = sorted(
            (one for one in found.outcomes if one.system.at and one.system.at[0] == line),
            key=lambda one: one.system.at[1] if one.system.at else 0.0,
        )
        values = [one.system.at[1] for one in mine if one.system.at]
        for group, colour in (("overall", SYSTEM_COLOURS[2]), ("tail", TIER_COLOURS["tail"])):
            recall = np.array([[p.tier(group).recall[1] for p in one.parts] for one in mine])
            bars = recall.std(axis=1, ddof=1) if recall.shape[1] > 1 else np.zeros(len(mine))
            at = np.arange(len(values))
            axes.errorbar(at, recall.mean(axis=1), bars, fmt="o-", ms=4, color=colour, label=group)
        axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
        axes.set_xlabel(line)
        axes.set_ylabel("R@1, %" if not number else "")
        axes.legend()
    return figure


@mpl.rc_context(STYLE)
def draw_areas(found: Findings) -> Figure:
    """R@1 by the extent of the query's place, small to large (the paper's Figure 6)."""
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axes: Any = figure.add_subplot()
    bars = {}
    for one in found.outcomes:
        recall = np.array([recall_by_area(part) for part in one.parts]).mean(axis=0)  # (3,)
        if np.isfinite(recall).any():
            bars[one.system.name] = recall
    width = 0.8 / max(len(bars), 1)
    for number, (name, recall) in enumerate(bars.items()):
        at = np.arange(3) + (number - (len(bars) - 1) / 2) * width
        axes.bar(at, recall, width * 0.92, color=SYSTEM_COLOURS[number + 1], label=name)
    axes.set_xticks(range(3), ["small places", "medium", "large places"])
    axes.set_ylabel("R@1, %")
    if bars:
        axes.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, 1.25))
    else:
        axes.text(1, 0.5, "every place is as large as the others", ha="center")
    return figure


def draw_precision_recall(found: Findings) -> Figure:
    """Precision against recall for every source, on the last system's answers."""
    return precision_recall(found.outcomes[-1].joint)


def draw_risk(found: Findings) -> Figure:
    """Risk against coverage for every source, on the last system's answers."""
    return risk_coverage(found.outcomes[-1].joint)


def draw_reliability(found: Findings) -> Figure:
    """How often right against how sure, for the sources that are probabilities."""
    return reliability_bars(found.outcomes[-1].joint)


@mpl.rc_context(STYLE)
def draw_stages(found: Findings) -> Figure:
    """Milliseconds of one query by stage."""
    figure = Figure(figsize=(7.2, 0.6 + 0.5 * len(found.outcomes)), layout="constrained")
    axes: Any = figure.add_subplot()
    names = [one.system.name for one in found.outcomes]
    left = np.zeros(len(names))
    for number, stage in enumerate(found.outcomes[0].joint.cost.latency):
        spent = np.array([one.joint.cost.latency[stage].median_ms for one in found.outcomes])
        axes.barh(names, spent, left=left, color=SYSTEM_COLOURS[number], label=stage)
        left += spent
    axes.invert_yaxis()
    axes.set_xlabel("median milliseconds of one query")
    axes.legend(ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.3))
    return figure


@mpl.rc_context(STYLE)
def draw_steps(found: Findings) -> Figure:
    """R@1 in head and tail, a line for each system: for studies of many."""
    count = len(found.outcomes)
    figure = Figure(figsize=(7.2, 0.8 + 0.3 * count), layout="constrained")
    axes: Any = figure.add_subplot()
    at = np.arange(count)
    for tier in ("tail", "head"):
        parts = [one.joint.tier(tier).intervals[1] for one in found.outcomes]
        mean, low, high = (
            np.array([getattr(p, n) for p in parts]) for n in ("mean", "low", "high")
        )
        label = f"{tier}, {found.outcomes[0].joint.tier(tier).queries} queries"
        axes.errorbar(mean, at, xerr=[mean - low, high - mean], fmt="o", ms=5, capsize=0,
                      color=TIER_COLOURS[tier], label=label)  # fmt: skip
    axes.set_yticks(at, [one.system.name for one in found.outcomes])
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel("R@1 within the radius, %")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    return figure


FIGURES: dict[str, Draw] = {
    "tiers": draw_tiers,
    "steps": draw_steps,
    "lines": draw_lines,
    "areas": draw_areas,
    "precision-recall": draw_precision_recall,
    "risk": draw_risk,
    "reliability": draw_reliability,
    "stages": draw_stages,
}
CAPTIONS = {
    "steps": "R@1 in head and tail; whiskers are 95 % intervals over spots.",
    "tiers": "R@1 overall and by tier; whiskers are 95 % intervals over spots.",
    "lines": "R@1 along each setting, the others at the paper's values; bars are one standard "
    "deviation over seeds.",
    "areas": "R@1 by the extent of the query's place; a grid's squares are all alike, and have no "
    "bins.",
    "precision-recall": "Precision against recall as the threshold falls, last system.",
    "risk": "Share of wrong answers against share of queries answered, last system.",
    "reliability": "How often right against how sure, last system; the diagonal is perfect.",
    "stages": "Where the time of one query goes.",
}


def write_figures(found: Findings, folder: Path) -> list[tuple[str, str]]:
    """Write every figure of the study as SVG and PNG; returns names with captions."""
    written = []
    for name in found.study.figures:
        save_figure(FIGURES[name](found), folder / f"{found.study.name}-{name}")
        queries = found.outcomes[0].joint.overall.queries
        written.append((f"{found.study.name}-{name}", f"{CAPTIONS[name]} {queries} queries."))
    return written
