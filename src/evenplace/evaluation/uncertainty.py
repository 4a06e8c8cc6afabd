"""How far a recall could be from itself on another day: bootstrap over places, not photos.

Queries taken at one spot succeed and fail together, so whole spots are drawn, not queries.

    Q queries · K clusters · R resamples
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000


@dataclass(frozen=True)
class Interval:
    """A mean in percent with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} [{self.low:.1f}, {self.high:.1f}]"

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


def interval(values: NDArray[np.float64], clusters: NDArray[np.int64], seed: int = 0) -> Interval:
    """Mean of per-query values and its interval.

    values: (Q,) e.g. 1 where right, or the difference between two systems; clusters: (Q,) the
    spot each query was taken at.  No queries give nan.
    """
    if not len(values):
        return Interval(float("nan"), float("nan"), float("nan"))
    _, which = np.unique(clusters, return_inverse=True)
    sums = np.bincount(which, weights=values)  # (K,)
    sizes = np.bincount(which)
    generator = np.random.default_rng(seed)
    draws = generator.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), RESAMPLES)  # (R, K)
    means = (draws @ sums) / np.maximum(draws @ sizes, 1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(100 * float(values.mean()), 100 * float(low), 100 * float(high))
