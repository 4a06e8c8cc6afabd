"""How sure an answer is: one number a query from its pool, its ranking and where things lie.

Every source takes the candidates, their ranking, their positions (P, 2), and which of them would
be the same answer as the first (P,); see `same_answer`.  Higher is surer.  Only `mass` and
`posterior` are in 0..1, and `evidence` is their log odds; the others are for ranking answers by
how much to trust them.  A calibration (`calibration.py`) makes a probability of any of them.
`docs/method.md` has what each is worth.

Several witnesses at once are weighed as held-out photos taught (`LearnedConfidence`):

    evidence   log odds of the answer's surroundings, by the score after the second look
    matches    what the answer's inliers are worth (`point_matching.worth`)
    lead       by how much that is more than the best of what says something else
    likeness   cosine of the descriptors

The first is about the map alone: for a photo taken off it something must be nearest, and its
odds can be high.  The others are about the pictures, and low then.  Photos that cannot be on
the map are part of the rehearsal: held-out ones whose surroundings were hidden.

    P candidates · V rehearsed answers · T witnesses · Q queries
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Doubles, Floats
from evenplace.errors import unknown_name
from evenplace.photos.nearby import turn
from evenplace.retrieval.candidates import SCALE, Pool, Ranking, Rankings
from evenplace.retrieval.point_matching import worth
from evenplace.retrieval.positions import RADIUS, Around

Spots = NDArray[np.float64]
Same = NDArray[np.bool_]
Confidence = Callable[[Pool, Ranking, Spots, Same], float]

TURN = 45.0
_RIDGE = 1.0  # an answer's worth of doubt about each weight
_STEPS = 50
_CERTAIN = 30.0  # log odds that stand for a pool with nothing but the answer's surroundings


def same_answer(best: int, spots: Spots, headings: NDArray[np.float32] | None = None) -> Same:
    """Which candidates say what the first one says: within 25 m of it, and looking its way.

    best: the answer's position in the pool.  spots: (P, 2).  headings: (P,) if they matter; one
    that is unknown stands in nobody's way.  (P,).
    """
    same: Same = np.linalg.norm(spots - spots[best], axis=1) <= RADIUS
    if headings is not None:
        same &= ~(turn(headings, headings[best]) > TURN)
    return same


def mass(pool: Pool, ranking: Ranking, spots: Spots, same: Same) -> float:
    """The share of the pool's softmax(30 cos) that is the same answer.

    One when everything alike is here, low when look-alikes elsewhere compete.
    """
    weight = np.exp(SCALE * (pool.cosines - pool.cosines.max()))
    return float(weight[same].sum() / weight.sum())


def evidence(pool: Pool, ranking: Ranking, spots: Spots, same: Same) -> float:
    """Log odds of the answer's surroundings against everywhere else, by the rule's own score.

        log sum_{c the same} exp(-d_c)  -  log sum_{c another} exp(-d_c)

    where d_c belongs to the best photo of a place: however many it has, a place is one witness.
    For rules whose distance is minus a log score: `fused` and `kde`.  As odds, sure answers stay
    in order where a share of 0.9999999 would tie.
    """
    witness = 2 * pool.places[ranking.order] + same[ranking.order]  # a place, here or elsewhere
    _, first = np.unique(witness, return_index=True)  # the best of each, in the order of ranks
    score, near = -ranking.distances[first].astype(np.float64), same[ranking.order[first]]
    here, elsewhere = (np.logaddexp.reduce(score[part]) for part in (near, ~near))
    return float(np.clip(here - elsewhere, -_CERTAIN, _CERTAIN))


def l2(pool: Pool, ranking: Ranking, spots: Spots, same: Same) -> float:
    """Minus the descriptor distance of the answer."""
    return -float(np.sqrt(max(2 - 2 * float(pool.cosines[ranking.order[0]]), 0)))


def ratio(pool: Pool, ranking: Ranking, spots: Spots, same: Same) -> float:
    """Minus d1/d2, where d2 belongs to the best candidate that says something else.

    The usual second neighbour stands beside the first one and tells nothing.
    """
    distances = np.sqrt(np.maximum(2 - 2 * pool.cosines, 1e-12))
    if same.all():
        return 0.0
    return -float(distances[ranking.order[0]] / distances[~same].min())


def posterior(pool: Pool, ranking: Ranking, spots: Spots, same: Same) -> float:
    """The classifier's probability of the answer's place."""
    return float(np.exp(pool.log_posterior[ranking.order[0]]))


def distance(pool: Pool, ranking: Ranking, spots: Spots, same: Same) -> float:
    """Minus the reranker's own distance of the answer (CFD's, for CFD)."""
    return -float(ranking.distances[0])


def sue(pool: Pool, ranking: Ranking, spots: Spots, same: Same) -> float:
    """Minus the spatial spread of the ten best references, weighed by similarity (SUE).

        w_k ∝ exp(-40 d_k),   spread = mean over axes of sum_k w_k (p_k - p̄)^2

    The authors' slope of 350 belongs to their descriptors; on unit descriptors it leaves only
    the first reference.
    """
    best = ranking.order[:10]
    away = np.sqrt(np.maximum(2 - 2 * pool.cosines[best], 0))
    weight = np.exp(-40.0 * (away - away.min()))
    weight /= weight.sum()
    centre = weight @ spots[best]
    offset = np.minimum(np.abs(spots[best] - centre), 500.0)
    return -float((weight @ offset**2).mean())


def inliers(pool: Pool, ranking: Ranking, spots: Spots, same: Same) -> float:
    """Points of the query's picture that match the answer's; 0 where nobody looked."""
    return 0.0 if ranking.inliers is None else float(np.nan_to_num(ranking.inliers[0]))


CONFIDENCES: dict[str, Confidence] = {
    "mass": mass,
    "evidence": evidence,
    "l2": l2,
    "ratio": ratio,
    "posterior": posterior,
    "distance": distance,
    "sue": sue,
    "inliers": inliers,
}


def build_confidence(name: str) -> Confidence:
    """Choose a source of confidence by name."""
    if name not in CONFIDENCES:
        raise unknown_name("confidence", name, CONFIDENCES)
    return CONFIDENCES[name]


def judge(
    source: Confidence,
    around: Around,
    rankings: Rankings,
    headings: Floats | None = None,
    calibration: Callable[[Floats, Floats], Floats] | None = None,
) -> Floats:
    """The confidence of each answer of a batch, 0 where there is none.  (Q,).

    headings: (N,) of all photos, where an answer must also look the query's way: then only
    candidates that do count for it.  calibration: takes raw confidences and likenesses.
    """
    batch = source is mass and headings is None
    sure = around.masses() if batch else _one_by_one(source, around, rankings, headings)
    if calibration is not None:
        cosines = np.append(around.pools.cosines, np.float32(0))  # of an empty pool, anything
        sure = calibration(sure, cosines[around.best])
    return np.where(around.pools.sizes > 0, sure, 0).astype(np.float32)


def _one_by_one(
    source: Confidence, around: Around, rankings: Rankings, headings: Floats | None
) -> Floats:
    pools = around.pools
    sure = np.zeros(len(pools), np.float32)
    for query in np.flatnonzero(pools.sizes).tolist():
        pool, ranking = pools[query], rankings[query]
        spots = around.spots[pools.cuts[query] : pools.cuts[query + 1]]
        turned = None if headings is None else headings[pool.rows]
        same = same_answer(int(ranking.order[0]), spots, turned)
        sure[query] = source(pool, ranking, spots, same)
    return sure


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
    """Newton's steps to the weights, and the intercept last.  (V, T) -> (T + 1,).

    Ours, since four weights are no reason to depend on scikit-learn.
    """
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
