"""Does a system know when it is right?  Curves and numbers for one confidence a query.

Every function takes right (Q,), whether the first answer was right, and confidence (Q,), higher
for surer.  Equal confidences are accepted or refused together, so no order among them is assumed.

    Q queries · U distinct confidences, surest first
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Bools, Doubles, Ints
from evenplace.errors import SettingError
from evenplace.evaluation.uncertainty import Interval

Sure = NDArray[np.floating]
PRECISIONS = (0.95, 0.99)
BINS = 10
_RESAMPLES = 500


@dataclass(frozen=True)
class Curve:
    """What is accepted when the threshold is lowered from one distinct confidence to the next."""

    accepted: Doubles  # (U,) queries at least that sure
    right: Doubles  # (U,) of them answered right

    @property
    def precision(self) -> Doubles:
        share: Doubles = self.right / np.maximum(self.accepted, 1.0)
        return share

    @property
    def recall(self) -> Doubles:
        """Of the right answers, the share accepted."""
        share: Doubles = self.right / max(self.right[-1], 1.0)
        return share

    @property
    def coverage(self) -> Doubles:
        """Of the queries, the share answered."""
        share: Doubles = self.accepted / self.accepted[-1]
        return share

    @property
    def average_precision(self) -> float:
        """AUC-PR as scikit-learn has it: sum_u (recall_u - recall_{u-1}) precision_u; 0 if none."""
        return float(np.diff(self.recall, prepend=0.0) @ self.precision)

    @property
    def auroc(self) -> float:
        """Chance that a right answer is surer than a wrong one, ties counting half."""
        hits, misses = self.right, self.accepted - self.right
        if not hits[-1] or not misses[-1]:
            return float("nan")
        rising = np.diff(misses, prepend=0.0) * (hits + np.append(0.0, hits[:-1])) / 2
        return float(rising.sum() / (hits[-1] * misses[-1]))

    @property
    def aurc(self) -> float:
        """Mean over n = 1 … Q of the share of wrong answers among the n surest.

        Within a tie the wrong ones are spread evenly, which is the mean over all orders.
        """
        answered = np.arange(1, int(self.accepted[-1]) + 1)
        wrong = np.append(0, self.accepted - self.right)
        return float(np.mean(np.interp(answered, np.append(0, self.accepted), wrong) / answered))

    def coverage_at(self, precision: float) -> float:
        """The largest share of queries that can be answered while `precision` of them are right."""
        return float(self.coverage[self.precision >= precision - 1e-12].max(initial=0.0))


@dataclass(frozen=True)
class Reliability:
    """Ten equal bins of confidence from 0 to 1: how sure, how often right, how many queries."""

    confidence: Doubles  # (10,) mean within the bin, nan if empty
    precision: Doubles  # (10,)
    queries: Ints  # (10,)

    @property
    def ece(self) -> float:
        """Expected calibration error: the mean gap between sure and right, by query."""
        gap = np.abs(np.nan_to_num(self.confidence - self.precision))
        return float((gap * self.queries).sum() / max(self.queries.sum(), 1))


@dataclass(frozen=True)
class Knowing:
    """How well one source of confidence tells right answers from wrong ones.

    auc_pr is scikit-learn's average precision; aurc the mean risk over all coverages (lower is
    better); coverage the largest share of queries that can be answered at a precision; ece is nan
    for a source that is no probability.  Without a right and a wrong answer auroc is nan.
    """

    queries: int
    right: int
    auc_pr: float
    auroc: float
    aurc: float
    coverage: dict[str, float]
    ece: float


class Ranked:
    """Answers sorted once, surest first, for one curve or for many resamples of them."""

    def __init__(self, right: Bools, confidence: Sure) -> None:
        _check(right, confidence)
        self._order = np.argsort(-confidence, kind="stable")
        ranked = np.asarray(confidence, np.float64)[self._order]
        self._last = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)  # of each tie
        self._right = right[self._order]

    def curve(self, weight: Ints | None = None) -> Curve:
        """Lower the threshold over all of them, each counted `weight` times, or once."""
        counted = np.ones(len(self._order)) if weight is None else weight[self._order] * 1.0
        hits = np.cumsum(counted * self._right)[self._last]
        return Curve(np.cumsum(counted)[self._last], hits)


def trace(right: Bools, confidence: Sure) -> Curve:
    """Lower the threshold over all queries, surest first."""
    return Ranked(right, confidence).curve()


def reliability(right: Bools, confidence: Sure) -> Reliability:
    """Compare how sure with how often right, in ten bins; confidences must lie in 0..1."""
    _check(right, confidence)
    sure = np.asarray(confidence, np.float64)
    if sure.min() < 0 or sure.max() > 1:
        raise SettingError(
            f"confidences from {sure.min():.3g} to {sure.max():.3g} are no probabilities; "
            "calibrate the source first"
        )
    which = np.minimum((sure * BINS).astype(np.int64), BINS - 1)
    many = np.bincount(which, minlength=BINS)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(which, weights=sure, minlength=BINS) / many
        good = np.bincount(which, weights=right, minlength=BINS) / many
    return Reliability(mean, good, many)


def judge(right: Bools, confidence: Sure) -> Knowing:
    """Every number about one source."""
    sure = np.asarray(confidence, np.float64)
    curve = trace(right, sure)
    probable = bool(sure.min() >= 0 and sure.max() <= 1)
    return Knowing(
        queries=len(right),
        right=int(right.sum()),
        auc_pr=curve.average_precision,
        auroc=curve.auroc,
        aurc=curve.aurc,
        coverage={f"{100 * p:g}": curve.coverage_at(p) for p in PRECISIONS},
        ece=reliability(right, sure).ece if probable else float("nan"),
    )


def compare_sources(
    right: Bools,
    ours: Sure,
    theirs: Sure,
    clusters: Ints,
    runs: Ints | None = None,
    seed: int = 0,
) -> Interval:
    """AUC-PR of one source minus another's on the same answers, in points, spots resampled.

    runs: (Q,) where the answers of several runs stand together: confidences of two runs are not
    on one scale, so the mean over runs is compared.
    """
    of = np.zeros(len(right), np.int64) if runs is None else runs
    rows = [np.flatnonzero(of == run) for run in np.unique(of)]
    pairs = [[Ranked(right[mine], sure[mine]) for sure in (ours, theirs)] for mine in rows]

    def gain(weight: Ints) -> float:
        found = [[one.curve(weight[mine]).average_precision for one in pair]
                 for mine, pair in zip(rows, pairs, strict=True)]  # fmt: skip
        return float(np.mean([mine - other for mine, other in found]))

    _, which = np.unique(clusters, return_inverse=True)
    spots = int(which.max()) + 1
    generator = np.random.default_rng(seed)
    gains = [
        gain(generator.multinomial(spots, np.full(spots, 1 / spots))[which])
        for _ in range(_RESAMPLES)
    ]
    low, high = np.percentile(gains, [2.5, 97.5])
    return Interval(100 * gain(np.ones(len(right), np.int64)), 100 * float(low), 100 * float(high))


def _check(right: Bools, confidence: Sure) -> None:
    if len(right) != len(confidence) or not len(right):
        raise SettingError(
            f"{len(right)} answers and {len(confidence)} confidences; give one each, at least one"
        )
    if not np.isfinite(confidence).all():
        raise SettingError("a confidence is not finite; leave that query out")
