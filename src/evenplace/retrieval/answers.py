"""Hits → what a person is told: places, a position, how sure it is, and when to say nothing."""

import numpy as np

from evenplace.errors import SettingError
from evenplace.places.tiers import TIERS
from evenplace.retrieval.calibration import Calibration
from evenplace.retrieval.hits import Answer, Hit, Hits, PlaceGuess
from evenplace.retrieval.index import Index


def least_confidence(
    min_precision: float | None, calibration: Calibration | None, insist: bool = False
) -> float:
    """The confidence below which an engine abstains; what cannot be promised is refused.

    insist: take a rehearsal that promises nothing for what it is worth.
    """
    if min_precision is None:
        return -np.inf
    if calibration is None:
        raise SettingError(
            f"min_precision={min_precision} needs a calibration, which says how sure is sure "
            "enough; pass calibration=, or open a run that has one"
        )
    if calibration.doubt and not insist:
        raise SettingError(
            f"min_precision={min_precision} cannot be promised: {calibration.doubt}, so no other "
            "day could be rehearsed; calibrate on photos whose place is known (evenplace tune RUN "
            "--queries PHOTOS), or insist (--insist) on the rehearsal there was"
        )
    return calibration.threshold(min_precision)


def why_uncalibrated(calibration: Calibration | None) -> str:
    """Why a confidence is no probability, in a clause; empty where it is one."""
    return "nothing was rehearsed in this way" if calibration is None else calibration.doubt


def read_hits(index: Index, found: Hits, query: int) -> list[Hit]:
    """The answers to one of several queries, as a person reads them."""
    rows = found.rows[query][found.rows[query] >= 0]
    paths, places = index.paths(rows), index.places_of(rows).tolist()
    spots, sure = index.spots(rows).tolist(), float(found.confidence[query])
    return [
        Hit(
            path=path,
            position=(east, north),
            distance=float(distance),
            place=place,
            confidence=sure,
            row=int(row),
            similarity=float(cosine),
            inliers=None if np.isnan(inliers) else int(inliers),
        )
        for path, (east, north, _), distance, place, row, cosine, inliers in zip(
            paths,
            spots,
            found.distances[query],
            places,
            rows,
            found.cosines[query],
            found.inliers[query],
            strict=False,
        )
    ]


def explain(
    index: Index,
    found: Hits,
    query: int,
    hits: list[Hit],
    least: float,
    min_precision: float | None,
    calibration: Calibration | None,
) -> Answer:
    """All that is known of one of the queries."""
    confidence = float(found.confidence[query])
    reason = _doubt(hits, confidence, least, min_precision)
    doubt = why_uncalibrated(calibration)
    return Answer(
        hits=tuple(hits),
        places=tuple(
            _guess(index, int(place), float(chance))
            for place, chance in zip(found.shortlist[query], found.posterior[query], strict=True)
        ),
        position=found.positions[query],
        confidence=confidence,
        calibrated=not doubt,
        doubt=doubt,
        abstains=bool(reason),
        reason=reason,
        elapsed_ms={stage: float(spent[query]) for stage, spent in found.elapsed_ms.items()},
        looked=int(found.looked[query]),
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
    """What the precision asked for is about: each answer given, and all of them together.

    Digits are shown until the confidence and the bar are two numbers.
    """
    asked = f"{100 * min_precision:g} % right, each answer and all together,"
    if least > 1:
        return f"no answer of the rehearsal was sure enough for {asked}"
    digits = next((d for d in range(6) if round(100 * confidence, d) != round(100 * least, d)), 6)
    return f"{asked} takes {_hundredths(least, digits)} or more"


def _hundredths(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}"
