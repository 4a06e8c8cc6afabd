"""Findings → figures for papers, as SVG and PNG.

S seeds · V values of one setting
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from evenplace.places.tiers import TIERS
from evenplace.report.audit_figures import map_figure, tails_figure
from evenplace.report.curves import precision_recall, reliability_bars, risk_coverage
from evenplace.report.figures import STYLE, SYSTEM_COLOURS, rank_count, save_figure, tier_bars
from evenplace.report.page import TIER_COLOURS
from evenplace.report.run_files import read_kept
from evenplace.study.runs import Findings, Outcome
from evenplace.study.tables import places_differ, recall_by_area

Draw = Callable[[Findings], Figure]


def draw_tiers(found: Findings) -> Figure:
    """R@1 of every system, overall and by tier, with intervals over all seeds' queries.

    More systems than there are colours to tell apart get a line each.
    """
    if len(found.outcomes) > len(SYSTEM_COLOURS):
        return draw_steps(found)
    return tier_bars([one.joint for one in found.outcomes])


def draw_ranks(found: Findings) -> Figure:
    """R@1, R@5 and R@10, overall and by tier (the paper's Figure 4)."""
    return tier_bars([one.joint for one in found.outcomes], (1, 5, 10))


def draw_long_tail(found: Findings) -> Figure:
    """Photos of each place, and along them R@1 and how alike a place's photos look (Figure 1)."""
    last, first = found.outcomes[-1], found.outcomes[0].parts[0]
    alike = read_kept(last.runs[0]).diversity()
    return rank_count(first.places, [one.parts[0] for one in found.outcomes], alike)


def draw_map(found: Findings) -> Figure:
    """The places in the colours of their tiers, with four zooms (Figure 2)."""
    return map_figure(found.outcomes[0].parts[0].places)


def draw_distribution(found: Findings) -> Figure:
    """Photos of each place of every map that was trained on (supplement A)."""
    parts = dict(zip((split.map for split in found.splits), found.outcomes[0].parts, strict=True))
    return tails_figure({name: part.places.counts for name, part in parts.items()})


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
    at, own = np.arange(count), places_differ(found)
    for tier, marker, off in (("tail", "s", 0.14), ("head", "o", -0.14)):
        parts = [one.joint.tier(tier).intervals[1] for one in found.outcomes]
        mean, low, high = (
            np.array([getattr(p, n) for p in parts]) for n in ("mean", "low", "high")
        )
        queries = found.outcomes[0].joint.tier(tier).queries
        label = f"{tier} of its own places" if own else f"{tier}, {queries} queries"
        axes.errorbar(mean, at + off, xerr=[mean - low, high - mean], fmt=marker, ms=5, capsize=0,
                      color=TIER_COLOURS[tier], label=label)  # fmt: skip
    axes.set_yticks(at, [one.system.name for one in found.outcomes])
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel("R@1 within the radius, %")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    return figure


@mpl.rc_context(STYLE)
def draw_multiples(several: Mapping[str, Findings]) -> Figure:
    """R@1 overall and by tier: a panel for each test and method, plain beside changed."""
    study = next(iter(several.values())).study
    hosts = {host: [one.name for one in study.systems if study.baseline(one) == host]
             for host in dict.fromkeys(map(study.baseline, study.systems))}  # fmt: skip
    panels = [(test, one, host) for test, one in several.items() for host in hosts]
    across = min(len(hosts), 4)
    down = -(-len(panels) // across)
    figure = Figure(figsize=(2.3 * across + 0.6, 1.9 * down + 0.6), layout="constrained")
    grid: Any = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, (test, one, host) in zip(grid.flat, panels, strict=False):
        names = hosts[host]
        for number, name in enumerate(names):
            at = np.arange(4) + (number - (len(names) - 1) / 2) * 0.8 / len(names)
            label = name.removeprefix(host).strip() or "plain"
            axes.bar(at, _by_tier(one.of(name)), 0.74 / len(names), color=_STEPS[number % 3],
                     label=label)  # fmt: skip
        axes.set_title(f"{host}, {test}" if len(several) > 1 else host, fontsize=9)
        axes.set_xticks(range(4), ("all", *TIERS), fontsize=8)
        axes.set_ylim(0, 100)
    for axes in grid[:, 0]:
        axes.set_ylabel("R@1, %", fontsize=9)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _by_tier(one: Outcome) -> list[float]:
    """R@1 overall and by tier of the queries, the mean of the seeds."""
    tiers = [[p.recall[1], *(p.by_query[t].recall[1] for t in TIERS)] for p in one.parts]
    return [float(value) for value in np.nan_to_num(np.mean(tiers, axis=0))]


def draw_hosts(found: Findings) -> Figure:
    """Each host beside itself with low-visit bias (supplement B)."""
    return draw_multiples({found.splits[0].name: found})


_STEPS = ("#7a869a", "#56b4e9", "#0072b2")  # darker as more is changed
FIGURES: dict[str, Draw] = {
    "ranks": draw_ranks,
    "long-tail": draw_long_tail,
    "map": draw_map,
    "distribution": draw_distribution,
    "hosts": draw_hosts,
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
    "ranks": "R@1, R@5 and R@10 overall and by tier; whiskers are 95 % intervals over spots.",
    "long-tail": "Places by photo count (log axis); R@1 of the queries of each tenth of them; the "
    "band is how alike a place's photos look (mean cosine, one deviation either side).",
    "map": "Head, middle and tail places; two windows with most photos, two with the most even mix "
    "of tiers; numbers are photos of a place.",
    "distribution": "Photos of each place, the most photographed first, a line a map.",
    "hosts": "R@1 of each method, plain and with low-visit bias at the paper's strengths (LB) and "
    "the recommended ones (LB up); tiers are shares of the queries by their place's photos.",
    "steps": "R@1 in head and tail; whiskers are 95 % intervals over spots. Systems that cut the "
    "map otherwise have tiers of their own.",
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
    """Write every figure of the study as SVG, PNG and CSV; returns names with captions."""
    written = []
    for name in found.study.figures:
        save_figure(FIGURES[name](found), folder / f"{found.study.name}-{name}")
        written.append((f"{found.study.name}-{name}", caption(found, name)))
    return written


def caption(found: Findings, name: str) -> str:
    """What a figure shows, and how many queries it rests on."""
    asked = f" {found.outcomes[0].joint.overall.queries} queries."
    return CAPTIONS[name] + ("" if name in ("map", "distribution") else asked)
