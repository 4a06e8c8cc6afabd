"""A run asked about its own photos, each as if the database did not have it."""

import numpy as np

from evenplace.describe.describer import Progress
from evenplace.photos.nearby import find_nearby
from evenplace.places.wanted import RADIUS, HeldOut, weigh_views
from evenplace.retrieval import Search

SAME = 2.0  # metres within which photos are of one stop, and hidden together


def hold_out(
    engine: Search, most: int = 400, seed: int = 0, progress: Progress | None = None
) -> HeldOut | None:
    """Ask about some photos of the index, spread over places; None where none can be described."""
    index = engine.index
    labels = index.labels
    if engine.describer is None or not (labels >= 0).any():
        return None
    dice = np.random.default_rng(seed)
    rows = dice.permutation(np.flatnonzero(labels >= 0))
    turn = np.zeros(len(rows), np.int64)  # the first photo of each place before any second
    seen: dict[int, int] = {}
    for at, row in enumerate(rows.tolist()):
        turn[at] = seen[int(labels[row])] = seen.get(int(labels[row]), -1) + 1
    rows = np.sort(rows[np.argsort(turn, kind="stable")][:most])
    described = engine.describer.describe(index.paths(rows), progress=progress)
    rows = rows[described.rows]
    if not len(rows):
        return None
    asked = index.photos[rows]
    hidden = find_nearby(index.photos, asked, SAME)
    without = [hidden.of(query) for query in range(len(rows))]
    found = engine.search(described.descriptors, 1, without=without)
    best = found.rows[:, 0]
    away = np.linalg.norm(index.spots(np.maximum(best, 0)) - index.spots(rows), axis=1)
    near = weigh_views(index.photos, asked, asked.heading, beyond=SAME)
    return HeldOut(labels[rows], near, (best >= 0) & (away <= RADIUS))
