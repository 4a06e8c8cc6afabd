"""Why an answer is wrong, as far as positions and ranks can tell.

Q queries
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Bools
from evenplace.evaluation import Scores
from evenplace.places.tiers import TIERS
from evenplace.retrieval.verification import REFUTED, VERIFIED

RIGHT = "right"
REASONS = {
    "no match": "the database holds no photo of this spot",
    "not in the pool": "the classifier did not shortlist a matching place",
    "near miss": "the answer is just outside the radius, within twice of it",
    "looks away": "the answer stands at the spot and looks another way",
    "look-alike": "a photo from somewhere else won; a right one is among the first 20",
    "far look-alike": "a photo from somewhere else won; no right one among the first 20",
}


def find_reasons(scores: Scores) -> NDArray[np.str_]:
    """The likely reason of each query's failure, or "right".  (Q,)."""
    run, truth = scores.predictions, scores.truth
    away = run.hit_metres[:, 0]  # (Q,)
    in_metres = truth.frames is None
    cases = [
        (run.right, RIGHT),
        (run.positives == 0, "no match"),
        (~run.in_pool, "not in the pool"),
        (in_metres & (away <= truth.radius), "looks away"),
        (in_metres & (away <= 2 * truth.radius), "near miss"),
        (run.first_right > 0, "look-alike"),
    ]
    chosen = np.select([case for case, _ in cases], [name for _, name in cases], "far look-alike")
    return np.asarray(chosen, np.str_)


def reason_rows(systems: Sequence[Scores]) -> list[list[str]]:
    """How many queries fail for each reason, by system and tier."""
    rows = []
    for scores in systems:
        reasons, tiers = find_reasons(scores), scores.predictions.tiers
        for name, meaning in REASONS.items():
            mine = reasons == name
            if mine.any():
                counts = [int((mine & (tiers == tier)).sum()) for tier in range(len(TIERS))]
                looked = _looked(scores, mine)
                rows.append(
                    [scores.name, name, str(int(mine.sum())), *map(str, counts), *looked, meaning]
                )
    return rows


def _looked(scores: Scores, mine: Bools) -> list[str]:
    """Of some queries, those whose answer a second look verified, and refuted."""
    inliers = scores.predictions.sources.get("inliers")
    if inliers is None:
        return ["", ""]
    seen = inliers[mine]
    return [str(int((seen >= VERIFIED).sum())), str(int((seen <= REFUTED).sum()))]


REASON_COLUMNS = ("system", "reason", "queries", *TIERS, "verified", "refuted", "meaning")


def tell_reasons(scores: Scores) -> list[str]:
    """Each query's reason as a sentence with its metres and ranks.  (Q,)."""
    run, radius = scores.predictions, f"{scores.truth.radius:g} m"
    looked = run.sources.get("inliers")
    seen = [""] * len(run)
    if looked is not None:
        seen = [f"; {max(0, int(points))} points match" for points in looked]
    away, rank = run.hit_metres[:, 0].tolist(), (run.first_right + 1).tolist()
    sentences = {
        RIGHT: "right, {0:.0f} m away",
        "no match": "no photo of this spot in the database",
        "not in the pool": "not in the pool: its place was not shortlisted",
        "near miss": "near miss: {0:.0f} m, just outside {1}",
        "looks away": "{0:.0f} m away, but looking another way",
        "look-alike": "look-alike {0:,.0f} m away; the right one is number {2}",
        "far look-alike": "look-alike {0:,.0f} m away",
    }
    return [
        sentences[reason].format(metres, radius, number) + points
        for reason, metres, number, points in zip(
            find_reasons(scores).tolist(), away, rank, seen, strict=True
        )
    ]
