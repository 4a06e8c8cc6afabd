"""What can go wrong with a request, as RFC 9457 problems: what was wrong, and the remedy."""

from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse

from evenplace.errors import EvenPlaceError

KINDS: dict[str, int] = {
    "body-unreadable": 400,
    "token-wrong": 401,
    "origin-refused": 403,
    "not-found": 404,
    "photo-unknown": 404,
    "photo-gone": 404,
    "place-unknown": 404,
    "method-not-allowed": 405,
    "upload-too-slow": 408,
    "photo-too-large": 413,
    "request-too-large": 413,
    "body-not-a-photo": 415,
    "host-refused": 421,
    "photo-unreadable": 422,
    "photo-too-many-pixels": 422,
    "photo-missing": 422,
    "too-many-photos": 422,
    "value-refused": 422,
    "failed": 500,
    "busy": 503,
    "not-ready": 503,
}


class Problem(EvenPlaceError):  # noqa: N818, RFC 9457's word
    """A request that is refused, with its reason and what the sender can do about it."""

    def __init__(
        self, kind: str, detail: str, remedy: str, *, retry_after: int | None = None
    ) -> None:
        super().__init__(f"{detail}; {remedy}")
        self.kind, self.detail, self.remedy = kind, detail, remedy
        self.retry_after = retry_after

    @property
    def status(self) -> int:
        return KINDS[self.kind]

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
