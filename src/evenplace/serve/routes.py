"""The API: questions, photos, places, and how the service is doing."""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response

import evenplace
from evenplace.errors import PhotoError
from evenplace.photos.files import shipped_text
from evenplace.photos.pictures import jpeg_bytes, open_picture
from evenplace.retrieval import Answer
from evenplace.serve import schema
from evenplace.serve.problems import Problem, refusals
from evenplace.serve.responses import say_about, say_answer, say_place_detail, say_places
from evenplace.serve.served_index import ServedIndex
from evenplace.serve.service import Service
from evenplace.serve.uploads import check_announced, read_uploads


def check_query(request: Request) -> None:
    """Refuse a setting nobody reads: a precision asked for here would be thought of as kept."""
    known = [one.alias for one in request.scope["route"].dependant.query_params]
    if not set(request.query_params) <= set(known):
        said = f"use {', '.join(known)}" if known else "leave it out"
        raise Problem("value-refused", "the address has a setting that is not known here", said)


strict = [Depends(check_query)]
questions = APIRouter(tags=["questions"], dependencies=strict)
database = APIRouter(tags=["database"], dependencies=strict)
state = APIRouter(tags=["service"])  # probes add what they like
PHOTO_ID = re.compile(r"([0-9a-f]{8})-([0-9]{1,12})")
MOST_HITS, MOST_PLACES, MOST_PICTURES = 50, 1000, 200
EXAMPLES: dict[str, Any] = json.loads(shipped_text("serve/assets/examples.json"))
_PHOTO = {"type": "string", "format": "binary", "description": "a JPEG, PNG or WebP"}
_FORM = {
    "type": "object",
    "required": ["photo"],
    "additionalProperties": False,
    "properties": {"photo": {"type": "array", "items": _PHOTO, "minItems": 1, "maxItems": 16}},
}
UPLOAD: dict[str, Any] = {
    "required": True,
    "content": {"multipart/form-data": {"schema": _FORM}}
    | {f"image/{kind}": {"schema": _PHOTO} for kind in ("jpeg", "png", "webp")},
}


def example(name: str, *statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route answers with, and the statuses it may refuse with."""
    return refusals(*statuses) | {
        200: {"content": {"application/json": {"example": EXAMPLES[name]}}}
    }


def service_of(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


@questions.post(
    "/locate",
    summary="Say where photos were taken",
    responses=example("locate", 400, 403, 408, 413, 415, 422, 503),
    openapi_extra={"requestBody": UPLOAD},
)
async def locate(
    request: Request,
    k: Annotated[int, Query(ge=1, le=MOST_HITS, description="hits a photo")] = 5,
    matches: Annotated[
        int, Query(ge=0, le=MOST_HITS, description="of them, those whose matching points to tell")
    ] = 0,
) -> schema.Located:
    """Send one photo or several; the answers come in their order.

    A single photo that cannot be read is refused with 413 or 422.  Of several, each unreadable
    one is refused at its place in the list and the others are answered.
    """
    service = service_of(request)
    served = service.index_watch.current
    check_announced(request, service.settings.limits)
    sender = request.client.host if request.client else ""
    with service.bodies.hold(sender) as body:
        photos = await read_uploads(request, body, service.settings.limits)
        with service.admit(len(photos), sender):
            ask = partial(service.batcher.ask, served, k=k, matches=matches, sender=sender)
            if len(photos) == 1:
                answers: list[schema.Answer | schema.Refused] = [
                    await _answer(service, served, ask(photos.pop()))
                ]
            else:
                answers = await _answer_all(service, served, photos, ask)
    return schema.Located(index=served.version, answers=answers)


async def _answer_all(
    service: Service,
    served: ServedIndex,
    photos: list[bytes],
    ask: Callable[..., Awaitable[Answer]],
) -> list[schema.Answer | schema.Refused]:
    async def one(number: int, photo: bytes) -> schema.Answer | schema.Refused:
        try:
            return await _answer(service, served, ask(photo, number=number))
        except Problem as problem:
            return schema.Refused(problem=schema.ProblemBody(**problem.body()))

    asked = [one(number, photo) for number, photo in enumerate(photos, start=1)]
    photos.clear()
    return list(await asyncio.gather(*asked))


async def _answer(service: Service, served: ServedIndex, asked: Awaitable[Answer]) -> schema.Answer:
    try:
        found = await asked
    except Problem as problem:
        service.metrics.photos.labels("busy" if problem.kind == "busy" else "refused").inc()
        raise
    service.count(found)
    return say_answer(served, found)


@database.get(
    "/photos/{id}",
    summary="A database photo",
    response_class=Response,
    responses=refusals(404, 422) | {200: {"content": {"image/jpeg": {}}}},
)
async def photo(
    request: Request,
    photo_id: Annotated[
        str, Path(alias="id", description="as in an answer's hits", examples=["0f3a9c21-17"])
    ],
    side: Annotated[int, Query(ge=16, le=1024, description="pixels of the longer side")] = 512,
) -> Response:
    """The picture as a JPEG without EXIF; ids stay good until the index changes twice."""
    service = service_of(request)
    path = _path_of(service, photo_id)
    picture = await asyncio.get_running_loop().run_in_executor(
        service.painters, _shrunk, path, side
    )
    keep = {"cache-control": "private, max-age=31536000, immutable"}
    return Response(picture, media_type="image/jpeg", headers=keep)


def _path_of(service: Service, photo_id: str) -> str:
    """The file of an id.  An id is two numbers; nothing of it reaches the file system."""
    match = PHOTO_ID.fullmatch(photo_id)
    served = service.index_watch.find(match[1]) if match else None
    if match is None or served is None or int(match[2]) >= len(served.engine.index):
        raise Problem("photo-unknown", "no photo of the index has this id")
    return served.path_of(int(match[2]))


def _shrunk(path: str, side: int) -> bytes:
    try:
        picture = open_picture(path)
    except PhotoError as cause:
        said = "the file of this photo is no longer where it was indexed"
        raise Problem("photo-gone", said) from cause
    picture.thumbnail((side, side))
    return jpeg_bytes(picture, quality=82)


@database.get("/places", summary="The cells of the map", responses=example("places", 422))
def places(
    request: Request,
    tier: Annotated[Literal["head", "middle", "tail"] | None, Query()] = None,
    order: Annotated[Literal["busiest", "quietest"], Query()] = "busiest",
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_PLACES)] = 100,
) -> schema.PlaceList:
    """Places that have photos, ordered by how many."""
    served = service_of(request).index_watch.current
    found = served.ranked(tier)
    chosen = (found if order == "busiest" else found[::-1])[offset : offset + limit]
    shown = say_places(served, chosen)
    return schema.PlaceList(index=served.version, total=len(found), places=shown)


@database.get(
    "/places/{id}", summary="One cell and its photos", responses=example("place", 404, 422)
)
def place(
    request: Request,
    number: Annotated[int, Path(alias="id", ge=0, le=2**31, examples=[0])],
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_PICTURES)] = 24,
) -> schema.PlaceDetail:
    """Its outline, its tier, how often it was photographed, and the photos."""
    served = service_of(request).index_watch.current
    if number >= len(served.sizes):
        said = f"there is no place {number}; there are {len(served.sizes)}"
        raise Problem("place-unknown", said)
    return say_place_detail(served, number, offset, limit)


@database.get("/about", summary="The database in a few numbers")
def about(request: Request) -> schema.About:
    service = service_of(request)
    return say_about(service.index_watch.current, service.settings)


@database.get("/map", include_in_schema=False)
def cells(request: Request) -> dict[str, Any]:
    """Every cell as packed arrays, for the page's canvas."""
    return service_of(request).index_watch.current.packed


@state.get("/health", summary="Is the process alive?")
def health(request: Request) -> schema.Health:
    uptime = time.monotonic() - service_of(request).began
    return schema.Health(version=evenplace.__version__, uptime_s=round(uptime, 1))


@state.get("/ready", summary="Will questions be answered?", responses=refusals(503))
def ready(request: Request) -> schema.Ready:
    service = service_of(request)
    if service.stopping or not service.batcher.alive:
        raise Problem("not-ready", "the service is starting or stopping", retry_after=1)
    served = service.index_watch.current
    return schema.Ready(
        index=served.version,
        photos=len(served.engine.index),
        places=int((served.sizes > 0).sum()),
        waiting=service.waiting.photos,
    )


@state.get(
    "/metrics",
    summary="Numbers for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
)
def metrics(request: Request) -> Response:
    kind = "text/plain; version=0.0.4; charset=utf-8"
    return Response(service_of(request).metrics.text(), media_type=kind)
