"""Tail places before and after, laid out on the plane by t-SNE (the paper's Figure C1).

N photos · D descriptor
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from evenplace.arrays import Doubles, Floats, Ints
from evenplace.evaluation import Predictions, Scores
from evenplace.places.tiers import TIERS
from evenplace.report.figures import STYLE
from evenplace.report.page import say
from evenplace.retrieval import Index

PLACES, LEAST, MOST = 10, 3, 40
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999933", "#882255",
           "#7a869a", "#332288")  # fmt: skip


@dataclass(frozen=True)
class Cloud:
    """Photos of chosen places, described by one system."""

    name: str
    descriptors: Floats  # (N, D)
    labels: Ints  # (N,) 0 … 9
    asked: int = 0  # the last so many are queries

    @property
    def purity(self) -> float:
        """Share of the photos whose nearest other photo shown is of the same place, in percent."""
        alike = self.descriptors @ self.descriptors.T
        np.fill_diagonal(alike, -np.inf)
        return 100 * float(np.mean(self.labels[alike.argmax(axis=1)] == self.labels))


def choose_places(index: Index, run: Predictions) -> Ints:
    """Up to ten tail places with at least three photos, those of the queries included."""
    at = run.places[run.places >= 0] if run.descriptors is not None else run.places[:0]
    photos = np.asarray(index.sizes) + np.bincount(at, minlength=len(index.sizes))
    tail = np.flatnonzero((photos >= LEAST) & (index.places.tiers == TIERS.index("tail")))
    return np.sort(np.random.default_rng(0).permutation(tail)[:PLACES])


def gather_clouds(systems: Sequence[Scores], indexes: Sequence[Index]) -> tuple[list[Cloud], Ints]:
    """The same photos of the same places as each system describes them, and the places chosen.

    Systems whose index holds other photos or places are left out.
    """
    first, clouds = indexes[0], []
    places = choose_places(first, systems[0].predictions)
    for scores, index in zip(systems, indexes, strict=True):
        if np.array_equal(index.places.ids, first.places.ids) and len(index) == len(first):
            clouds.append(_gather(scores, index, places))
    return clouds, places


def _gather(scores: Scores, index: Index, places: Ints) -> Cloud:
    starts, run = index.starts, scores.predictions
    rows = [np.arange(starts[p], min(starts[p + 1], starts[p] + MOST)) for p in places]
    labels = [np.full(len(mine), label) for label, mine in enumerate(rows)]
    described = [np.asarray(index.descriptors[mine], np.float32) for mine in rows]
    asked = 0
    if run.descriptors is not None and run.descriptors.shape[1] == index.dim:
        mine = np.flatnonzero(np.isin(run.places, places))
        described.append(run.descriptors[mine].astype(np.float32))
        labels.append(np.searchsorted(places, run.places[mine]))
        asked = len(mine)
    numbers = np.concatenate([np.empty((0, index.dim), np.float32), *described])
    return Cloud(scores.name, numbers, np.concatenate([np.empty(0, np.int64), *labels]), asked)


def lay_out(descriptors: Floats) -> Doubles:
    """t-SNE on the plane, cosine distances.  (N, D) -> (N, 2)."""
    from openTSNE import TSNE

    perplexity = max(2.0, min(15.0, (len(descriptors) - 1) / 3))
    layout = TSNE(
        perplexity=perplexity, metric="cosine", neighbors="exact", random_state=0, n_jobs=1,
        negative_gradient_method="bh",
    ).fit(np.asarray(descriptors, np.float64))  # fmt: skip
    return np.asarray(layout)


def tail_places(systems: Sequence[Scores], indexes: Sequence[Index]) -> tuple[Figure, str] | None:
    """The picture and its caption; None where the tail has no two places to show."""
    clouds, places = gather_clouds(systems, indexes)
    if len(places) < 2:
        return None
    first = clouds[0]
    centres = ", ".join(f"[{e:.0f}, {n:.0f}]" for e, n in systems[0].places.centres[places])
    database = len(first.labels) - first.asked
    caption = say("tail_places", database, first.asked, len(places), LEAST, centres)
    return tail_scatter(clouds), caption


@mpl.rc_context(STYLE)
def tail_scatter(clouds: Sequence[Cloud]) -> Figure:
    """One panel a system, one colour a place."""
    figure = Figure(figsize=(3.6 * len(clouds), 3.6), layout="constrained")
    for number, cloud in enumerate(clouds):
        axes: Any = figure.add_subplot(1, len(clouds), number + 1)
        spots = lay_out(cloud.descriptors)
        query = np.arange(len(spots)) >= len(spots) - cloud.asked
        for label in np.unique(cloud.labels):
            for kind, marker in ((~query, "o"), (query, "^")):
                mine = spots[(cloud.labels == label) & kind]
                axes.scatter(mine[:, 0], mine[:, 1], 24, marker=marker, color=COLOURS[label])
        axes.set_title(f"{cloud.name}\n{cloud.purity:.0f} % beside their own", fontsize=10)
        axes.set(xticks=[], yticks=[])
        axes.spines[["top", "right"]].set_visible(True)
    return figure
