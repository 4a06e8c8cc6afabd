"""Hits → what a person is told: places, a position, how sure it is, and when to say nothing.

Q queries · T candidates of a batch
"""

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import SettingError
from evenplace.places.tiers import TIERS
from evenplace.retrieval.calibration import Calibration
from evenplace.retrieval.candidates import Pools, sum_spans
from evenplace.retrieval.confidence import RADIUS
from evenplace.retrieval.hits import Answer, Ellipse, Hit, Hits, PlaceGuess, Position
from evenplace.retrieval.index import Index

Spots = NDArray[np.float64]
_NEAR = 50.0  # metres around the best photo: what lies further is another opinion, not a spread
_STEP = 8.0  # metres: the camera stood beside the database's, whose own fix is not exact either
_CHI2 = 5.991  # 95 % of a Gaussian on the plane
NOWHERE = Position(float("nan"), float("nan"), Ellipse(*[float("nan")] * 3))


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


def fuse_positions(pools: Pools, spots: Spots, best: NDArray[np.int64]) -> list[Position]:
    """Average the candidates around the best one of each query, each by how alike it looks.

        w_i ∝ exp(30 cos_i),  mean = Σ w p,  cov = Σ w (p - mean)(p - mean)ᵀ + step² I

    Candidates elsewhere do not stretch the ellipse: that the answer may be wrong altogether is
    what the confidence says.  One candidate has the ellipse of the step alone.
    spots: (T, 2) east and north, best: (Q,) candidates ranked first, any where none is.
    """
    if not len(spots):
        return [NOWHERE] * len(pools)
    origin = spots[np.minimum(best, len(spots) - 1)]
    offset = spots - origin[pools.of]
    near = np.flatnonzero(np.sum(offset * offset, axis=1) <= _NEAR**2)
    cuts = np.searchsorted(near, pools.cuts)
    east, north, weight = offset[near, 0], offset[near, 1], pools.weights[near]
    parts = np.empty((len(near), 6))
    for at, part in enumerate((1, east, north, east * east, north * north, east * north)):
        np.multiply(weight, part, out=parts[:, at])
    total, *moments = sum_spans(parts, cuts).T  # (Q,) each
    east, north, easts, norths, cross = (sums / np.maximum(total, 1e-300) for sums in moments)
    ellipses = _ellipses(
        easts - east * east + _STEP**2, norths - north * north + _STEP**2, cross - east * north
    )
    found = np.stack([origin[:, 0] + east, origin[:, 1] + north, *ellipses], axis=1)
    return [
        Position(where[0], where[1], Ellipse(*where[2:])) if count else NOWHERE
        for where, count in zip(found.tolist(), pools.sizes.tolist(), strict=True)
    ]


def _ellipses(east: Spots, north: Spots, cross: Spots) -> tuple[Spots, Spots, Spots]:
    """Half axes and bearing of 2 × 2 covariances, in closed form.  (Q,) each."""
    middle, half = (east + north) / 2, (east - north) / 2
    reach = np.hypot(half, cross)
    bearing = 90 - np.degrees(0.5 * np.arctan2(cross, half))  # from east counter-clockwise
    major, minor = np.sqrt(_CHI2 * (middle + reach)), np.sqrt(_CHI2 * np.maximum(middle - reach, 0))
    return major, minor, bearing % 180
