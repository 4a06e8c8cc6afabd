"""A request's body → photos as bytes, held in memory only and never more than was allowed."""

import asyncio
from collections.abc import AsyncGenerator

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from evenplace.serve.bodies import Body, sent_away
from evenplace.serve.problems import Problem
from evenplace.serve.settings import Limits

FIELD = "photo"
RAW = ("image/", "application/octet-stream")
MOST_DIGITS = 15  # of an announced length; Python refuses to read one of thousands


async def read_uploads(request: Request, body: Body, limits: Limits) -> list[bytes]:
    """The photos of a multipart form (field `photo`, once or more), or of a bare body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        async with asyncio.timeout(limits.body_seconds) as clock:
            with body.arrives_by(clock):
                if kind == "multipart/form-data":
                    photos = await _parts(request, body, limits)
                elif kind.startswith(RAW):
                    photos = [await read_body(request, limits, body)]
                else:
                    raise Problem(
                        "body-not-a-photo",
                        f"the body is {kind[:60] or 'of no declared type'}",
                        f"send multipart/form-data with the field {FIELD!r}, "
                        "or the photo with image/*",
                    )
    except TimeoutError as cause:
        if body.sent_away:
            raise sent_away() from cause
        raise Problem(
            "upload-too-slow",
            f"the photo did not arrive within {limits.body_seconds:g} s, or nothing of it for "
            f"{limits.stall_seconds:g} s",
            "send a smaller one, or over a quicker line",
        ) from cause
    _check(photos, limits)
    return photos


def check_announced(request: Request, limits: Limits) -> None:
    """Refuse a body that says it is too large, before any of it is read."""
    length = request.headers.get("content-length", "")
    if not length.isascii() or not length.isdigit():
        return
    if len(length) > MOST_DIGITS or int(length) > limits.request_bytes:
        raise _too_large(limits)


async def read_body(request: Request, limits: Limits, body: Body | None = None) -> bytes:
    """A whole body, if it is within limits."""
    return b"".join([part async for part in _bounded(request, limits, body)])


async def _parts(request: Request, body: Body, limits: Limits) -> list[bytes]:
    class InMemory(MultiPartParser):
        spool_max_size = limits.request_bytes + 1  # nothing of a photo touches the disk

    parser = InMemory(
        request.headers,
        _bounded(request, limits, body),
        max_files=limits.photos,
        max_fields=0,
        max_part_size=1024,
    )
    try:
        form = await parser.parse()
    except (MultiPartException, ValueError, KeyError, IndexError) as cause:
        raise _unreadable(cause, limits) from cause
    photos: list[bytes] = []
    try:
        for name, part in form.multi_items():
            if name != FIELD or not isinstance(part, UploadFile):
                raise Problem(
                    "value-refused", "the form has a part that is no photo", f"name it {FIELD!r}"
                )
            photos.append(await part.read())
    finally:
        await form.close()
    return photos


async def _bounded(
    request: Request, limits: Limits, body: Body | None
) -> AsyncGenerator[bytes, None]:
    total = 0
    try:
        async for chunk in request.stream():
            total += len(chunk)
            if total > limits.request_bytes:
                raise _too_large(limits)
            if body is not None:
                body.take(len(chunk))
            yield chunk
    except ClientDisconnect as cause:
        raise Problem("body-unreadable", "the sender hung up", "send it again") from cause


def _check(photos: list[bytes], limits: Limits) -> None:
    if not photos:
        raise Problem("photo-missing", "the form holds no photo", f"add one as {FIELD!r}")
    for number, photo in enumerate(photos, start=1):
        if len(photo) > limits.photo_bytes:
            raise Problem(
                "photo-too-large",
                f"photo {number} has {len(photo):,} bytes, the limit is {limits.photo_bytes:,}",
                "shrink it; 1024 pixels a side are plenty",
            )


def _unreadable(cause: Exception, limits: Limits) -> Problem:
    if isinstance(cause, MultiPartException) and "Too many files" in cause.message:
        return Problem(
            "too-many-photos",
            f"the form holds more than {limits.photos} photos",
            "send them in several requests",
        )
    if isinstance(cause, MultiPartException) and "Too many fields" in cause.message:
        return Problem(
            "value-refused",
            "the form has a field that is no file",
            f"send files only, each as {FIELD!r}",
        )
    return Problem(
        "body-unreadable", "the form cannot be read", "check its boundary and its part headers"
    )


def _too_large(limits: Limits) -> Problem:
    return Problem(
        "request-too-large",
        f"the request has more than {limits.request_bytes:,} bytes",
        "send less, or in several requests",
    )
