"""A client for the service: photos in, answers out, the types the service speaks.

    with Client("http://127.0.0.1:8000") as client:
        answer = client.locate("photo.jpg")

Needs no torch.  A full queue is waited for, as long as the service says and as often as allowed.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import httpx

from evenplace.errors import EvenPlaceError
from evenplace.serve import schema

Photo = str | Path | bytes
LONGEST_WAIT = 30.0  # seconds a service may send a client to wait


class ServiceError(EvenPlaceError):
    """What the service refused, with its own reason and remedy."""

    def __init__(self, problem: schema.ProblemBody) -> None:
        super().__init__(f"{problem.detail}; {problem.remedy}")
        self.problem = problem

    @property
    def kind(self) -> str:
        """The kind of refusal, such as `photo-unreadable`."""
        return self.problem.type.removeprefix("urn:evenplace:")


class Client:
    """Asks a service.  tries: how often a full queue is waited for before giving up."""

    def __init__(
        self,
        address: str = "http://127.0.0.1:8000",
        *,
        token: str | None = None,
        timeout: float = 60.0,
        tries: int = 5,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._tries = tries
        self._http = httpx.Client(
            base_url=address,
            headers=headers,
            timeout=timeout,
            transport=transport,
            trust_env=False,  # a proxy must not see the photos
            verify=address.startswith("https:"),  # else certificates are read for nothing
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def locate(self, photo: Photo, k: int = 5, *, matches: int = 0) -> schema.Answer:
        """Where was this photo taken?  Raises what the service refused.

        matches: of the hits, those whose matching points are told, as `pairs`.
        """
        answer = self.locate_all([photo], k, matches=matches)[0]
        assert isinstance(answer, schema.Answer)  # a single photo's refusal is the response's
        return answer

    def locate_all(
        self, photos: Sequence[Photo], k: int = 5, *, matches: int = 0
    ) -> list[schema.Answer | schema.Refused]:
        """The same for up to 16 photos at once; a refused one keeps its place in the list."""
        sent = [one if isinstance(one, bytes) else Path(one).read_bytes() for one in photos]
        files = [("photo", ("photo", data)) for data in sent]
        said = self._ask("POST", "/locate", params={"k": k, "matches": matches}, files=files)
        return schema.Located.model_validate_json(said.content).answers

    def photo(self, photo_id: str, side: int = 512) -> bytes:
        """A database photo as a JPEG."""
        return self._ask("GET", f"/photos/{photo_id}", params={"side": side}).content

    def places(self, *, tier: str | None = None, page: int = 1000) -> Iterator[schema.Place]:
        """Every place that has photos, most photographed first."""
        offset = 0
        while True:
            wanted: dict[str, Any] = {"offset": offset, "limit": page}
            said = self._ask("GET", "/places", params=wanted | ({"tier": tier} if tier else {}))
            found = schema.PlaceList.model_validate_json(said.content)
            yield from found.places
            offset += len(found.places)
            if offset >= found.total or not found.places:
                return

    def place(self, number: int, *, offset: int = 0, limit: int = 24) -> schema.PlaceDetail:
        """One place, its outline and some of its photos."""
        wanted = {"offset": offset, "limit": limit}
        said = self._ask("GET", f"/places/{number}", params=wanted)
        return schema.PlaceDetail.model_validate_json(said.content)

    def ready(self) -> schema.Ready:
        """What the service answers from; raises if it does not answer."""
        return schema.Ready.model_validate_json(self._ask("GET", "/ready").content)

    def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        for attempt in range(1, self._tries + 1):
            try:
                said = self._http.request(method, path, **options)
            except httpx.TransportError as cause:
                raise ServiceError(
                    schema.ProblemBody(
                        type="urn:evenplace:unreachable",
                        title="Unreachable",
                        status=0,
                        detail=f"nobody answers at {self._http.base_url}",
                        remedy="start it: evenplace serve RUN",
                    )
                ) from cause
            if said.status_code != 503 or attempt == self._tries:
                break
            time.sleep(_seconds(said.headers.get("retry-after", "")))
        if said.is_success:
            return said
        raise ServiceError(_problem(said))


def _seconds(text: str) -> float:
    """How long to wait; a second if that was not said in seconds."""
    return min(float(text), LONGEST_WAIT) if text.isdecimal() and text.isascii() else 1.0


def _problem(said: httpx.Response) -> schema.ProblemBody:
    try:
        return schema.ProblemBody.model_validate_json(said.content)
    except ValueError:
        return schema.ProblemBody(
            type="urn:evenplace:stranger",
            title=said.reason_phrase,
            status=said.status_code,
            detail=f"{said.url.host} answered {said.status_code} and is no EvenPlace service",
            remedy="check the address",
        )
