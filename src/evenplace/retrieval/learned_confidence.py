"""How sure an answer is, by several witnesses at once, weighed as held-out photos taught.

    evidence   log odds of the answer's surroundings, by the score after the second look
    matches    what the answer's inliers are worth (`verification.worth`)
    lead       by how much that is more than the best of what says something else
    likeness   cosine of the descriptors

The first is about the map alone: for a photo taken off it something must be nearest, and its
odds can be high.  The others are about the pictures, and low then.  Photos that cannot be on
the map are part of the rehearsal: held-out ones whose surroundings were hidden.

    V rehearsed answers · T witnesses
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenplace.retrieval.candidates import Pool, Ranking
from evenplace.retrieval.confidence import Same, Spots, evidence, inliers
from evenplace.retrieval.verification import worth

Doubles = NDArray[np.float64]
WITNESSES = ("evidence", "matches", "lead", "likeness")
_RIDGE = 1.0  # an answer's worth of doubt about each weight
_STEPS = 50


def witnesses(pool: Pool, ranking: Ranking, spots: Spots, same: Same) -> Doubles:
    """What each witness says of the answer.  -> (T,)."""
    matches = inliers(pool, ranking, spots, same)
    elsewhere = 0.0
    if ranking.inliers is not None:
        others = np.nan_to_num(ranking.inliers[~same[ranking.order]])
        elsewhere = float(np.max(others, initial=0))
    return np.array(
        [
            evidence(pool, ranking, spots, same),
            worth(matches),
            worth(matches) - worth(elsewhere),
            pool.cosines[ranking.order[0]],
        ]
    )


@dataclass(frozen=True)
class LearnedConfidence:
    """A weighted sum of the witnesses: log odds, which a calibration makes a probability of."""

    weights: tuple[float, ...]  # (T,)
    offset: float

    def __call__(self, pool: Pool, ranking: Ranking, spots: Spots, same: Same) -> float:
        return float(witnesses(pool, ranking, spots, same) @ self.weights + self.offset)


def fit_confidence(heard: Doubles, right: NDArray[np.bool_]) -> LearnedConfidence:
    """Weigh the witnesses by penalised logistic regression; none may speak against itself.

    heard: (V, T), right: (V,).
    """
    centre, spread = heard.mean(axis=0), heard.std(axis=0)
    spread[spread < 1e-9] = np.inf  # a witness that always says the same says nothing
    scaled = (heard - centre) / spread
    asked = np.isfinite(spread)
    while True:
        fitted = _logistic(scaled * asked, right)
        against = asked & (fitted[:-1] < 0)
        if not against.any():
            break
        asked &= ~against
    weights = fitted[:-1] * asked / spread
    return LearnedConfidence(
        weights=tuple(weights.tolist()), offset=float(fitted[-1] - weights @ centre)
    )


def _logistic(terms: Doubles, right: NDArray[np.bool_]) -> Doubles:
    """Newton's steps to the weights, and the intercept last.  (V, T) -> (T + 1,)."""
    table = np.column_stack([terms, np.ones(len(terms))])
    weights = np.zeros(table.shape[1])
    penalty = np.diag([_RIDGE] * terms.shape[1] + [1e-6])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(table @ weights, -30, 30)))
        slope = table.T @ (chance - right) + penalty @ weights
        bend = (table * (chance * (1 - chance))[:, None]).T @ table + penalty
        step = np.linalg.solve(bend, slope)
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    return weights
