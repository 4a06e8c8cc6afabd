"""Figures drawn by matplotlib and put into pages as SVG that follows the page's colours.

A figure is drawn in a few marker colours; in the SVG these become the page's CSS variables, so
the same figure is right in the light and in the dark.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evenplace.arrays import Doubles, Ints, evenly
from evenplace.errors import RunError
from evenplace.evaluation import Interval, Scores
from evenplace.photos.files import whole_file, write_text
from evenplace.places.coverage import Diversity
from evenplace.places.table import Places
from evenplace.places.tiers import TIERS
from evenplace.report.page import TIER_COLOURS
from evenplace.report.tables import span

INK, ACCENT = "#010203", "#d55e00"
DRAWN = 300  # points of a curve: more than a page shows
TENTHS = 10  # parts of the ranks whose recall is told
BAND = 24  # parts the ranks are cut into for the band of similarities
_VARIABLES = {
    INK: "currentColor",
    **{colour: f"var(--{tier})" for tier, colour in TIER_COLOURS.items()},
    "#0072b2": "var(--blue)",  # these three are too dark for a dark page
    "#882255": "var(--wine)",
    "#332288": "var(--indigo)",
}
SYSTEM_COLOURS = ("#7a869a", "#56b4e9", "#0072b2", "#cc79a7", "#999933", "#882255")
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "evenplace",  # the same figure gives the same bytes
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def inline_svg(figure: Figure, label: str) -> Markup:
    """The figure as an <svg> element that scales with the page and follows its colours."""
    text = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()[text.getvalue().index("<svg") :]
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, variable)
    svg = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', 'width="100%"', svg, count=1)
    opening = Markup('<svg role="img" aria-label="{}"').format(label)
    return Markup(svg.replace("<svg", opening, 1))


def save_figure(figure: Figure, path: Path) -> None:
    """Write path.svg, path.png (light background, fixed bytes) and path.csv of what they show."""
    for suffix in (".svg", ".png"):
        meta = {"Date": None} if suffix == ".svg" else {}
        with mpl.rc_context(STYLE), whole_file(path.with_name(path.name + suffix), RunError) as to:
            figure.savefig(to, format=suffix[1:], dpi=200, facecolor="white", metadata=meta)
    write_text(path.with_name(path.name + ".csv"), figure_csv(figure))


def figure_csv(figure: Figure) -> str:
    """What is drawn, as panel,series,x,y: lines and points as they are, bars at their middle."""
    rows: list[tuple[Any, ...]] = [("panel", "series", "x", "y")]
    for number, axes in enumerate(figure.axes):
        panel = axes.get_title() or axes.get_xlabel() or str(number)
        drawn = [(line.get_label(), line) for line in axes.get_lines()]
        for group in axes.containers:
            for bar in getattr(group, "patches", ()):
                x, y = bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height()
                rows.append((panel, group.get_label(), x, y))
            if line := getattr(group, "lines", (None,))[0]:  # points with whiskers
                drawn.append((group.get_label(), line))
        for label, line in drawn:
            if not str(label).startswith("_"):
                points = np.asarray(line.get_xydata()).tolist()
                rows += [(panel, label, x, y) for x, y in points]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


@mpl.rc_context(STYLE)
def tier_bars(systems: Sequence[Scores], ranks: Sequence[int] = (1,)) -> Figure:
    """R@N of each system, overall and by tier, with 95 % intervals; a panel for each N."""
    groups = ("overall", *TIERS)
    figure = Figure(figsize=(7.2, 1.4 + 2.0 * len(ranks)), layout="constrained")
    panels: Any = figure.subplots(len(ranks), sharex=True, squeeze=False)[:, 0]
    counts = [span([one.tier(group).queries for one in systems]) for group in groups]
    labels = [f"{group}\n{many} queries" for group, many in zip(groups, counts, strict=True)]
    for axes, rank in zip(panels, ranks, strict=True):
        found = {one.name: [one.tier(group).intervals[rank] for group in groups] for one in systems}
        grouped_bars(axes, labels, found)
        axes.set(ylabel=f"R@{rank}, %", ylim=(0, 100))
    if any("to" in many for many in counts):
        panels[-1].set_xlabel("tiers are of each system's own places")
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=4 if len(systems) == 4 else 3,
                  loc="outside upper center")  # fmt: skip
    return figure


def grouped_bars(
    axes: Any,
    groups: Sequence[str],
    bars: Mapping[str, Sequence[float | Interval]],
    colours: Sequence[str] = SYSTEM_COLOURS,
) -> None:
    """A bar a group for each name, side by side; an interval has a whisker, nan has no height."""
    width = 0.8 / max(len(bars), 1)
    for number, (name, values) in enumerate(bars.items()):
        at = np.arange(len(groups)) + (number - (len(bars) - 1) / 2) * width
        ends = np.array([[one.mean, one.low, one.high] if isinstance(one, Interval)
                         else [one] * 3 for one in values], np.float64).T  # fmt: skip
        colour = colours[number % len(colours)]
        axes.bar(at, np.nan_to_num(ends[0]), width * 0.92, color=colour, label=name)
        reach = np.nan_to_num(np.abs(ends[1:] - ends[0]))
        if reach.any():
            axes.errorbar(at, ends[0], reach, fmt="none", ecolor=INK, elinewidth=1)
    axes.set_xticks(range(len(groups)), groups)


@mpl.rc_context(STYLE)
def rank_count(
    places: Places, systems: Sequence[Scores] = (), diversity: Diversity | None = None
) -> Figure:
    """Places ranked by photo count, the tiers, and each system's recall along them (Figure 1).

    diversity: how alike the photos of each place look to the last system, drawn as a band.
    """
    figure, axes = blank(7.2, 3.6)
    order = np.argsort(-places.counts, kind="stable")
    drawn = thin(len(order))
    _tier_bands(axes, places)
    axes.plot(drawn + 1, places.counts[order][drawn], color=INK, lw=2, label="photos (left axis)")
    axes.set(yscale="log", xlabel="places, most photographed first", ylabel="photos of a place")
    if not systems and diversity is None:
        return figure
    right: Any = axes.twinx()
    if diversity is not None:
        _diversity_band(right, diversity, order)
    for colour, scores in zip(cycle(SYSTEM_COLOURS), systems, strict=False):
        middles, recall = _recall_along(scores, len(order))
        right.plot(middles, recall, "o-", ms=4, color=colour, label=f"R@1 {scores.name}")
    told = (["R@1, %"] if systems else []) + (["similarity × 100"] if diversity else [])
    right.set(ylim=(0, 100), ylabel=" · ".join(told))
    right.spines["right"].set_visible(True)
    lines = [*axes.get_lines(), *right.get_lines()]
    right.legend(lines, [str(one.get_label()) for one in lines], ncols=3, loc="lower center",
                 bbox_to_anchor=(0.5, 1.0), fontsize=8)  # fmt: skip
    return figure


def _diversity_band(axes: Any, diversity: Diversity, order: Ints) -> None:
    """Mean similarity within the places of each share of the ranks, one deviation either side."""
    parts = [part for part in np.array_split(order, min(BAND, len(order))) if len(part)]
    middle, spread = (
        np.array([_mean(values[part]) for part in parts])
        for values in (diversity.mean, diversity.spread)
    )
    at = np.cumsum([len(part) for part in parts]) - np.array([len(part) for part in parts]) / 2
    known = np.isfinite(middle)
    low, high = (100 * np.clip(middle + sign * spread, 0, 1)[known] for sign in (-1, 1))
    colour = TIER_COLOURS["tail"]
    axes.fill_between(at[known], low, high, color=colour, alpha=0.2, lw=0)
    label = "similarity within a place"
    axes.plot(at[known], 100 * middle[known], color=colour, ls="--", lw=1.4, label=label)


def _mean(values: Doubles) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _recall_along(scores: Scores, drawn: int) -> tuple[Doubles, Doubles]:
    """R@1 of the queries of each tenth of a system's ranked places; nan where a tenth has none.

    drawn: places along the axis, which may be those of another system.
    """
    run, count = scores.predictions, len(scores.places)
    rank_of = np.empty(count, np.int64)
    rank_of[np.argsort(-scores.places.counts, kind="stable")] = np.arange(count)
    asked = run.places >= 0
    which = rank_of[run.places[asked]] * TENTHS // count
    total = np.bincount(which, minlength=TENTHS)
    hits = np.bincount(which, weights=run.first_right[asked] == 0, minlength=TENTHS)
    with np.errstate(invalid="ignore"):
        return (np.arange(TENTHS) + 0.5) / TENTHS * drawn, 100 * hits / total


def _tier_bands(axes: Axes, places: Places) -> None:
    low = 0.5
    for tier, name in enumerate(TIERS):
        many = int((places.tiers == tier).sum())
        axes.axvspan(low, low + many, color=TIER_COLOURS[name], alpha=0.12, lw=0)
        along = axes.get_xaxis_transform()  # of the data; across it, a share of the height
        axes.text(low + many / 2, 0.98, name, ha="center", va="top", transform=along)
        low += many


def thin(count: int) -> Ints:
    """Rows of a long curve that a page can show."""
    return evenly(count, DRAWN)


def blank(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()
