"""Bodies on their way: charged for what has arrived, and the slow give way to the quick.

A body that promises much and sends little costs what it sent.  When there are too many bodies,
or too many bytes of them, the one that has been arriving for longest is sent away, from the
address that takes the most room.  A photo that is sent at once is therefore let in, however many
others stand still at the door.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from evenplace.serve.problems import Problem
from evenplace.serve.settings import Limits

RETRY = 1  # seconds until one that was sent away may try again


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

    @property
    def arrived(self) -> int:
        return sum(body.arrived for body in self._held)

    def make_room(self, newest: Body) -> None:
        """Send away what keeps others out, or this one if nothing else is still arriving."""
        while (crowd := self._crowd(newest)) is not None:
            slow = [body for body in crowd if body.arriving and not body.sent_away]
            victim = next((body for body in slow if body is not newest), newest)
            if victim is newest:
                raise sent_away()
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


def sent_away() -> Problem:
    return Problem(
        "busy",
        "too many photos are being sent",
        "try again after the seconds in Retry-After, over a quick line",
        retry_after=RETRY,
    )
