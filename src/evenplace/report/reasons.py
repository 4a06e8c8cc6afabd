"""Why an answer is wrong, as far as positions and ranks can tell.

Q queries
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Bools
from evenplace.evaluation import Scores
from evenplace.photos.files import shipped_tables
from evenplace.places.tiers import TIERS
from evenplace.retrieval.point_matching import REFUTED, VERIFIED

RIGHT = "right"
REASONS = shipped_tables("report/assets/reasons.toml")  # and what is told of each


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
        for name, words in REASONS.items():
            mine = reasons == name
            if "meaning" in words and mine.any():
                counts = [mine.sum(), *((mine & (tiers == tier)).sum() for tier in range(3))]
                told = [*map(str, counts), *_looked(scores, mine), words["meaning"]]
                rows.append([scores.name, name, *told])
    return rows


def _looked(scores: Scores, mine: Bools) -> list[str]:
    """Of some queries, those whose answer a second look verified, and refuted."""
    inliers = scores.predictions.sources.get("inliers")
    if inliers is None:
        return ["", ""]
    seen = inliers[mine]
    refuted = (seen >= 0) & (seen <= REFUTED)  # below 0: nobody could look
    return [str(int((seen >= VERIFIED).sum())), str(int(refuted.sum()))]


REASON_COLUMNS = ("system", "reason", "queries", *TIERS, "verified", "refuted", "meaning")


def tell_reasons(scores: Scores) -> list[str]:
    """Each query's reason as a sentence with its metres and ranks.  (Q,)."""
    run, radius = scores.predictions, f"{scores.truth.radius:g} m"
    looked = run.sources.get("inliers")
    seen = [""] * len(run)
    if looked is not None:
        seen = ["" if points < 0 else f"; {points:.0f} points match" for points in looked]
    away, rank = run.hit_metres[:, 0].tolist(), (run.first_right + 1).tolist()
    return [
        REASONS[reason]["told"].format(metres, radius, number) + points
        for reason, metres, number, points in zip(
            find_reasons(scores).tolist(), away, rank, seen, strict=True
        )
    ]
