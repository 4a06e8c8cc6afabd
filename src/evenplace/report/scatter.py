"""Tail places before and after, laid out on the plane by t-SNE (the paper's Figure C1).

N photos · D descriptor
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from evenplace.report.figures import STYLE
from evenplace.retrieval import Index

Floats = NDArray[np.float32]
PLACES, LEAST, MOST = 10, 3, 40
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999933", "#882255",
           "#7a869a", "#332288")  # fmt: skip


@dataclass(frozen=True)
class Cloud:
    """Photos of chosen places, described by one system."""

    name: str
    descriptors: Floats  # (N, D)
    labels: NDArray[np.int64]  # (N,) 0 … 9

    @property
    def purity(self) -> float:
        """Share of the photos whose nearest other photo shown is of the same place, in percent."""
        alike = self.descriptors @ self.descriptors.T
        np.fill_diagonal(alike, -np.inf)
        return 100 * float(np.mean(self.labels[alike.argmax(axis=1)] == self.labels))


def choose_places(index: Index, seed: int = 0) -> NDArray[np.int64]:
    """Up to ten places with at least three photos, of the tail if it has such places.

    A place of one photo has no spread to show: where the tail holds none with three, the least
    photographed places that do are taken.
    """
    sizes = np.asarray(index.sizes)
    enough = np.flatnonzero(sizes >= LEAST)
    tail = enough[index.places.tiers[enough] == 2]
    if len(tail) >= PLACES:
        return np.sort(np.random.default_rng(seed).permutation(tail)[:PLACES])
    return np.sort(enough[np.argsort(sizes[enough], kind="stable")][:PLACES])


def gather_clouds(
    names: Sequence[str], indexes: Sequence[Index], seed: int = 0
) -> tuple[list[Cloud], NDArray[np.int64]]:
    """The same photos of the same places as each system describes them, and the places chosen.

    Systems whose index holds other photos or places are left out.
    """
    first = indexes[0]
    places = choose_places(first, seed)
    clouds = []
    for name, index in zip(names, indexes, strict=True):
        if not np.array_equal(index.places.ids, first.places.ids) or len(index) != len(first):
            continue
        rows = [
            np.arange(index.starts[p], min(index.starts[p + 1], index.starts[p] + MOST))
            for p in places
        ]
        chosen = np.concatenate(rows) if rows else np.empty(0, np.int64)
        labels = np.repeat(np.arange(len(rows)), [len(part) for part in rows])
        clouds.append(Cloud(name, np.asarray(index.descriptors[chosen], np.float32), labels))
    return clouds, places


def lay_out(descriptors: Floats, seed: int = 0) -> NDArray[np.float64]:
    """t-SNE on the plane, cosine distances.  (N, D) -> (N, 2)."""
    from openTSNE import TSNE

    perplexity = max(2.0, min(15.0, (len(descriptors) - 1) / 3))
    layout = TSNE(
        perplexity=perplexity, metric="cosine", neighbors="exact", random_state=seed, n_jobs=1,
        negative_gradient_method="bh",
    ).fit(np.asarray(descriptors, np.float64))  # fmt: skip
    return np.asarray(layout)


@mpl.rc_context(STYLE)
def tail_scatter(clouds: Sequence[Cloud], seed: int = 0) -> Figure:
    """One panel a system, one colour a place."""
    figure = Figure(figsize=(3.6 * len(clouds), 3.6), layout="constrained")
    for number, cloud in enumerate(clouds):
        axes: Any = figure.add_subplot(1, len(clouds), number + 1)
        spots = lay_out(cloud.descriptors, seed)
        for label in np.unique(cloud.labels):
            mine = spots[cloud.labels == label]
            axes.scatter(mine[:, 0], mine[:, 1], 22, color=COLOURS[label % len(COLOURS)])
        axes.set_title(f"{cloud.name}\n{cloud.purity:.0f} % beside their own", fontsize=10)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[["top", "right"]].set_visible(True)
    return figure
