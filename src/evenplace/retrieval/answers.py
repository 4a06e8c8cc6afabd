"""What a search answers: hits, and what a person is told of them, or why nothing is said.

Q queries · k hits · n shortlisted places · T candidates of a batch
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from evenplace.places.tiers import TIERS
from evenplace.retrieval.calibration import Calibration, why_uncalibrated
from evenplace.retrieval.candidates import Pools, Rankings
from evenplace.retrieval.index import Index
from evenplace.retrieval.positions import Position

STAGES = ("extract", "classify", "gather", "rank", "verify")


@dataclass(frozen=True)
class Hit:
    """One database photo that may show where the query was taken."""

    path: str
    position: tuple[float, float]  # east, north
    distance: float  # as the rule measures it: less is better; fused is a score, below 0 too
    place: int
    confidence: float
    row: int  # of the index
    similarity: float  # cosine of the descriptors: 1 the same, 0 unlike
    inliers: int | None = None  # points that match the query's; None where nobody looked
    pairs: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)  # (M, 4)


@dataclass(frozen=True)
class Hits:
    """The answers to Q queries; rows are -1 where a pool held fewer than k photos."""

    rows: NDArray[np.int64]  # (Q, k) rows of the index
    distances: NDArray[np.float32]  # (Q, k) inf where there is no hit
    cosines: NDArray[np.float32]  # (Q, k) of the descriptors, nan where there is no hit
    inliers: NDArray[np.float32]  # (Q, k) points that match, nan where nobody looked
    looked: NDArray[np.int64]  # (Q,) candidates that were looked at a second time
    shortlist: NDArray[np.int64]  # (Q, n) places, best first
    posterior: NDArray[np.float32]  # (Q, n) p(place | query) of the shortlist
    confidence: NDArray[np.float32]  # (Q,) calibrated where the engine has a calibration
    positions: tuple[Position, ...]  # where each query was taken
    elapsed_ms: dict[str, NDArray[np.float64]]  # (Q,) a stage; of a batch, its share

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Batch:
    """Some queries, all that was looked at to answer them, and the answers."""

    first: int  # number of the first query
    pools: Pools
    rankings: Rankings
    spots: NDArray[np.float64]  # (T, 2) where the candidates are
    hits: Hits


@dataclass(frozen=True)
class PlaceGuess:
    """A place the classifier shortlisted."""

    place: int
    posterior: float
    centre: tuple[float, float]  # east, north
    photos: int  # in the database
    tier: str  # head, middle or tail


@dataclass(frozen=True)
class Answer:
    """All that is known of where one photo was taken."""

    hits: tuple[Hit, ...]  # best first
    places: tuple[PlaceGuess, ...]  # the shortlist, best first
    position: Position
    confidence: float
    calibrated: bool  # whether confidence is the probability that it is right
    doubt: str  # why it is not, in a clause; empty where it is
    meaning: str  # what the confidence says, and what the precision asked for takes
    abstains: bool
    reason: str  # why it abstains; empty when it answers
    elapsed_ms: dict[str, float]  # a stage
    looked: int = 0  # candidates that were looked at a second time


def stage_times(
    batch_ms: NDArray[np.float64], scan_ms: float, look_ms: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Milliseconds of each query by stage.

    batch_ms: (3,) that a batch was classified, gathered and ranked in; scan_ms: of one query, the
    pass over all photos before; look_ms: (Q,) the second look, which is part of the ranking.
    """
    spent = batch_ms / len(look_ms) + [0, scan_ms, -look_ms.mean()]
    stages = zip(STAGES[1:4], spent, strict=True)
    found = {stage: np.full(len(look_ms), value) for stage, value in stages}
    return found | {"verify": look_ms} if look_ms.any() else found


def join_hits(parts: Sequence[Hits]) -> Hits:
    """Batches of answers as one; at least one batch."""
    if len(parts) == 1:
        return parts[0]
    names = [one.name for one in fields(Hits) if one.name not in ("positions", "elapsed_ms")]
    stages = [stage for stage in STAGES if all(stage in part.elapsed_ms for part in parts)]
    return Hits(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names},
        positions=tuple(position for part in parts for position in part.positions),
        elapsed_ms={s: np.concatenate([part.elapsed_ms[s] for part in parts]) for s in stages},
    )


def no_hits(k: int, places: int) -> Hits:
    """The answers to no queries: k hits and so many places each."""
    rows, listed = (np.empty((0, width), np.int64) for width in (k, places))
    return Hits(
        rows=rows,
        **{name: rows.astype(np.float32) for name in ("distances", "cosines", "inliers")},
        looked=np.empty(0, np.int64),
        shortlist=listed,
        posterior=listed.astype(np.float32),
        confidence=np.empty(0, np.float32),
        positions=(),
        elapsed_ms={},
    )


def read_hits(index: Index, found: Hits, query: int) -> list[Hit]:
    """The answers to one of several queries, as a person reads them."""
    rows = found.rows[query][found.rows[query] >= 0]
    paths, places = index.paths(rows), index.places_of(rows).tolist()
    spots, sure = index.spots(rows).tolist(), float(found.confidence[query])
    return [
        Hit(
            path=path,
            position=(east, north),
            distance=distance,
            place=place,
            confidence=sure,
            row=row,
            similarity=cosine,
            inliers=None if math.isnan(inliers) else int(inliers),
        )
        for path, (east, north, _), distance, place, row, cosine, inliers in zip(
            paths,
            spots,
            found.distances[query].tolist(),
            places,
            rows.tolist(),
            found.cosines[query].tolist(),
            found.inliers[query].tolist(),
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
    guesses: bool,
) -> Answer:
    """All that is known of one of the queries.  guesses: the places of its shortlist too."""
    confidence = float(found.confidence[query])
    doubt = why_uncalibrated(calibration)
    meaning = _mean(confidence, doubt, least, min_precision)
    reason = "" if min_precision is None or confidence >= least else meaning
    if not hits:
        reason = "the shortlisted places hold no photo to compare with"
    return Answer(
        hits=tuple(hits),
        places=_guesses(index, found, query) if guesses else (),
        position=found.positions[query],
        confidence=confidence,
        calibrated=not doubt,
        doubt=doubt,
        meaning=meaning,
        abstains=bool(reason),
        reason=reason,
        elapsed_ms={stage: float(spent[query]) for stage, spent in found.elapsed_ms.items()},
        looked=int(found.looked[query]),
    )


def _guesses(index: Index, found: Hits, query: int) -> tuple[PlaceGuess, ...]:
    """The shortlist of one of the queries."""
    listed, known = found.shortlist[query], index.places
    columns = (listed, found.posterior[query], known.centres[listed], index.sizes[listed])
    rows = zip(*(column.tolist() for column in columns), known.tiers[listed], strict=True)
    return tuple(
        PlaceGuess(place, chance, (east, north), photos, TIERS[tier])
        for place, chance, (east, north), photos, tier in rows
    )


def _mean(confidence: float, doubt: str, least: float, min_precision: float | None) -> str:
    """How often such an answer is right, and what the precision asked for takes."""
    said = f"answers like this one are right {_hundredths(confidence)} times in 100"
    if doubt:
        said = f"uncalibrated, a score and no probability, as {doubt}"
    if min_precision is None:
        return said
    bar = say_bar(min_precision, least, confidence)
    return f"{said}; by the rehearsal there was, {bar}" if doubt else f"{said}, and {bar}"


def say_bar(min_precision: float, least: float, confidence: float) -> str:
    """What the precision asked for is about: each answer given, and all of them together.

    Digits are shown until the confidence and the bar are two numbers.
    """
    asked = f"{100 * min_precision:g} % right, each answer and all together"
    if least > 1:
        return f"no answer of the rehearsal was sure enough for {asked}"
    digits = next((d for d in range(6) if round(100 * confidence, d) != round(100 * least, d)), 6)
    return f"{asked}, takes {_hundredths(least, digits)} or more"


def _hundredths(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}"
