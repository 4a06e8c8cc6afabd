"""How sure an answer is: one number a query from its pool, its ranking and where things lie.

Every source takes the candidates, their ranking, their positions (P, 2), and which of them would
be the same answer as the first (P,); see `same_answer`.  Higher is surer.  Only `mass` and
`posterior` are in 0..1, and `evidence` is their log odds; the others are for ranking answers by
how much to trust them.  A calibration (`calibration.py`) makes a probability of any of them.
`docs/method.md` has what each is worth.

    P candidates
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import unknown_name
from evenplace.photos.nearby import turn
from evenplace.retrieval.candidates import Pool, Ranking
from evenplace.retrieval.positions import RADIUS

Spots = NDArray[np.float64]
Same = NDArray[np.bool_]
Confidence = Callable[[Pool, Ranking, Spots, Same], float]

TURN = 45.0
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


def mass(pool: Pool, ranking: Ranking, spots: Spots, same: Same, *, scale: float = 30.0) -> float:
    """The share of the pool's softmax(scale · cos) that is the same answer.

    One when everything alike is here, low when look-alikes elsewhere compete.
    """
    weight = np.exp(scale * (pool.cosines - pool.cosines.max()))
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


def sue(
    pool: Pool,
    ranking: Ranking,
    spots: Spots,
    same: Same,
    *,
    neighbours: int = 10,
    slope: float = 40.0,
) -> float:
    """Minus the spatial spread of the best references, weighed by similarity (SUE).

        w_k ∝ exp(-slope d_k),   spread = mean over axes of sum_k w_k (p_k - p̄)^2

    The authors' slope of 350 belongs to their descriptors; on unit descriptors it leaves only
    the first reference.
    """
    best = ranking.order[:neighbours]
    away = np.sqrt(np.maximum(2 - 2 * pool.cosines[best], 0))
    weight = np.exp(-slope * (away - away.min()))
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


def build_confidence(name: str, **settings: Any) -> Confidence:
    """Choose a source of confidence by name."""
    if name not in CONFIDENCES:
        raise unknown_name("confidence", name, CONFIDENCES)
    source = CONFIDENCES[name]
    return lambda pool, ranking, spots, same: source(pool, ranking, spots, same, **settings)
