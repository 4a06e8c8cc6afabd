"""A walk makes its photos tell of one another: forward and backward over the candidates.

Each photo has candidates with shares p (what its own search thinks) and a share for being
elsewhere.  Neighbours in time fit together when they are as near as the speed allows:

    g(i, j) = max(floor, exp(-max(0, |x_i - x_j| - speed · dt - 25 m) / 25 m))

and whatever is elsewhere fits to anything, neither well nor badly.  The chain's marginals are

    q_t(i) ∝ p_t(i) · forward_t(i) · backward_t(i)

As g never falls below the floor, one neighbour multiplies odds by at most 1 / floor: a wrong one
cannot drag a sure answer away.

    T photos · K candidates of one
"""

from collections.abc import Sequence

import numpy as np

from evenplace.arrays import Doubles

SLACK = 25.0  # metres that two right answers may be off
FLOOR, ELSEWHERE = 0.05, 0.1


def smooth(spots: Sequence[Doubles], shares: Sequence[Doubles], reach: Doubles) -> list[Doubles]:
    """The share of every candidate after its neighbours were heard.

    spots: T times (K, 2) metres, or (K, 3) with what keeps zones apart.  shares: T times
    (K + 1,), the last for elsewhere; each sums to 1.  reach: (T - 1,) metres from a photo to the
    next at most.  -> T times (K + 1,).
    """
    fits = [_fit(spots[t], spots[t + 1], reach[t]) for t in range(len(spots) - 1)]
    forward = _pass(shares, fits)
    backward = _pass(shares[::-1], [fit.T for fit in fits[::-1]])[::-1]
    return [_unit(p * f * b) for p, f, b in zip(shares, forward, backward, strict=True)]


def _pass(shares: Sequence[Doubles], fits: Sequence[Doubles]) -> list[Doubles]:
    """What the photos before each one think of its candidates; the first hears nobody."""
    heard = [np.ones(len(shares[0]))] if len(shares) else []
    for share, fit in zip(shares, fits, strict=False):
        heard.append(_unit((share * heard[-1]) @ fit))
    return heard


def _fit(here: Doubles, there: Doubles, reach: float) -> Doubles:
    """(K, 3), (K', 3) -> (K + 1, K' + 1)."""
    away = np.linalg.norm(here[:, None] - there[None], axis=2)
    fit = np.full((len(here) + 1, len(there) + 1), ELSEWHERE)
    near = np.exp(-np.maximum(0, away - reach - SLACK) / SLACK)
    fit[:-1, :-1] = np.maximum(FLOOR, near)
    return fit


def _unit(values: Doubles) -> Doubles:
    return values / max(float(values.sum()), 1e-300)
