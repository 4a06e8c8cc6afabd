"""One position out of many candidates, and how far off it may be.

Q queries · P candidates of one · T candidates of all
"""

import numpy as np
from numpy.typing import NDArray

from evenplace.retrieval.candidates import Pools, sum_spans
from evenplace.retrieval.hits import Ellipse, Position

Spots = NDArray[np.float64]
_NEAR = 50.0  # metres around the best photo: what lies further is another opinion, not a spread
_STEP = 8.0  # metres: the camera stood beside the database's, whose own fix is not exact either
_CHI2 = 5.991  # 95 % of a Gaussian on the plane

NOWHERE = Position(float("nan"), float("nan"), Ellipse(*[float("nan")] * 3))


def fuse_positions(pools: Pools, spots: Spots, best: NDArray[np.int64]) -> list[Position]:
    """Average the candidates around the best one of each query, each by how alike it looks.

        w_i ∝ exp(30 cos_i),  mean = Σ w p,  cov = Σ w (p - mean)(p - mean)ᵀ + step² I

    Candidates elsewhere do not stretch the ellipse: that the answer may be wrong altogether is
    what the confidence says.  One candidate has the ellipse of the step alone.
    spots: (T, 2) east and north, best: (Q,) candidates ranked first, any where none is.
    """
    if not len(spots):
        return [NOWHERE] * len(pools)
    origin = spots[np.minimum(best, len(spots) - 1)]
    offset = spots - origin[pools.of]
    near = np.flatnonzero(np.sum(offset * offset, axis=1) <= _NEAR**2)
    cuts = np.searchsorted(near, pools.cuts)
    east, north, weight = offset[near, 0], offset[near, 1], pools.weights[near]
    parts = np.empty((len(near), 6))
    for at, part in enumerate((1, east, north, east * east, north * north, east * north)):
        np.multiply(weight, part, out=parts[:, at])
    total, *moments = sum_spans(parts, cuts).T  # (Q,) each
    east, north, easts, norths, cross = (sums / np.maximum(total, 1e-300) for sums in moments)
    ellipses = _ellipses(
        easts - east * east + _STEP**2, norths - north * north + _STEP**2, cross - east * north
    )
    found = np.stack([origin[:, 0] + east, origin[:, 1] + north, *ellipses], axis=1)
    return [
        Position(where[0], where[1], Ellipse(*where[2:])) if count else NOWHERE
        for where, count in zip(found.tolist(), pools.sizes.tolist(), strict=True)
    ]


def _ellipses(east: Spots, north: Spots, cross: Spots) -> tuple[Spots, Spots, Spots]:
    """Half axes and bearing of 2 × 2 covariances, in closed form.  (Q,) each."""
    middle, half = (east + north) / 2, (east - north) / 2
    reach = np.hypot(half, cross)
    bearing = 90 - np.degrees(0.5 * np.arctan2(cross, half))  # from east counter-clockwise
    major, minor = np.sqrt(_CHI2 * (middle + reach)), np.sqrt(_CHI2 * np.maximum(middle - reach, 0))
    return major, minor, bearing % 180
