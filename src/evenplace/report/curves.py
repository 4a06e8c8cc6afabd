"""Curves of one or several systems: what they know, how far off they are, how they learned.

Drawn like `figures`, so that pages and papers show the same.

    Q queries
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from evenplace.arrays import Doubles
from evenplace.evaluation import Scores
from evenplace.evaluation.confidence_curves import Curve, reliability, trace
from evenplace.report.figures import INK, STYLE, SYSTEM_COLOURS, blank, thin

SOURCE_COLOURS = {
    "own": INK,
    "l2": "#7a869a",
    "ratio": "#56b4e9",
    "sue": "#999933",
    "posterior": "#cc79a7",
    "mass": "#0072b2",
    "cfd": "#d55e00",
    "r": "#882255",
    "inliers": "#332288",
}


def precision_recall(scores: Scores) -> Figure:
    """Precision against recall as the threshold falls, a line a source."""
    figure, axes = _by_source(scores, lambda curve: (curve.recall, curve.precision), "auc_pr")
    axes.set(xlabel="recall: share of the right answers that is kept", ylabel="precision",
             ylim=(_floor(scores), 1.01))  # fmt: skip
    return figure


def risk_coverage(scores: Scores) -> Figure:
    """Share of wrong answers against share of queries answered, a line a source."""
    figure, axes = _by_source(scores, lambda curve: (curve.coverage, 1 - curve.precision), "aurc")
    axes.axhline(0.05, color=INK, lw=0.8, ls=":")
    axes.set(xlabel="coverage: share of the queries that is answered",
             ylabel="risk: share of wrong answers",
             ylim=(0, max(1 - _floor(scores), 0.1)))  # fmt: skip
    return figure


@mpl.rc_context(STYLE)
def _by_source(
    scores: Scores, trail: Callable[[Curve], tuple[Doubles, Doubles]], judged: str
) -> tuple[Figure, Any]:
    """A line for each source of confidence, and in the legend what it is worth."""
    figure, axes = blank(4.4, 3.6)
    run = scores.predictions
    for name, sure in {"own": run.confidence, **run.sources}.items():
        x, y = trail(trace(run.right, sure))
        kept, worth = thin(len(x)), getattr(scores.knowing[name], judged)
        axes.plot(x[kept], y[kept], **_line(name), label=f"{name}  {worth:.3f}")
    axes.set_xlim(0, 1)
    axes.legend(title=f"source, {judged.upper().replace('_', '-')}", loc="best", fontsize=7)
    return figure, axes


@mpl.rc_context(STYLE)
def reliability_bars(scores: Scores) -> Figure:
    """How often right against how sure, for the sources that are probabilities."""
    figure, axes = blank(4.4, 3.6)
    run = scores.predictions
    axes.plot([0, 1], [0, 1], color=INK, lw=0.8, ls=":")
    for name, sure in {"own": run.confidence, **run.sources}.items():
        if np.isfinite(scores.knowing[name].ece):
            found = reliability(run.right, sure)
            at = found.queries > 0
            label = f"{name}  {found.ece:.3f}"
            line = _line(name)
            axes.plot(found.confidence[at], found.precision[at], **line, label=label)
            sizes = 4 + 60 * found.queries[at] / max(found.queries.sum(), 1)
            axes.scatter(found.confidence[at], found.precision[at], sizes, color=line["color"],
                         zorder=3)  # fmt: skip
    axes.set(xlabel="how sure", ylabel="how often right", xlim=(0, 1.01), ylim=(0, 1.01))
    if axes.get_legend_handles_labels()[0]:
        axes.legend(title="source, ECE", loc="best", fontsize=7)
    return figure


@mpl.rc_context(STYLE)
def error_curve(systems: Sequence[Scores]) -> Figure:
    """Share of the queries placed within so many metres, a line a system."""
    figure, axes = blank(7.2, 3.2)
    for colour, scores in zip(cycle(SYSTEM_COLOURS), systems, strict=False):
        metres = np.sort(scores.predictions.errors)
        share = np.arange(1, len(metres) + 1) / len(metres) * 100
        known = np.isfinite(metres)
        label = f"{scores.name}: median {scores.position.median:.0f} m"
        axes.plot(np.maximum(metres[known], 1), share[known], lw=2, color=colour, label=label)
    axes.axvline(25, color=INK, lw=0.8, ls=":")
    axes.set(xscale="log", xlabel="metres between estimate and truth", ylabel="queries within, %",
             ylim=(0, 100))  # fmt: skip
    axes.legend(loc="lower right", fontsize=8)
    return figure


@mpl.rc_context(STYLE)
def training_curve(logs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """Loss by epoch, and the development recall where a run kept it."""
    figure, axes = blank(7.2, 3.0)
    right: Any = None
    for colour, (name, lines) in zip(cycle(SYSTEM_COLOURS), logs.items(), strict=False):
        losses = [line["loss"] for line in lines if "loss" in line]
        axes.plot(np.arange(1, len(losses) + 1), losses, color=colour, lw=2, label=name)
        recall = [line["recall"] for line in lines if isinstance(line.get("recall"), float | int)]
        if recall:
            right = right or axes.twinx()
            right.plot(np.arange(1, len(recall) + 1), recall, color=colour, ls="--")
    axes.set(xlabel="epoch", ylabel="loss")
    if right is not None:
        right.set_ylabel("R@1 on held-out photos, %")
        right.spines["right"].set_visible(True)
    axes.legend(fontsize=8)
    return figure


def _line(name: str) -> dict[str, Any]:
    own = name == "own"
    return {"color": SOURCE_COLOURS.get(name, INK), "lw": 2.4 if own else 1.4}


def _floor(scores: Scores) -> float:
    """Where the precision axis begins: a little below the precision of answering everything."""
    return max(0.0, float(np.floor(10 * scores.predictions.right.mean() - 1)) / 10)
