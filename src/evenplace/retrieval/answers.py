"""Hits → what a person is told: places, a position, how sure it is, and when to say nothing.

Q queries · T candidates of a batch
"""

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import SettingError
from evenplace.places.tiers import TIERS
from evenplace.retrieval.calibration import Calibration
from evenplace.retrieval.candidates import Pools
from evenplace.retrieval.confidence import RADIUS
from evenplace.retrieval.hits import Answer, Hit, Hits, PlaceGuess
from evenplace.retrieval.index import Index


def masses(
    pools: Pools, spots: NDArray[np.float64], best: NDArray[np.int64]
) -> NDArray[np.float32]:
    """`confidence.mass` of a batch: the same sums without a loop.  spots: (T, 3), best: (Q,)."""
    if not len(spots):
        return np.zeros(len(pools), np.float32)
    offset = spots - spots[np.minimum(best, len(spots) - 1)][pools.of]
    near = np.sum(offset * offset, axis=1) <= RADIUS**2
    total = np.maximum(pools.sums(pools.weights), 1e-300)
    return np.asarray(pools.sums(near * pools.weights) / total, np.float32)


def least_confidence(min_precision: float | None, calibration: Calibration | None) -> float:
    """The confidence below which an engine abstains."""
    if min_precision is None:
        return -np.inf
    if calibration is None:
        raise SettingError(
            f"min_precision={min_precision} needs a calibration, which says how sure is sure "
            "enough; pass calibration=, or open a run that has one"
        )
    return calibration.threshold(min_precision)


def explain(
    index: Index,
    found: Hits,
    query: int,
    hits: list[Hit],
    least: float,
    min_precision: float | None,
    calibrated: bool,
) -> Answer:
    """All that is known of one of the queries."""
    confidence = float(found.confidence[query])
    reason = _doubt(hits, confidence, least, min_precision)
    return Answer(
        tuple(hits),
        tuple(
            _guess(index, int(place), float(chance))
            for place, chance in zip(found.shortlist[query], found.posterior[query], strict=True)
        ),
        found.positions[query],
        confidence,
        calibrated,
        bool(reason),
        reason,
        {stage: float(spent[query]) for stage, spent in found.elapsed_ms.items()},
        int(found.looked[query]),
    )


def _guess(index: Index, place: int, chance: float) -> PlaceGuess:
    east, north = index.places.centres[place].tolist()
    tier = TIERS[index.places.tiers[place]]
    return PlaceGuess(place, chance, (east, north), int(index.sizes[place]), tier)


def _doubt(hits: list[Hit], confidence: float, least: float, min_precision: float | None) -> str:
    if not hits:
        return "the shortlisted places hold no photo to compare with"
    if min_precision is None or confidence >= least:
        return ""
    return f"{say_chance(confidence)}, and {say_bar(min_precision, least, confidence)}"


def say_chance(confidence: float) -> str:
    """What a calibrated confidence means."""
    return f"answers like this one are right {_hundredths(confidence)} times in 100"


def say_bar(min_precision: float, least: float, confidence: float) -> str:
    """What the precision asked for is about: all the answers given, not each one.

    Digits are shown until the confidence and the bar are two numbers.
    """
    asked = f"{100 * min_precision:g} % right over all answers given"
    if least > 1:
        return f"no answer of the rehearsal was sure enough for {asked}"
    digits = next((d for d in range(6) if round(100 * confidence, d) != round(100 * least, d)), 6)
    return f"{asked} takes {_hundredths(least, digits)} or more"


def _hundredths(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}"
