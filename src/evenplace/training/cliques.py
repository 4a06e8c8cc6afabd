"""Batches of places that look alike and lie near each other: CliqueMining's idea on our places.

A place is drawn, then some of the places most similar to it; among their photos, cliques, in
which any two were taken within `reach` metres, become the batch's places, and photos that are
neither in a clique nor far from it are left out.

    n photos · C places · D descriptor · P places a batch · K photos of each
"""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
_TRIES = 20


def place_centres(descriptors: Floats, labels: Ints) -> Floats:
    """One unit vector a place that has photos, in the order of the places.  -> (C', D)."""
    _, which = np.unique(labels, return_inverse=True)
    sums = np.zeros((which.max(initial=-1) + 1, descriptors.shape[1]), np.float32)
    np.add.at(sums, which, descriptors)
    centres: Floats = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return centres


def clique_batch(
    centres: Floats,
    positions: NDArray[np.float64],
    labels: Ints,
    dice: np.random.Generator,
    *,
    places: int,
    bunch: int,
    alike: int,
    reach: float,
) -> list[Ints]:
    """Rows of up to `places` cliques of K photos, no two of them within `reach` of each other.

    A clique is called by the place of its first photo, whichever cells its photos lie in, and no
    two cliques by the same.  centres: (C', D) of the places that occur in labels.  positions:
    (n, 2) or (n, 3), labels: (n,).
    """
    names, which = np.unique(labels, return_inverse=True)
    found: dict[int, Ints] = {}
    free = np.ones(len(labels), bool)  # of photos near a clique of this batch
    for _ in range(_TRIES):
        seed = int(dice.integers(len(names)))
        chosen = np.append(similar_places(centres, seed, alike, dice), seed)
        rows = np.flatnonzero(np.isin(which, chosen) & free)
        for clique in cut_cliques(positions[rows], dice, bunch, reach):
            own = rows[clique]
            place = int(labels[own[0]])
            if place in found:
                continue
            found[place] = own
            for member in np.unique(own):
                free &= np.linalg.norm(positions - positions[member], axis=1) >= reach
            if len(found) == places:
                return list(found.values())
    return list(found.values())


def similar_places(centres: Floats, seed: int, alike: int, dice: np.random.Generator) -> Ints:
    """Draw places near the seed's descriptor, each in proportion to 1 / distance."""
    gap = np.sqrt(np.maximum(2 - 2 * centres @ centres[seed], 1e-6))
    odds = 1 / gap.astype(np.float64) ** _SHARPNESS
    odds[seed] = 0
    count = min(alike, int(np.count_nonzero(odds)))
    return dice.choice(len(centres), size=count, replace=False, p=odds / odds.sum())


_SHARPNESS = 4  # at 1 and hundreds of places, those alike would hardly ever be drawn


def cut_cliques(
    positions: NDArray[np.float64], dice: np.random.Generator, bunch: int, reach: float
) -> list[Ints]:
    """Grow cliques photo by photo; those near a finished one are left out.  Rows of K each.

    A clique of fewer than K photos repeats them, so that a place photographed twice takes part.
    """
    free = np.ones(len(positions), bool)
    found: list[Ints] = []
    for first in dice.permutation(len(positions)):
        if not free[first]:
            continue
        clique = [int(first)]
        near = np.linalg.norm(positions - positions[first], axis=1) < reach
        for other in dice.permutation(np.flatnonzero(near & free)):
            gaps = np.linalg.norm(positions[clique] - positions[other], axis=1)
            if other not in clique and gaps.max() < reach and len(clique) < bunch:
                clique.append(int(other))
        if len(clique) > 1:
            found.append(np.resize(np.array(clique), bunch))
        for member in clique:
            free &= np.linalg.norm(positions - positions[member], axis=1) >= reach
    return found
