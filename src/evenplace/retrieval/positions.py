"""Where a photo was taken: the candidates around the best one, each by how alike it looks.

Q queries · T candidates of a batch
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenplace.retrieval.candidates import Pools, sum_spans

Spots = NDArray[np.float64]
RADIUS = 25.0  # metres within which two candidates say the same
_NEAR = 50.0  # metres around the best photo: what lies further is another opinion, not a spread
STEP = 8.0  # metres: the camera stood beside the database's, whose own fix is not exact either
CHI2 = 5.991  # 95 % of a Gaussian on the plane


@dataclass(frozen=True)
class Ellipse:
    """Where the photo was taken with 95 % probability, if the answer is right at all."""

    major: float  # half axis, metres
    minor: float  # half axis, metres
    bearing: float  # of the major axis, degrees clockwise from north, 0 to 180


@dataclass(frozen=True)
class Position:
    """One place on the map from all the candidates that agree; NaN where there is none."""

    east: float
    north: float
    ellipse: Ellipse


NOWHERE = Position(float("nan"), float("nan"), Ellipse(*[float("nan")] * 3))


@dataclass(frozen=True)
class Around:
    """The candidates of a batch as seen from the best one of each query."""

    pools: Pools
    spots: Spots  # (T, 2) east and north, or (T, 3) with what keeps zones apart
    best: NDArray[np.int64]  # (Q,) candidates ranked first, any where none is

    @cached_property
    def origin(self) -> Spots:
        """Where the best candidates lie.  (Q, 3)."""
        return self.spots[np.minimum(self.best, len(self.spots) - 1)]

    @cached_property
    def offset(self) -> tuple[Spots, ...]:
        """From the best to each candidate, axis by axis: one array of all costs ten times that.

        (T,) each.
        """
        return tuple(
            axis - np.repeat(start, self.pools.sizes)
            for axis, start in zip(self.spots.T, self.origin.T, strict=True)
        )

    @cached_property
    def squared(self) -> Spots:
        """Square metres.  (T,)."""
        return np.asarray(sum(axis * axis for axis in self.offset))

    def masses(self) -> NDArray[np.float32]:
        """`confidence.mass` of a batch: the same sums without a loop.  (Q,)."""
        if not len(self.spots):
            return np.zeros(len(self.pools), np.float32)
        near, weights = self.squared <= RADIUS**2, self.pools.weights
        total = np.maximum(self.pools.sums(weights), 1e-300)
        return np.asarray(self.pools.sums(near * weights) / total, np.float32)

    def positions(self) -> list[Position]:
        """Average the candidates around the best one of each query, each by how alike it looks.

            w_i ∝ exp(30 cos_i),  mean = Σ w p,  cov = Σ w (p - mean)(p - mean)ᵀ + step² I

        Candidates elsewhere do not stretch the ellipse: that the answer may be wrong altogether is
        what the confidence says.  One candidate has the ellipse of the step alone.
        """
        if not len(self.spots):
            return [NOWHERE] * len(self.pools)
        near = np.flatnonzero(self.squared <= _NEAR**2)
        cuts = np.searchsorted(near, self.pools.cuts)
        east, north = (axis[near] for axis in self.offset[:2])
        weight = self.pools.weights[near]
        moved = (east, north, east * east, north * north, east * north)
        parts = np.stack([weight, *(weight * one for one in moved)])  # (6, near)
        total, *moments = sum_spans(parts.T, cuts).T  # (Q,) each
        east, north, easts, norths, cross = (sums / np.maximum(total, 1e-300) for sums in moments)
        ellipses = _ellipses(
            easts - east * east + STEP**2, norths - north * north + STEP**2, cross - east * north
        )
        found = np.stack([self.origin[:, 0] + east, self.origin[:, 1] + north, *ellipses], axis=1)
        return [
            Position(where[0], where[1], Ellipse(*where[2:])) if count else NOWHERE
            for where, count in zip(found.tolist(), self.pools.sizes.tolist(), strict=True)
        ]


def _ellipses(east: Spots, north: Spots, cross: Spots) -> tuple[Spots, Spots, Spots]:
    """Half axes and bearing of 2 × 2 covariances, in closed form.  (Q,) each."""
    middle, half = (east + north) / 2, (east - north) / 2
    reach = np.hypot(half, cross)
    bearing = 90 - np.degrees(0.5 * np.arctan2(cross, half))  # from east counter-clockwise
    major, minor = np.sqrt(CHI2 * (middle + reach)), np.sqrt(CHI2 * np.maximum(middle - reach, 0))
    return major, minor, bearing % 180
