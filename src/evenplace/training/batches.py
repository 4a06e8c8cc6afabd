"""Which photos an epoch sees, in which order: the sampler decides how often a place is met.

N photos · C places
"""

import numpy as np
from numpy.typing import NDArray


def epoch_rows(
    labels: NDArray[np.int64], sampler: str, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw as many photos as there are, in random order.

    photo: each photo once, so a place is met as often as it was photographed.
    place: each place equally often, as CosPlace and D&C do.
    sqrt:  each place in proportion to the root of its photo count.
    labels: (N,) place of each photo; every label counts -> rows (N,).
    """
    if sampler == "photo":
        return generator.permutation(len(labels))
    _, which, counts = np.unique(labels, return_inverse=True, return_counts=True)
    share = counts**0.5 if sampler == "sqrt" else np.ones(len(counts))
    odds = (share / counts)[which]  # (N,) a place's share spread over its photos
    return generator.choice(len(labels), size=len(labels), p=odds / odds.sum())


def split_batches(rows: NDArray[np.int64], batch: int) -> list[NDArray[np.int64]]:
    """Cut rows into batches of nearly equal size, none of them tiny."""
    return np.array_split(rows, max(1, round(len(rows) / batch)))
