"""Raw confidence → the probability of being right, learned on queries whose answer is known.

What is right is for whoever asks to say: within 25 m or 10, looking the same way or not.  So a
run keeps its rehearsal, answers and how far off each was, and a curve is fitted when it is needed.

    V validation queries · Q queries
"""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import RunError, SettingError
from evenplace.photos.files import whole_file

Floats = NDArray[np.float32]

_RIDGE = 1.0  # a query's worth of doubt: keeps separable answers from certainty
_NEVER = 2.0  # above every probability: abstain always


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
        return f"{self.rule} on {among}{look}, confidence by {self.source}{facing}"


@dataclass(frozen=True)
class Rehearsal:
    """Answers to photos held out in turn: how sure each was, and how far off.

    They hold for the way of asking they were made with.
    """

    confidence: tuple[float, ...]  # (V,)
    facing: tuple[float, ...]  # (V,) confidence of an engine to which headings matter
    metres: tuple[float, ...]  # (V,) from the photo to the answer; a million where there is none
    degrees: tuple[float, ...]  # (V,) between the two views, 0 where one is unknown
    way: Way

    def fits(self, way: Way) -> bool:
        """Whether answers found in this way are like those rehearsed; both facings were."""
        return replace(way, facing=False) == self.way

    def calibrate(self, radius: float = 25.0, heading: float | None = None) -> "Calibration":
        """The curve where an answer is right within `radius` metres, and `heading` degrees."""
        right = np.array(self.metres) <= radius
        if heading is None:
            return fit_calibration(np.array(self.confidence, np.float32), right, self.way)
        right &= np.array(self.degrees) <= heading
        facing = replace(self.way, facing=True)
        return fit_calibration(np.array(self.facing, np.float32), right, facing)

    def write(self, path: str | Path) -> None:
        with whole_file(Path(path), RunError) as draft:
            draft.write_text(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> Self:
        answers = {
            name: tuple(kept[name]) for name in ("confidence", "facing", "metres", "degrees")
        }
        return cls(**kept | answers | {"way": Way(**kept["way"])})

    @classmethod
    def read(cls, path: str | Path) -> Self:
        try:
            return cls.from_dict(json.loads(Path(path).read_text()))
        except (ValueError, KeyError, TypeError) as cause:
            raise RunError(
                f"{path} is no rehearsal ({cause}); learn it again: evenplace tune RUN"
            ) from cause


@dataclass(frozen=True)
class Calibration:
    """A rising curve from a confidence to a probability, and the validation answers behind it.

        p(right | c) = 1 / (1 + exp(-(slope (c - centre) / spread + intercept)))

    One curve of two numbers: a few hundred validation queries cannot carry more.
    """

    centre: float
    spread: float
    slope: float
    intercept: float
    probabilities: tuple[float, ...] = field(repr=False)  # (V,) ascending
    right: tuple[bool, ...] = field(repr=False)  # (V,)
    way: Way | None = None  # what it was learned for; None where nobody said

    def __str__(self) -> str:
        share = sum(self.right) / max(1, len(self.right))
        known = f": {self.way}" if self.way else ""
        return f"calibrated on {len(self.right):,} answers, {share:.0%} of them right{known}"

    def check(self, way: Way) -> None:
        """Refuse to judge answers that were found in another way."""
        if self.way is not None and self.way != way:
            raise SettingError(
                f"this calibration is for {self.way}, and the answers are by {way}; leave "
                "calibration= out, or learn another: evenplace tune RUN"
            )

    def __call__(self, raw: Floats) -> Floats:
        """Probability that the answer is right.  (Q,) -> (Q,)."""
        score = self.slope * (np.asarray(raw, np.float64) - self.centre) / self.spread
        return _sigmoid(score + self.intercept).astype(np.float32)

    def threshold(self, precision: float) -> float:
        """The lowest probability from which answers keep that precision.

        Two witnesses must agree: the curve (the mean probability of what would be answered) and
        the validation answers themselves, at the lower end of a one-sided 95 % Wilson interval,
        so that a handful of lucky ones promises nothing.  2 when no threshold keeps it: abstain
        always.
        """
        check_precision(precision)
        sure = np.array(self.probabilities[::-1])
        kept = np.arange(1, len(sure) + 1)
        ends = np.append(sure[:-1] > sure[1:], True)[: len(sure)]  # equal ones stand together
        by_curve = np.cumsum(sure) / kept >= precision
        by_answers = _lower_bound(np.cumsum(self.right[::-1]), kept) >= precision
        safe = np.flatnonzero(ends & by_curve & by_answers)
        return float(sure[safe[-1]]) if len(safe) else _NEVER


def check_precision(precision: float) -> None:
    """Refuse what is no share, before anything runs."""
    if not 0 < precision < 1:
        raise SettingError(f"min_precision={precision} must lie between 0 and 1, as in 0.95")


def fit_calibration(raw: Floats, right: NDArray[np.bool_], way: Way | None = None) -> Calibration:
    """Fit the curve by penalised logistic regression; a curve that falls is flattened.

    raw: (V,) confidences, right: (V,) whether the answers were right.
    """
    values = np.asarray(raw, np.float64)
    if not len(values) or not np.isfinite(values).all():
        raise SettingError(
            f"{len(values)} finite confidences are too few to calibrate; hold out more"
        )
    centre, spread = float(values.mean()), float(values.std()) or 1.0
    slope, intercept = _fit_logistic((values - centre) / spread, right.astype(np.float64))
    curve = Calibration(centre, spread, slope, intercept, (), ())
    probabilities = curve(values.astype(np.float32))
    order = np.argsort(probabilities, kind="stable")
    return Calibration(
        centre,
        spread,
        slope,
        intercept,
        tuple(float(p) for p in probabilities[order]),
        tuple(bool(r) for r in right[order]),
        way,
    )


def _fit_logistic(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Newton's method on the log likelihood less a small penalty on the slope."""
    columns = np.column_stack([x, np.ones_like(x)])
    theta, penalty = np.zeros(2), np.diag([_RIDGE, 1e-6])
    for _ in range(50):
        p = _sigmoid(columns @ theta)
        gradient = columns.T @ (y - p) - penalty @ theta
        curvature = (columns * (p * (1 - p))[:, None]).T @ columns + penalty
        step = np.linalg.solve(curvature, gradient)
        theta = theta + np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-9:
            break
    if theta[0] < 0:
        share = (y.sum() + 0.5) / (len(y) + 1)
        return 0.0, float(np.log(share / (1 - share)))
    return float(theta[0]), float(theta[1])


def _lower_bound(right: NDArray[np.int64], kept: NDArray[np.int64]) -> NDArray[np.float64]:
    """Wilson's one-sided lower bound of a share, at 95 %."""
    z = 1.6449
    share = right / kept
    half = z * np.sqrt(share * (1 - share) / kept + (z / (2 * kept)) ** 2)
    bound: NDArray[np.float64] = (share + z * z / (2 * kept) - half) / (1 + z * z / kept)
    return bound


def _sigmoid(score: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-np.clip(score, -60, 60)))
