"""A request's body → photos as bytes, held in memory only and never more than was allowed.

A body that promises much and sends little costs what it sent.  When there are too many bodies,
or too many bytes of them, the one that has been arriving for longest is sent away, from the
address that takes the most room.  A photo that is sent at once is therefore let in, however many
others stand still at the door.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from evenplace.serve.problems import Problem
from evenplace.serve.settings import Limits

FIELD = "photo"
RAW = ("image/", "application/octet-stream")
MOST_DIGITS = 15  # of an announced length; Python refuses to read one of thousands
RETRY = 1  # seconds until a body that was sent away may try again


@dataclass(eq=False)
class Body:
    """One request's body, and the clock it arrives by."""

    address: str
    room: "Bodies" = field(repr=False)
    arrived: int = 0
    arriving: bool = True
    sent_away: bool = False
    clock: asyncio.Timeout | None = None

    @contextmanager
    def arrives_by(self, clock: asyncio.Timeout) -> Iterator[None]:
        """Let it arrive while the clock runs; raise 408 or 503 when that has run out."""
        self.clock, self._until = clock, clock.when() or 0.0
        self._wait()
        try:
            yield
        finally:
            self.arriving, self.clock = False, None

    def take(self, size: int) -> None:
        """Count a piece that has arrived."""
        self.arrived += size
        self.room.make_room(self)
        self._wait()

    def send_away(self) -> None:
        """End its clock now, so that another may arrive."""
        self.sent_away = True
        if self.clock is not None and not self.clock.expired():
            self.clock.reschedule(asyncio.get_running_loop().time())

    def _wait(self) -> None:
        if self.clock is not None and not (self.sent_away or self.clock.expired()):
            now = asyncio.get_running_loop().time()
            self.clock.reschedule(min(self._until, now + self.room.limits.stall_seconds))


class Bodies:
    """All bodies of a process, from their first byte until they have been answered."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._held: dict[Body, None] = {}  # in the order they came

    @contextmanager
    def hold(self, address: str) -> Iterator[Body]:
        """Count a body for as long as the context lasts; one that is slower may have to go."""
        body = Body(address, self)
        self._held[body] = None
        try:
            self.make_room(body)
            yield body
        finally:
            del self._held[body]

    def make_room(self, newest: Body) -> None:
        """Send away what keeps others out, or this one if nothing else is still arriving."""
        while (crowd := self._crowd(newest)) is not None:
            slow = [body for body in crowd if body.arriving and not body.sent_away]
            victim = next((body for body in slow if body is not newest), newest)
            if victim is newest:
                raise _sent_away()
            victim.send_away()

    def _crowd(self, newest: Body) -> list[Body] | None:
        """The bodies of the address that takes too much room; None if there is room."""
        limits = self.limits
        held = [body for body in self._held if not body.sent_away]
        own = [body for body in held if body.address == newest.address]
        if _exceeds(own, limits.address_bodies, limits.address_bytes):
            return own
        if not _exceeds(held, limits.bodies, limits.waiting_bytes):
            return None
        taken: Counter[str] = Counter()
        for body in held:  # a body and a share of the bytes weigh the same
            taken[body.address] += limits.waiting_bytes // limits.bodies + body.arrived
        largest = taken.most_common(1)[0][0]
        return [body for body in held if body.address == largest]


def _exceeds(bodies: list[Body], count: int, size: int) -> bool:
    arriving = sum(body.arriving for body in bodies)
    return arriving > count or sum(body.arrived for body in bodies) > size


def _sent_away() -> Problem:
    quickly = "try again after the seconds in Retry-After, over a quick line"
    return Problem("busy", "too many photos are being sent", quickly, retry_after=RETRY)


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
                    said = f"the body is {kind[:60] or 'of no declared type'}"
                    raise Problem("body-not-a-photo", said)
    except TimeoutError as cause:
        if body.sent_away:
            raise _sent_away() from cause
        raise Problem(
            "upload-too-slow",
            f"the photo did not arrive within {limits.body_seconds:g} s, or nothing of it for "
            f"{limits.stall_seconds:g} s",
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
        raise Problem("photo-missing", "the form holds no photo")
    for number, photo in enumerate(photos, start=1):
        if len(photo) > limits.photo_bytes:
            raise Problem(
                "photo-too-large",
                f"photo {number} has {len(photo):,} bytes, the limit is {limits.photo_bytes:,}",
            )


def _unreadable(cause: Exception, limits: Limits) -> Problem:
    told = cause.message if isinstance(cause, MultiPartException) else ""
    if "Too many files" in told:
        return Problem("too-many-photos", f"the form holds more than {limits.photos} photos")
    if "Too many fields" in told:
        said = "the form has a field that is no file"
        return Problem("value-refused", said, f"send files only, each as {FIELD!r}")
    remedy = "check its boundary and its part headers"
    return Problem("body-unreadable", "the form cannot be read", remedy)


def _too_large(limits: Limits) -> Problem:
    return Problem("request-too-large", f"the request has more than {limits.request_bytes:,} bytes")
