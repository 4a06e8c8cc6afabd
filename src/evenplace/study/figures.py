"""Findings → figures for papers, as SVG and PNG.

S seeds · V values of one setting
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from evenplace.photos.files import shipped_tables
from evenplace.places.tiers import TIERS
from evenplace.report.audit_figures import map_figure, tails_figure
from evenplace.report.curves import precision_recall, reliability_bars, risk_coverage
from evenplace.report.evaluation import read_kept
from evenplace.report.figures import (
    STYLE,
    SYSTEM_COLOURS,
    blank,
    grouped_bars,
    rank_count,
    save_figure,
    tier_bars,
)
from evenplace.report.page import TIER_COLOURS
from evenplace.report.tables import span
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


def draw_long_tail(found: Findings) -> Figure:
    """Photos of each place, and along them R@1 and how alike a place's photos look (Figure 1)."""
    last, first = found.outcomes[-1], found.outcomes[0].parts[0]
    alike = read_kept(last.runs[0]).diversity()
    return rank_count(first.places, [one.parts[0] for one in found.outcomes], alike)


def draw_distribution(found: Findings) -> Figure:
    """Photos of each place of every map that was trained on (supplement A)."""
    parts = dict(zip((split.map for split in found.splits), found.outcomes[0].parts, strict=True))
    return tails_figure({name: part.places.counts for name, part in parts.items()})


@mpl.rc_context(STYLE)
def draw_lines(found: Findings) -> Figure:
    """R@1 along each setting that was varied, overall and in the tail; bars are the seeds."""
    lines: dict[str, list[tuple[float, Outcome]]] = {}
    for one in found.outcomes:
        if one.system.at:
            lines.setdefault(one.system.at[0], []).append((one.system.at[1], one))
    many = max(len(lines), 1)
    figure = Figure(figsize=(3.6 * many, 3.2), layout="constrained")
    panels: Any = figure.subplots(1, many, sharey=True, squeeze=False)[0]
    for axes, (line, named) in zip(panels, lines.items(), strict=False):
        along = sorted(named, key=lambda one: one[0])
        at = np.arange(len(along))
        for group, colour in (("overall", SYSTEM_COLOURS[2]), ("tail", TIER_COLOURS["tail"])):
            recall = np.array([[p.tier(group).recall[1] for p in one.parts] for _, one in along])
            bars = recall.std(axis=1, ddof=1) if recall.shape[1] > 1 else np.zeros(len(at))
            axes.errorbar(at, recall.mean(axis=1), bars, fmt="o-", ms=4, color=colour, label=group)
        axes.set_xticks(at, [f"{value:g}" for value, _ in along])
        axes.set_xlabel(line)
    panels[0].set_ylabel("R@1, %")
    low, high = panels[0].get_ylim()
    panels[0].set_ylim(max(0, low - 5), min(100, high + 5))  # a query more is no cliff
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=2, loc="outside upper center")
    return figure


@mpl.rc_context(STYLE)
def draw_areas(found: Findings) -> Figure:
    """R@1 by the extent of the query's place, small to large (the paper's Figure 6)."""
    figure, axes = blank(7.2, 3.2)
    bars: dict[str, list[float]] = {}
    asked: list[list[int]] = []
    for one in found.outcomes:
        sizes = list(zip(*(recall_by_area(part) for part in one.parts), strict=True))  # 3 of S
        many = [sum(part.queries for part in parts) for parts in sizes]
        if any(many):
            asked.append(many)
            recall = [[part.recall[1] for part in parts] for parts in sizes]
            bars[one.system.name] = np.mean(recall, axis=1).tolist()
    told = [f"\n{span(many)} queries" for many in zip(*asked, strict=True)] or [""] * 3
    labels = [f"{size} places{more}" for size, more in zip(_SIZES, told, strict=True)]
    grouped_bars(axes, labels, bars, SYSTEM_COLOURS[1:])
    axes.set_ylabel("R@1, %")
    if bars:
        figure.legend(*axes.get_legend_handles_labels(), ncols=2, loc="outside upper center")
    else:
        axes.text(1, 0.5, "every place is as large as the others", ha="center")
    return figure


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
    grid: Any = figure.subplots(down, across, sharey=True, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, (test, one, host) in zip(grid.flat, panels, strict=False):
        bars = {name.removeprefix(host).strip() or "plain": _by_tier(one.of(name))
                for name in hosts[host]}  # fmt: skip
        grouped_bars(axes, ("all", *TIERS), bars, _STEPS)
        axes.set_title(f"{host}, {test}" if len(several) > 1 else host, fontsize=9)
        axes.tick_params(axis="x", labelsize=8)
        axes.set_ylim(0, 100)
    for axes in grid[:, 0]:
        axes.set_ylabel("R@1, %", fontsize=9)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _by_tier(one: Outcome) -> list[float]:
    """R@1 overall and by tier of the queries, the mean of the seeds."""
    tiers = [[p.recall[1], *(p.by_query[t].recall[1] for t in TIERS)] for p in one.parts]
    return [float(value) for value in np.mean(tiers, axis=0)]


_SIZES = ("small", "medium", "large")
_STEPS = ("#7a869a", "#56b4e9", "#0072b2")  # darker as more is changed
FIGURES: dict[str, Draw] = {
    "ranks": lambda found: tier_bars([one.joint for one in found.outcomes], (1, 5, 10)),  # Figure 4
    "long-tail": draw_long_tail,
    "map": lambda found: map_figure(found.outcomes[0].parts[0].places),  # Figure 2
    "distribution": draw_distribution,
    "hosts": lambda found: draw_multiples({found.splits[0].name: found}),  # supplement B
    "tiers": draw_tiers,
    "steps": draw_steps,
    "lines": draw_lines,
    "areas": draw_areas,
    "precision-recall": lambda found: precision_recall(found.outcomes[-1].joint),
    "risk": lambda found: risk_coverage(found.outcomes[-1].joint),
    "reliability": lambda found: reliability_bars(found.outcomes[-1].joint),
    "stages": draw_stages,
}
CAPTIONS: dict[str, str] = shipped_tables("study/captions.toml")


def draw(found: Findings, name: str, path: Path) -> tuple[Figure, str]:
    """A figure, written as SVG, PNG and CSV, and what it shows on how many queries."""
    figure = FIGURES[name](found)
    save_figure(figure, path)
    asked = f" {found.outcomes[0].joint.overall.queries} queries."
    return figure, CAPTIONS[name] + ("" if name in ("map", "distribution") else asked)
