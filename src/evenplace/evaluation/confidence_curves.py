"""Does a system know when it is right?  Curves and numbers for one confidence a query.

right (Q,) says whether the first answer was right, confidence (Q,) is higher for surer.  Equal
confidences are accepted or refused together, so no order among them is assumed.  An engine answers
with one source of confidence; `find_sources` computes the others from what it looked at, so that
they can be judged side by side.

    Q queries · U distinct confidences, surest first · F frequencies
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Bools, Doubles, Floats, Ints, ranges
from evenplace.errors import SettingError
from evenplace.evaluation.intervals import Interval
from evenplace.retrieval import Batch, Index, Search
from evenplace.retrieval.array_files import dots
from evenplace.retrieval.confidence import CONFIDENCES, same_answer
from evenplace.retrieval.spectrum import PolarSpectra, as_turns, draw_frequencies

Sure = NDArray[np.floating]
PRECISIONS = (0.95, 0.99)
BINS = 10
_RESAMPLES = 500
POOLED = ("l2", "ratio", "sue", "posterior", "mass")  # from the candidates of a query
SOURCES = (*POOLED, "cfd", "r")
_ALPHA = 0.7


@dataclass(frozen=True)
class Curve:
    """What is accepted when the threshold is lowered from one distinct confidence to the next."""

    accepted: Doubles  # (U,) queries at least that sure
    right: Doubles  # (U,) of them answered right

    @property
    def precision(self) -> Doubles:
        return self.right / np.maximum(self.accepted, 1.0)

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
        counted = np.ones(len(self._order)) if weight is None else weight[self._order].astype(float)
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


def find_sources(engine: Search, batch: Batch) -> dict[str, Floats]:
    """The confidence of each answer by each source; nan without an answer.  (Q,) a source.

    cfd is minus the distance (Eq. 13, the paper's settings) between the query and the place of
    the answer, r that place's reliability (Eq. 10).  inliers only where an engine looks twice;
    -1 for a query that could not be looked at.
    """
    answered = np.flatnonzero(batch.hits.rows[:, 0] >= 0)
    found = {name: np.full(len(batch.hits), np.nan, np.float32) for name in SOURCES}
    for query in answered.tolist():
        pool, ranking = batch.pools[query], batch.rankings[query]
        spots = batch.spots[batch.pools.cuts[query] : batch.pools.cuts[query + 1]]
        same = same_answer(int(ranking.order[0]), spots)
        for name in POOLED:
            found[name][query] = CONFIDENCES[name](pool, ranking, spots, same)
    if len(answered):
        asked, rows = batch.pools.queries[answered], batch.hits.rows[answered, 0]
        found["cfd"][answered], found["r"][answered] = _spectral(engine.ranking, asked, rows)
    if engine.look is not None:
        found["inliers"] = np.nan_to_num(batch.hits.inliers[:, 0], nan=-1)
    return found


def refuse(values: Floats) -> Floats:
    """Put queries without an answer below all others."""
    known = np.isfinite(values)
    least = values[known].min() if known.any() else np.float32(0)
    return np.where(known, values, least - abs(least) * np.float32(1e-3) - np.float32(1e-6))


def _spectral(index: Index, asked: Floats, answers: Ints) -> tuple[Floats, Floats]:
    """Minus CFD, and r, of each query and its answer's place; a photo in no place stands alone."""
    place = index.places_of(answers)
    keys, which = np.unique(np.where(place < 0, -1 - answers, place), return_inverse=True)
    inside = np.maximum(keys, 0)
    first = np.where(keys < 0, -1 - keys, index.starts[inside])
    last = np.where(keys < 0, -keys, index.starts[inside + 1])
    rows, of = ranges(first, last)
    points = draw_frequencies("paper", index.dim)
    starts = np.searchsorted(of, np.arange(len(keys) + 1))
    spectra = PolarSpectra.measure(index.vectors(rows), starts, points)
    turns = as_turns(dots(asked, points))  # (Q, F)
    distance = spectra.distances(turns, which, _ALPHA, phase="wrapped", unbiased=False)
    return -distance, 1 / np.maximum(spectra.levels[which, 0, 0], np.float32(1e-6))


def _check(right: Bools, confidence: Sure) -> None:
    if len(right) != len(confidence) or not len(right):
        raise SettingError(
            f"{len(right)} answers and {len(confidence)} confidences; give one each, at least one"
        )
    if not np.isfinite(confidence).all():
        raise SettingError("a confidence is not finite; leave that query out")
