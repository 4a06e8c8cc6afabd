"""What the API says, as types that its documentation, its page and its client share."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Tier = Literal["head", "middle", "tail", "none"]


class Said(BaseModel):
    """Whatever the service says: read-only, and nothing but what is declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Spot(Said):
    """A position: UTM metres, and degrees where the database is tied to the globe."""

    east: float
    north: float
    zone: int = Field(description="UTM zone, negative in the south, 0 for local metres")
    latitude: float | None
    longitude: float | None


class Ellipse(Said):
    """Where the photo was taken with 95 % probability, if the answer is right at all."""

    major: float = Field(description="half axis, metres")
    minor: float = Field(description="half axis, metres")
    bearing: float = Field(description="of the major axis, degrees clockwise from north")


class Position(Spot):
    """The fused position of all candidates."""

    ellipse: Ellipse


class Hit(Spot):
    """A database photo that may show where the query was taken."""

    photo: str = Field(description="for /photos/{id}")
    similarity: float = Field(description="to the query: 1 the same picture, around 0 unlike")
    distance: float = Field(
        description="what the ranking rule goes by: less is better, negative under the fused "
        "rule, to be compared within one answer only"
    )
    place: int = Field(description="for /places/{id}; -1 outside every place")
    tier: Tier
    heading: float | None = Field(description="degrees clockwise from north")
    inliers: int | None = Field(
        description="points that match the query's under one view; null where nobody looked"
    )
    credit: str = Field("", description="whose photo it is, and its licence, where that is asked")
    pairs: list[tuple[float, float, float, float]] | None = Field(
        default=None,
        description="those points where asked for: x and y in the query, x and y in this photo, "
        "as shares of width and height",
    )


class PlaceGuess(Spot):
    """A place the photo may have been taken in."""

    place: int
    posterior: float = Field(ge=0, le=1)
    photos: int = Field(description="database photos of the place")
    tier: Tier


class Answer(Said):
    """Where a photo was taken, how sure that is, and from what it was concluded."""

    kind: Literal["answer"] = "answer"
    abstains: bool = Field(description="true when the service would rather not say")
    reason: str = Field(description="why it abstains; empty if it does not")
    remedy: str = Field(description="what would help; empty if it does not abstain")
    confidence: float = Field(
        description="the probability of being right where calibrated; else a score, higher is surer"
    )
    calibrated: bool
    doubt: str = Field(description="why it is not calibrated; empty if it is")
    meaning: str = Field(description="what confidence says, and what the precision asked for takes")
    position: Position | None = Field(description="null if nothing was found at all")
    hits: list[Hit]
    places: list[PlaceGuess]
    elapsed_ms: dict[str, float] = Field(description="time each stage took")
    looked: int = Field(description="candidates that were looked at a second time")


class ProblemBody(Said):
    """Why a request, or one photo of it, was refused (RFC 9457)."""

    type: str = Field(examples=["urn:evenplace:photo-unreadable"])
    title: str = Field(examples=["Unprocessable Entity"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["photo 1 is no picture that can be decoded"])
    remedy: str = Field(examples=["send a JPEG, PNG or WebP"])


class Refused(Said):
    """One photo of several that could not be answered; the others were."""

    kind: Literal["refused"] = "refused"
    problem: ProblemBody


class Located(Said):
    """The answers in the order of the photos."""

    index: str = Field(description="which index answered")
    answers: list[Answer | Refused]


class Place(Spot):
    """A cell of the map."""

    place: int
    tier: Tier
    photos: int = Field(description="in the database")
    trained: int = Field(description="photos of it the model was trained on")
    area: float = Field(description="square metres")


class PlaceList(Said):
    """Some of the places, most photographed first."""

    index: str
    total: int = Field(description="places that fit the question")
    places: list[Place]


class PlacePhoto(Spot):
    """A database photo of a place."""

    photo: str
    heading: float | None
    time: str | None = Field(description="ISO 8601, in UTC")


class PlaceDetail(Place):
    """A cell of the map, its outline and some of its photos."""

    index: str
    outline: list[Spot]
    pictures: list[PlacePhoto]


class Health(Said):
    """Whether the process is alive."""

    status: Literal["ok"] = "ok"
    version: str
    uptime_s: float


class Ready(Said):
    """Whether questions will be answered, and from what."""

    status: Literal["ready"] = "ready"
    index: str
    photos: int
    places: int
    waiting: int


class About(Said):
    """What the page needs to know of the service."""

    index: str
    photos: int
    outside: int = Field(description="photos in no place the model knows")
    places: int
    tiers: dict[str, int]
    gini: float
    imbalance: float
    zones: list[int] = Field(description="UTM zones of the places, as in a position")
    tiles: str = Field(description="address of map tiles; empty without")
    tiles_from: str = Field(description="the other machine they come from; empty without")
    tiles_credit: str
    calibrated: bool
    doubt: str = Field(description="why it is not calibrated; empty if it is")
    min_precision: float | None
    photo_bytes: int
    request_bytes: int
    photo_pixels: int
