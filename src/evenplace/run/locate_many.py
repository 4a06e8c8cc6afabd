"""Many photos → a line each: where it was taken, how sure that is, or why nothing is said.

Knows nothing of files of answers: `report/answers.py` writes them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Ints
from evenplace.describe.describer import Described, Progress
from evenplace.photos.asked import Picture
from evenplace.photos.gather import Seen
from evenplace.photos.geodesy import to_metres
from evenplace.retrieval import Answer, Index, Search
from evenplace.retrieval.answer_json import answers_json, index_name

Corner = NDArray[np.float64]
Reach = dict[int, tuple[Corner, Corner]]
ANSWERED, ABSTAINED, UNREADABLE = "answered", "no answer", "unreadable"
TOGETHER = 64  # photos answered at once
LATEST = 512  # photos that tell what those asked together have in common
_SAID = ("east", "north", "latitude", "longitude", "similarity", "distance", "credit")
ELSEWHERE = 5000.0  # metres from the database where a photo's own GPS says it cannot be found


@dataclass(frozen=True)
class Match:
    """A database photo that a photo looks like."""

    path: str
    east: float
    north: float
    latitude: float | None
    longitude: float | None
    similarity: float
    distance: float
    inliers: int | None = None  # points that match; None where nobody looked
    credit: str = ""  # whose photo it is, and under which licence
    zone: int = 0


@dataclass(frozen=True)
class Spot:
    """Where a photo was taken, and the ellipse of 95 %."""

    east: float
    north: float
    zone: int
    latitude: float | None
    longitude: float | None
    major: float
    minor: float
    bearing: float


@dataclass(frozen=True)
class Located:
    """A line of the answers.  An abstention keeps its best guess in `spot`, for people who look."""

    photo: str
    status: str
    reason: str = ""  # of no answer
    confidence: float = 0.0
    calibrated: bool = False
    spot: Spot | None = None
    matches: tuple[Match, ...] = ()
    taken: str = ""  # ISO, by the camera's clock
    second: float | None = None  # of a video
    own: tuple[float, float] | None = None  # latitude and longitude in its EXIF
    doubt: str = ""  # why its confidence is not calibrated, in a clause

    @property
    def answered(self) -> bool:
        return self.status == ANSWERED

    @property
    def file(self) -> str:
        """The photo, or the video that it is a frame of."""
        return self.photo if self.second is None else self.photo.rpartition("#t=")[0]

    @property
    def verified(self) -> int | None:
        """Points that match the best photo's; None where nobody looked."""
        return self.matches[0].inliers if self.matches else None

    @property
    def clock(self) -> float:
        """Seconds by which photos are ordered; nan where unknown."""
        if self.second is not None:
            return self.second
        return float(np.datetime64(self.taken, "s").astype(int)) if self.taken else float("nan")

    def as_dict(self) -> dict[str, Any]:
        spot = None if self.spot is None else vars(self.spot)
        matches = [vars(one) for one in self.matches]  # `asdict` would copy every number of them
        return {**vars(self), "spot": spot, "matches": matches}

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> Self:
        spot = None if kept["spot"] is None else Spot(**kept["spot"])
        own = None if kept["own"] is None else (kept["own"][0], kept["own"][1])
        matches = tuple(Match(**one) for one in kept["matches"])
        return cls(**{**kept, "spot": spot, "own": own, "matches": matches})


def locate_pictures(
    engine: Search,
    blocks: Iterable[Sequence[Picture]],
    k: int = 5,
    progress: Progress | None = None,
) -> Iterator[list[Located]]:
    """Answer pictures some at a time; the next are described while these are answered.

    What they have in common is read from these and those just before.
    """
    describer, latest = engine.describer, np.empty((0, 0), np.float32)
    assert describer is not None
    name, reach, done = index_name(engine.index.folder), _reach(engine.index), 0
    for block in blocks:
        first = 0
        for described in describer.stream([one.source for one in block], TOGETHER):
            pictures, found = block[first : first + described.asked], described.descriptors
            latest = np.concatenate([latest, found])[-LATEST:] if len(latest) else found
            ours = engine.together(latest)
            yield _lines(ours, pictures, described, described.rows - first, k, name, reach)
            first += described.asked
            done += described.asked
            if progress:
                progress(done, 0)


def _lines(
    engine: Search,
    pictures: Sequence[Picture],
    described: Described,
    rows: Ints,
    k: int,
    name: str,
    reach: Reach,
) -> list[Located]:
    """A line a picture.  rows: of those that could be read, among these."""
    asked = [pictures[row].source for row in rows]
    answers = engine.answers(described.descriptors, k, pictures=asked, guesses=False)
    plain = answers_json(engine.index, answers, name)
    found = dict(zip(rows.tolist(), zip(answers, plain, strict=True), strict=True))
    reasons, zones = iter(described.skipped), engine.index.photos.zone
    return [
        _located(picture, found[row][0], found[row][1], reach, zones)
        if row in found
        else _line(picture, status=UNREADABLE, reason=next(reasons).reason)
        for row, picture in enumerate(pictures)
    ]


def _located(
    picture: Picture, answer: Answer, plain: dict[str, Any], reach: Reach, zones: NDArray[np.int8]
) -> Located:
    """A line.  plain: the same answer, as the service says it.  zones: of the database, (N,)."""
    spot = None
    if plain["position"] is not None:
        position = dict(plain["position"])
        spot = Spot(**position.pop("ellipse"), **position)
    reason = answer.reason or _elsewhere(reach, picture)
    matches = tuple(
        Match(
            path=hit.path,
            inliers=hit.inliers,
            zone=int(zones[hit.row]),
            **{name: said[name] for name in _SAID},
        )
        for hit, said in zip(answer.hits, plain["hits"], strict=True)
    )
    return _line(
        picture,
        status=ABSTAINED if reason else ANSWERED,
        reason=reason,
        confidence=plain["confidence"],
        calibrated=answer.calibrated,
        doubt=answer.doubt,
        spot=spot,
        matches=matches,
    )


def _line(picture: Picture, **known: Any) -> Located:
    shot = picture.shot
    return Located(
        photo=picture.name,
        taken="" if np.isnat(shot.time) else str(shot.time),
        second=picture.second,
        own=None if np.isnan(shot.latitude) else (shot.latitude, shot.longitude),
        **known,
    )


def _reach(index: Index) -> Reach:
    """The corners of what each UTM zone has photos of; nothing where metres are local."""
    photos = index.photos
    corners = {}
    for zone in photos.zones if 0 not in photos.zones else []:
        mine = photos.positions[photos.zone == zone]
        corners[zone] = (mine.min(axis=0), mine.max(axis=0))
    return corners


def _elsewhere(reach: Reach, picture: Picture) -> str:
    """Why a photo cannot be of this database by its own GPS; empty if it can, or has none."""
    shot = picture.shot
    if np.isnan(shot.latitude) or not reach:
        return ""
    if min(_metres_off(shot, zone, *corners) for zone, corners in reach.items()) <= ELSEWHERE:
        return ""
    return (
        f"its own GPS position, {shot.latitude:.4f}, {shot.longitude:.4f}, is more than "
        f"{ELSEWHERE / 1000:.0f} km outside the database"
    )


def _metres_off(shot: Seen, zone: int, low: Corner, high: Corner) -> float:
    """Metres from the rectangle around the photos of a zone; endless in another."""
    at = to_metres([shot.latitude], [shot.longitude], zone)
    here = np.array([at.east[0], at.north[0]])
    if at.zone[0] != zone:
        return float("inf")
    return float(np.hypot(*np.maximum(0, np.maximum(low - here, here - high))))
