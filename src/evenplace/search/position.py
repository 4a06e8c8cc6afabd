"""One position out of many candidates, and how far off it may be.

P candidates · m candidates near the answer
"""

import numpy as np
from numpy.typing import NDArray

from evenplace.search.hits import Ellipse, Position

_NEAR = 50.0  # metres around the best photo: what lies further is another opinion, not a spread
_STEP = 8.0  # metres: the camera stood beside the database's, whose own fix is not exact either
_CHI2 = 5.991  # 95 % of a Gaussian on the plane

NOWHERE = Position(float("nan"), float("nan"), Ellipse(*[float("nan")] * 3))


def fuse_position(
    spots: NDArray[np.float64], cosines: NDArray[np.float32], best: int, *, scale: float = 30.0
) -> Position:
    """Average the candidates around the best one, each by how alike it looks.

        w_i ∝ exp(scale · cos_i),  mean = Σ w p,  cov = Σ w (p - mean)(p - mean)ᵀ + step² I

    Candidates elsewhere do not stretch the ellipse: that the answer may be wrong altogether is
    what the confidence says.  One candidate has the ellipse of the step alone.
    spots: (P, 2) east and north, cosines: (P,), best: the candidate ranked first.
    """
    near = np.abs(spots - spots[best]).max(axis=1) <= _NEAR
    near[near] = np.hypot(*(spots[near] - spots[best]).T) <= _NEAR
    around, alike = spots[near], cosines[near].astype(np.float64)  # (m, 2), (m,)
    weight = np.exp(scale * (alike - alike.max()))
    weight /= weight.sum()
    mean = weight @ around
    offset = around - mean
    east, north = (weight @ offset**2) + _STEP**2
    return Position(float(mean[0]), float(mean[1]), _ellipse(east, north, _cross(weight, offset)))


def _cross(weight: NDArray[np.float64], offset: NDArray[np.float64]) -> float:
    return float(weight @ (offset[:, 0] * offset[:, 1]))


def _ellipse(east: float, north: float, cross: float) -> Ellipse:
    """Half axes and bearing of a 2 × 2 covariance, in closed form."""
    middle, half = (east + north) / 2, (east - north) / 2
    reach = float(np.hypot(half, cross))
    bearing = 90 - np.degrees(0.5 * np.arctan2(cross, half))  # from east counter-clockwise
    return Ellipse(
        float(np.sqrt(_CHI2 * (middle + reach))),
        float(np.sqrt(_CHI2 * max(middle - reach, 0.0))),
        float(bearing % 180),
    )
