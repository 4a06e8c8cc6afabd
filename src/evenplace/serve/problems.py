"""What can go wrong with a request, as RFC 9457 problems: what was wrong, and the remedy."""

from http import HTTPStatus
from typing import Any, NamedTuple

from starlette.responses import JSONResponse

from evenplace.errors import EvenPlaceError
from evenplace.photos.files import shipped_tables
from evenplace.serve.schema import ProblemBody


class Kind(NamedTuple):
    """A kind of problem: its status, and what helps unless something better is known."""

    status: int
    remedy: str


KINDS = {name: Kind(**one) for name, one in shipped_tables("serve/problems.toml").items()}


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
