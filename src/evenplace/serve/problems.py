"""What can go wrong with a request, as RFC 9457 problems: what was wrong, and the remedy."""

from http import HTTPStatus
from typing import Any, NamedTuple

from starlette.responses import JSONResponse

from evenplace.errors import EvenPlaceError
from evenplace.serve.schema import ProblemBody

_SHRINK = "shrink it; 1024 pixels a side are plenty"


class Kind(NamedTuple):
    """A kind of problem: its status, and what helps unless something better is known."""

    status: int
    remedy: str


KINDS: dict[str, Kind] = {
    "body-unreadable": Kind(400, "see /docs"),
    "token-wrong": Kind(401, "send Authorization: Bearer TOKEN, or sign in on the page"),
    "origin-refused": Kind(403, "open this service's own page, or ask from a program"),
    "not-found": Kind(404, "see /docs"),
    "photo-unknown": Kind(
        404, "take the id from an answer, and ask again after the index has changed"
    ),
    "photo-gone": Kind(404, "put it back, or index the database again"),
    "place-unknown": Kind(404, "take a number from /places"),
    "method-not-allowed": Kind(405, "see /docs"),
    "upload-too-slow": Kind(408, "send a smaller one, or over a quicker line"),
    "photo-too-large": Kind(413, _SHRINK),
    "request-too-large": Kind(413, "send less, or in several requests"),
    "body-not-a-photo": Kind(
        415, "send multipart/form-data with the field 'photo', or the photo with image/*"
    ),
    "host-refused": Kind(421, "use http://127.0.0.1, or start the service with --allow-host NAME"),
    "photo-unreadable": Kind(422, "send a JPEG, PNG or WebP"),
    "photo-too-many-pixels": Kind(422, _SHRINK),
    "photo-missing": Kind(422, "add one as 'photo'"),
    "too-many-photos": Kind(422, "send them in several requests"),
    "value-refused": Kind(422, "see /docs for what is allowed"),
    "failed": Kind(500, "see its log, and tell us"),
    "busy": Kind(503, "try again after the seconds in Retry-After"),
    "not-ready": Kind(503, "ask another one, or wait a second"),
}


class Problem(EvenPlaceError):  # noqa: N818, RFC 9457's word
    """A request that is refused, with its reason and what the sender can do about it."""

    def __init__(
        self, kind: str, detail: str, remedy: str = "", *, retry_after: int | None = None
    ) -> None:
        self.kind, self.detail, self.retry_after = kind, detail, retry_after
        self.status, usual = KINDS[kind]
        self.remedy = remedy or usual
        super().__init__(f"{detail}; {self.remedy}")

    def body(self) -> dict[str, Any]:
        return {
            "type": f"urn:evenplace:{self.kind}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "remedy": self.remedy,
        }

    def response(self) -> JSONResponse:
        headers = {"cache-control": "no-store"}
        if self.retry_after is not None:
            headers["retry-after"] = str(self.retry_after)
        if self.status == HTTPStatus.UNAUTHORIZED:
            headers["www-authenticate"] = "Bearer"
        return JSONResponse(
            self.body(), self.status, headers=headers, media_type="application/problem+json"
        )


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route may refuse with, for its documentation, and what every route may."""
    return {status: _refusal(status) for status in (*statuses, 401, 403, 421)}


def _refusal(status: int) -> dict[str, Any]:
    kinds = [name for name, kind in KINDS.items() if kind.status == status]
    shown = Problem(kinds[0], "what was wrong", "what to do about it").body()
    problem = {"schema": {"$ref": "#/components/schemas/ProblemBody"}, "example": shown}
    return {
        "model": ProblemBody,
        "description": ", ".join(kinds),
        "content": {"application/problem+json": problem},
    }
