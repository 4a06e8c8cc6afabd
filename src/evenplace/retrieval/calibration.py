"""Raw confidence → the probability of being right, learned on queries whose answer is known.

Any score will do, with how alike the query and its answer look beside it: a score compares what
is on the map, and for a photo taken off it something must be nearest too.

    V rehearsed answers · Q queries, W of which are asked together
"""

import re
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenplace.arrays import Bools, Doubles, Floats
from evenplace.errors import SettingError
from evenplace.retrieval.confidence import fit_confidence

_NEVER = 2.0  # above every probability: abstain always
_LEAST = 20  # queries before a shift is spoken of
_CHANCE = 0.001  # of saying so where nothing has shifted
_SURELY = 1.6449  # deviations below which a share lies 5 times in 100
_ENOUGH = 20  # answers of the tail before its own share counts
_STEPS = 20  # from the surest rehearsed answer to the least sure
_STRAYS = 0.1  # of what may be wrong, what rehearsed strays may take: 1 % of them at 0.9


@dataclass(frozen=True)
class Way:
    """How answers are found and judged: what a calibration holds for, and nothing else."""

    rule: str  # what ranks, with its weights: `repr` of the reranker
    source: str  # of the confidence
    shortlist: int  # places kept
    exact: bool = False
    facing: bool = False
    look: str = ""  # how candidates are looked at a second time: `str` of the look

    def __str__(self) -> str:
        among = "the whole database" if self.exact else f"{self.shortlist} places"
        look = f", {self.look}" if self.look else ""
        facing = ", headings counted" if self.facing else ""
        said = f"{self.rule} on {among}{look}, confidence by {self.source}{facing}"
        return re.sub(r"-?\d+\.\d+(e-?\d+)?", lambda found: f"{float(found[0]):.3g}", said)


@dataclass(frozen=True)
class Calibration:
    """A rising curve to a probability, the answers behind it, and what they cannot vouch for.

        p(right | score, likeness) = 1 / (1 + exp(-(a score + b likeness + c))),   a, b >= 0

    Three numbers: a few hundred rehearsed answers cannot carry more.
    """

    weights: tuple[float, float]  # of the score and of the likeness
    offset: float
    probabilities: tuple[float, ...] = field(repr=False)  # (V,)
    right: tuple[bool, ...] = field(repr=False)  # (V,)
    tail: tuple[int, ...] = field(default=(), repr=False)  # rows of answers to photos of the tail
    away: tuple[float, ...] = field(default=(), repr=False)  # probabilities off the map
    likeness: tuple[float, ...] = field(default=(), repr=False)  # (V,) of rehearsed answers
    doubt: str = ""  # why it is no promise, in a clause; empty where it is one
    way: Way | None = None  # what it was learned for; None where nobody said

    def __str__(self) -> str:
        share = sum(self.right) / max(1, len(self.right))
        known = f": {self.way}" if self.way else ""
        learned = f"{len(self.right):,} answers, {share:.0%} of them right{known}"
        return f"uncalibrated: {self.doubt}" if self.doubt else f"calibrated on {learned}"

    def check(self, way: Way) -> None:
        """Refuse to judge answers that were found in another way."""
        if self.way is not None and self.way != way:
            raise SettingError(
                f"this calibration is for {self.way}, and the answers are by {way}; leave "
                "calibration= out, or learn another: evenplace tune RUN"
            )

    def __call__(self, raw: ArrayLike, likeness: ArrayLike | None = None) -> Floats:
        """Probability that the answer is right.  likeness: cosine of the answer.  (Q,) -> (Q,)."""
        alike = 0.0 if likeness is None else np.asarray(likeness, np.float64)
        score = self.weights[0] * np.asarray(raw, np.float64) + self.weights[1] * alike
        chance: Doubles = 1 / (1 + np.exp(-np.maximum(score + self.offset, -60)))
        return chance.astype(np.float32)

    def threshold(self, precision: float) -> float:
        """The probability from which every answer is as sure as asked, and all of them are.

        At least `precision` itself: no answer that would be right 90 times in 100 passes a bar
        of 95.  And among the rehearsed answers above it the share that was right is at least
        `precision` at the lower end of a one-sided 95 % interval, so that a handful of lucky ones
        promises nothing; of those in the tail, once there are twenty, not a deviation below it:
        they are too few to be as sure of.  Of photos off the map none passes, or, with one more
        than did, a tenth of what may be wrong.  The least such bar, tried a twentieth of the
        rehearsed answers apart: where 95 in 100 are right at all of them, one in six chances to
        promise that, where 93 are, one in thirty.  2 when none keeps it: abstain always.
        """
        check_precision(precision)
        sure, right = np.array(self.probabilities), np.array(self.right)
        bars = _every_step(sure, precision)
        tail = np.array(self.tail, int)
        safe = _kept_precision(sure, right, bars, _SURELY) >= precision
        safe &= (_above(sure[tail], bars) < _ENOUGH) | (
            _kept_precision(sure[tail], right[tail], bars, -1) >= precision
        )
        if self.away:
            strays = _above(np.array(self.away), bars)
            few = (strays + 1) / (len(self.away) + 1) <= _STRAYS * (1 - precision)
            safe &= few | (strays == 0)
        return float(bars[safe].min(initial=_NEVER))


def _every_step(sure: Doubles, least: float) -> Doubles:
    """Those at least so sure, from the top down, a step of all at a time; the last of them too."""
    step = -(-len(sure) // _STEPS)
    enough = np.sort(sure[sure >= least])[::-1]
    return np.unique(np.append(enough[step - 1 :: step], enough[-1:]))


def check_precision(precision: float) -> None:
    """Refuse what is no share, before anything runs."""
    if not 0 < precision < 1:
        raise SettingError(f"min_precision={precision} must lie between 0 and 1, as in 0.95")


def fit_calibration(
    raw: ArrayLike,
    right: Bools,
    way: Way | None = None,
    *,
    likeness: ArrayLike | None = None,
) -> Calibration:
    """Fit the curve by penalised logistic regression; what speaks against itself is not heard.

    raw, likeness: (V,) of the answers, right: (V,) whether they were.
    """
    scores = np.asarray(raw, np.float64)
    alike = np.zeros(len(scores)) if likeness is None else np.asarray(likeness, np.float64)
    heard = np.column_stack([scores, alike])  # (V, 2)
    if not len(heard) or not np.isfinite(heard).all():
        raise SettingError(
            f"{len(heard)} finite confidences are too few to calibrate; hold out more"
        )
    fitted = fit_confidence(heard, right)
    weights = (fitted.weights[0], fitted.weights[1])
    curve = Calibration(weights=weights, offset=fitted.offset, probabilities=(), right=(), way=way)
    sure = curve(scores, alike)
    return replace(curve, probabilities=tuple(sure.tolist()), right=tuple(right.tolist()))


def _kept_precision(sure: Doubles, right: Bools, bars: Doubles, z: float) -> Doubles:
    """The precision above each bar, so many deviations lower than it was; 0 where nothing is."""
    order = np.argsort(-sure, kind="stable")
    counted = np.append(0, np.cumsum(right[order]))
    kept = _above(sure, bars)
    return np.where(kept > 0, _lower_bound(counted[kept], np.maximum(kept, 1), z), 0.0)


def _above(sure: Doubles, bars: Doubles) -> NDArray[np.int64]:
    """How many are at least as sure as each bar."""
    return np.asarray(len(sure) - np.searchsorted(np.sort(sure), bars, side="left"), np.int64)


def _lower_bound(right: NDArray[np.int64], kept: NDArray[np.int64], z: float = _SURELY) -> Doubles:
    """Wilson's one-sided lower bound of a share."""
    share = right / kept
    half = z * np.sqrt(share * (1 - share) / kept + (z / (2 * kept)) ** 2)
    bound: Doubles = (share + z * z / (2 * kept) - half) / (1 + z * z / kept)
    return bound


def least_confidence(
    min_precision: float | None, calibration: Calibration | None, insist: bool = False
) -> float:
    """The confidence below which an engine abstains; what cannot be promised is refused.

    insist: take a rehearsal that promises nothing for what it is worth.
    """
    if min_precision is None:
        return -np.inf
    if calibration is None:
        raise SettingError(
            f"min_precision={min_precision} needs a calibration, and none was learned for "
            "this way of asking; ask as the run was tuned (--verify too), or evenplace tune RUN"
        )
    if calibration.doubt and not insist:
        raise SettingError(
            f"min_precision={min_precision} cannot be promised: {calibration.doubt}, so no other "
            "day could be rehearsed; calibrate on photos whose place is known (evenplace tune RUN "
            "--queries PHOTOS), or insist (--insist) on the rehearsal there was"
        )
    return calibration.threshold(min_precision)


def why_uncalibrated(calibration: Calibration | None) -> str:
    """Why a confidence is no probability, in a clause; empty where it is one."""
    return "nothing was rehearsed in this way" if calibration is None else calibration.doubt


def find_shift(asked: ArrayLike, rehearsed: ArrayLike) -> str:
    """Say that queries look less like their answers than rehearsed ones did; empty if not.

    A query of another season, camera or town resembles its answer less.  One photo tells little,
    and the curve weighs its likeness already; a hundred tell surely.
    A one-sided Kolmogorov-Smirnov test: the largest excess of the queries' share below any
    similarity is at most sqrt(-log(chance) / 2 · (1/W + 1/V)).
    """
    ours, theirs = (np.sort(np.asarray(part, np.float64)) for part in (asked, rehearsed))
    if len(ours) < _LEAST or not len(theirs):
        return ""
    below = [np.searchsorted(part, ours, side="right") / len(part) for part in (ours, theirs)]
    most = np.sqrt(-np.log(_CHANCE) / 2 * (1 / len(ours) + 1 / len(theirs)))
    if float(np.max(below[0] - below[1])) <= most:
        return ""
    return (
        f"these photos look less like the database than the rehearsed ones did (similarity "
        f"{np.median(ours):.2f} against {np.median(theirs):.2f}), so less may be right than is said"
    )
