"""What comes back when a precision is asked for: how right, and how much is still answered.

Q queries
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenplace.arrays import Bools
from evenplace.evaluation.predictions import Predictions
from evenplace.places.tiers import TIERS

_COUNTS = ("asked", "answered", "right")


@dataclass(frozen=True)
class Delivered:
    """Of `asked` queries `answered` were answered, and `right` of those rightly."""

    asked: int
    answered: int
    right: int

    @property
    def precision(self) -> float:
        return self.right / self.answered if self.answered else float("nan")

    @property
    def coverage(self) -> float:
        return self.answered / self.asked if self.asked else float("nan")

    def keeps(self, wanted: float) -> bool:
        """Whether so many were right; nothing said is nothing wrong."""
        return self.right >= wanted * self.answered

    def __str__(self) -> str:
        if not self.answered:
            return f"none of {self.asked} answered"
        return (
            f"{100 * self.precision:.1f} % right ({self.right} of {self.answered}), "
            f"{100 * self.coverage:.0f} % answered"
        )


@dataclass(frozen=True)
class Abstention:
    """A precision that was asked for, the confidence that takes, and what it delivered."""

    min_precision: float
    threshold: float
    overall: Delivered
    tail: Delivered


def abstain(run: Predictions, min_precision: float, threshold: float) -> Abstention:
    """Judge the answers that are at least as sure as the threshold; the others are not given."""
    kept = run.confidence >= threshold
    return Abstention(
        min_precision,
        threshold,
        deliver(run.right, kept),
        deliver(run.right, kept, run.tiers == TIERS.index("tail")),
    )


def together(parts: Sequence[Delivered]) -> Delivered:
    """Several counts as one."""
    return Delivered(*(sum(getattr(one, name) for one in parts) for name in _COUNTS))


def deliver(right: Bools, kept: Bools, among: Bools | None = None) -> Delivered:
    """Count answers.  right, kept, among: (Q,)."""
    asked = np.ones(len(right), bool) if among is None else among
    answered = kept & asked
    return Delivered(int(asked.sum()), int(answered.sum()), int((right & answered).sum()))
