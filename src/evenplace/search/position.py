"""One position out of many candidates, and how far off it may be.

Q queries · P candidates of one · T candidates of all
"""

import numpy as np
from numpy.typing import NDArray

from evenplace.search.hits import Ellipse, Position
from evenplace.search.pools import Pools

Spots = NDArray[np.float64]
_NEAR = 50.0  # metres around the best photo: what lies further is another opinion, not a spread
_STEP = 8.0  # metres: the camera stood beside the database's, whose own fix is not exact either
_CHI2 = 5.991  # 95 % of a Gaussian on the plane
_SCALE = 30.0

NOWHERE = Position(float("nan"), float("nan"), Ellipse(*[float("nan")] * 3))


def fuse_position(spots: Spots, cosines: NDArray[np.float32], best: int) -> Position:
    """Average the candidates around the best one, each by how alike it looks.

        w_i ∝ exp(30 cos_i),  mean = Σ w p,  cov = Σ w (p - mean)(p - mean)ᵀ + step² I

    Candidates elsewhere do not stretch the ellipse: that the answer may be wrong altogether is
    what the confidence says.  One candidate has the ellipse of the step alone.
    spots: (P, 2) east and north, cosines: (P,), best: the candidate ranked first.
    """
    nobody = np.zeros(len(spots), np.int64)
    nothing = np.zeros(len(spots), np.float32)
    pools = Pools(
        nobody, nobody, cosines, nothing, np.zeros((1, 0), np.float32), np.array([0, len(spots)])
    )
    return fuse_positions(pools, spots, np.array([best]))[0]


def fuse_positions(pools: Pools, spots: Spots, best: NDArray[np.int64]) -> list[Position]:
    """`fuse_position` of a batch.  spots: (T, 2), best: (Q,) candidates, any where none is."""
    if not len(spots):
        return [NOWHERE] * len(pools)
    of = pools.of
    origin = spots[np.minimum(best, len(spots) - 1)]  # (Q, 2)
    offset = spots - origin[of]  # (T, 2)
    near = np.einsum("td,td->t", offset, offset) <= _NEAR**2
    weight = np.where(near, np.exp(_SCALE * (pools.cosines - pools.cosines.max())), 0.0)
    total = pools.sums(weight)
    weight /= np.maximum(total, 1e-300)[of]
    mean = np.stack([pools.sums(weight * axis) for axis in offset.T], axis=1)  # (Q, 2)
    spread = offset - mean[of]
    east, north, cross = (
        pools.sums(weight * spread[:, a] * spread[:, b]) for a, b in ((0, 0), (1, 1), (0, 1))
    )
    ellipses = _ellipses(east + _STEP**2, north + _STEP**2, cross)
    return [
        Position(float(where[0]), float(where[1]), Ellipse(*(float(v) for v in shape)))
        if count
        else NOWHERE
        for where, shape, count in zip(origin + mean, ellipses, np.diff(pools.cuts), strict=True)
    ]


def _ellipses(east: Spots, north: Spots, cross: Spots) -> Spots:
    """Half axes and bearing of 2 × 2 covariances, in closed form.  (Q,) each -> (Q, 3)."""
    middle, half = (east + north) / 2, (east - north) / 2
    reach = np.hypot(half, cross)
    bearing = 90 - np.degrees(0.5 * np.arctan2(cross, half))  # from east counter-clockwise
    major, minor = np.sqrt(_CHI2 * (middle + reach)), np.sqrt(_CHI2 * np.maximum(middle - reach, 0))
    return np.stack([major, minor, bearing % 180], axis=1)
