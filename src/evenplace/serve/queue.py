"""Where photos wait: a room with walls, and lanes to the decoders.

What does not fit into the room is told when to come back.  Senders take turns (`Turns`), so that
one who asks much waits for himself, and a quarter more than the room holds is for senders who have
little in it.  A photo is weighed by the memory its decoding takes.  Light ones share
`LIGHT_TOGETHER`; a heavy one waits for its turn on a thread of its own, which steps back for the
others.  So sixteen pictures of 7,000 x 7,000 pixels take the memory of one, and delay each other
and nobody else.
"""

import asyncio
import ctypes
import math
import os
import sys
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import Any, TypeVar

from evenplace.serve.problems import Problem
from evenplace.serve.settings import Limits

LONGEST_WAIT = 30  # seconds a sender is told to wait at most
HEAVY = 48 << 20  # bytes; a JPEG of any size is lighter, unless it is progressive
LIGHT_TOGETHER = 96 << 20
STEP_BACK = 10  # niceness of the thread for heavy photos
Result = TypeVar("Result")


class WaitingRoom:
    """Counts the photos that were let in and have no answer yet, and whose they are."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._of: Counter[str] = Counter()  # photos of each sender
        self.heavy = 0
        self._pace = 10.0  # photos answered a second, lately

    @property
    def photos(self) -> int:
        return self._of.total()

    @contextmanager
    def admit(self, photos: int, sender: str = "") -> Iterator[None]:
        """Let photos in for as long as the context lasts, or raise 503."""
        own, most = self._of[sender] + photos, self._limits.waiting
        if self.photos + photos > most + (most // 4 if own <= most // 4 else 0):
            raise self._busy(f"{self.photos} photos are waiting and no more fit")
        wait = self._wait(self._of[sender] + 1)
        if self.photos and wait > self._limits.patience:
            raise self._busy(f"{self.photos} photos are waiting, {wait:.0f} seconds' work")
        self._of[sender] = own
        try:
            yield
        finally:
            self._of[sender] -= photos
            self._of += Counter()  # forgets who has left

    @contextmanager
    def admit_heavy(self) -> Iterator[None]:
        """Let in a picture that takes long to decode; a few of them, so that others find room."""
        if self.heavy >= self._limits.heavy:
            raise self._busy(f"{self.heavy} very large pictures are waiting")
        self.heavy += 1
        try:
            yield
        finally:
            self.heavy -= 1

    def check_patience(self, waited: float) -> None:
        """Refuse a photo whose answer nobody waits for any more, rather than work on it."""
        if waited > self._limits.patience:
            raise self._busy(f"the photo has waited for {waited:.0f} seconds")

    def answered(self, photos: int, seconds: float) -> None:
        """Keep the pace: an average over the last few batches, idle time left out."""
        self._pace += 0.1 * (min(photos / max(seconds, 1e-3), 1e4) - self._pace)

    def retry_after(self) -> int:
        """Seconds until what waits now will have been answered."""
        return max(1, min(LONGEST_WAIT, math.ceil(self._wait(self.photos))))

    def _wait(self, turns: int) -> float:
        """Seconds until a sender has had so many turns."""
        before = sum(min(photos, turns) for photos in self._of.values())
        return before / max(self._pace, 0.1)

    def _busy(self, detail: str) -> Problem:
        return Problem("busy", detail, retry_after=self.retry_after())


class Turns:
    """A few slots, taken by senders in turn; each sender's photos keep their order."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def take(self, sender: str) -> AsyncIterator[None]:
        """Hold a slot, once it is the sender's turn."""
        if self._free:
            self._free -= 1
        else:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(sender, deque()).append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # it came as the sender hung up
                    self._pass_on()
                raise
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting:
            sender, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[sender] = turns  # behind all others
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class Lanes:
    """The threads that decode."""

    def __init__(self, decoders: int, room: WaitingRoom) -> None:
        self._room, self._turns = room, Turns(decoders)
        self._light = ThreadPoolExecutor(decoders, thread_name_prefix="decode")
        self._heavy = ThreadPoolExecutor(1, thread_name_prefix="heavy", initializer=_step_back)
        self._budget = Budget(LIGHT_TOGETHER)

    async def decode(
        self, weigh: Callable[[], int], decode: Callable[[], Result], sender: str = ""
    ) -> Result:
        """Weigh a photo, then decode it in its lane."""
        loop = asyncio.get_running_loop()

        def work() -> Result | None:
            weight = weigh()
            if weight > HEAVY:
                return None
            with self._budget.spend(weight):
                return decode()

        async with self._turns.take(sender):
            done = await loop.run_in_executor(self._light, work)
        if done is not None:
            return done
        with self._room.admit_heavy():
            return await loop.run_in_executor(self._heavy, _decode_heavy, decode)

    def shutdown(self) -> None:
        self._light.shutdown()
        self._heavy.shutdown()


class Budget:
    """Bytes that threads share; one that would spend too much waits for the others."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._changed = threading.Condition()

    @contextmanager
    def spend(self, size: int) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._left >= size)
            self._left -= size
        try:
            yield
        finally:
            with self._changed:
                self._left += size
                self._changed.notify_all()


def _decode_heavy(decode: Callable[[], Result]) -> Result:
    """Decode, and hand the freed pages to the system.

    The command line tells glibc to keep freed blocks (`cli/process.py`), which is right for those
    a network asks for again and again, and wrong for one picture of 200 MB.
    """
    try:
        return decode()
    finally:
        trim = _malloc_trim()
        if trim is not None:
            trim(0)


@cache
def _malloc_trim() -> Any:
    """glibc's, where that is the allocator."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)  # absent from musl


def _step_back() -> None:
    if sys.platform.startswith("linux"):  # where a thread has a niceness of its own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), STEP_BACK)
