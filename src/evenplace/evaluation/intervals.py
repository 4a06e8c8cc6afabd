"""How far a recall could be from itself on another day: bootstrap over places, not photos.

Queries taken at one spot succeed and fail together, so whole spots are drawn, not queries: scipy's
bootstrap draws queries, and is an extra of ours as its binomial test is.

    Q queries · K clusters · T kinds of cluster · R resamples
"""

from dataclasses import dataclass

import numpy as np

from evenplace.arrays import Bools, Doubles, Ints

RESAMPLES = 2000
_MANY = 2000  # spots from which the normal limit is used
_NORMAL = 1.959964  # 97.5 % of a normal variable lies below


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


@dataclass(frozen=True)
class Paired:
    """What one system wins over another on the same queries.

    won, lost: queries only the first, or only the second, answers right; p: McNemar's exact
    two-sided chance of so uneven a split were both equally good (queries taken as independent).
    """

    gain: Interval
    won: int
    lost: int
    p: float

    def __str__(self) -> str:
        gain = self.gain
        return (
            f"{gain.mean:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}]"
            f"{' *' if gain.excludes_zero else ''} ({self.won} won, {self.lost} lost, "
            f"p {_chance(self.p)})"
        )


def interval(values: Doubles, clusters: Ints, seed: int = 0) -> Interval:
    """Mean of per-query values and its interval.

    values: (Q,) e.g. 1 where right, or the difference between two systems; clusters: (Q,) the
    spot each query was taken at.  No queries give nan.

    Spots with the same sum and size are interchangeable, so how often each *kind* is drawn is
    multinomial as well: the same distribution as drawing spots, without a (R, K) table.  Beyond
    2,000 spots the normal limit of the same estimator is used.
    """
    if not len(values):
        return Interval(float("nan"), float("nan"), float("nan"))
    sums, sizes = _per_cluster(np.asarray(values, np.float64), clusters)  # (K,)
    mean = float(np.mean(values))
    if len(sums) > _MANY:
        error = np.sqrt(np.sum((sums - mean * sizes) ** 2) * len(sums) / (len(sums) - 1))
        ends = np.clip(mean + np.array([-1, 1]) * _NORMAL * error / len(values),
                       values.min(), values.max())  # fmt: skip
        return Interval(100 * mean, 100 * float(ends[0]), 100 * float(ends[1]))
    kinds, many = np.unique(sums + 1j * sizes, return_counts=True)  # (T,) as pairs
    generator = np.random.default_rng(seed)
    draws = generator.multinomial(len(sums), many / len(sums), RESAMPLES)  # (R, T)
    means = (draws @ kinds.real) / (draws @ kinds.imag)
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(100 * mean, 100 * float(low), 100 * float(high))


def mcnemar(won: int, lost: int) -> float:
    """Chance of a split at least as uneven as won : lost, if each way were equally likely.

    p = min(1, 2 sum_{i <= min(won, lost)} C(n, i) / 2^n),   n = won + lost
    """
    total, few = won + lost, min(won, lost)
    if not total:
        return 1.0
    steps = np.arange(1, few + 1)
    logs = np.cumsum(np.log((total - steps + 1) / steps)) - total * np.log(2)  # log C(n, i) / 2^n
    below = float(np.exp(logs).sum() + np.exp(-total * np.log(2)))
    return min(1.0, 2 * below)


def pair(ours: Bools, theirs: Bools, clusters: Ints) -> Paired:
    """Compare two systems on the same queries.  ours, theirs: (Q,) whether each was right."""
    won, lost = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    gain = interval(ours.astype(np.float64) - theirs, clusters)
    return Paired(gain, won, lost, mcnemar(won, lost))


def _per_cluster(values: Doubles, clusters: Ints) -> tuple[Doubles, Doubles]:
    if clusters.max() > 8 * len(clusters) + 1024:  # ids of another numbering
        _, clusters = np.unique(clusters, return_inverse=True)
    sizes = np.bincount(clusters)
    sums = np.bincount(clusters, weights=values).astype(np.float64)
    return sums[sizes > 0], sizes[sizes > 0].astype(np.float64)


def _chance(p: float) -> str:
    return "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")
