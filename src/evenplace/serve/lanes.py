"""Where photos are decoded: many light ones side by side, heavy ones one at a time.

A photo is weighed by the memory its decoding takes.  Light ones share `LIGHT_TOGETHER`; a heavy
one waits for its turn on a thread of its own, which steps back for the others.  So sixteen
pictures of 7,000 x 7,000 pixels take the memory of one, and delay each other and nobody else.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from evenplace.serve.admission import WaitingRoom
from evenplace.serve.memory import give_back

HEAVY = 48 << 20  # bytes; a JPEG of any size is lighter, unless it is progressive
LIGHT_TOGETHER = 96 << 20
STEP_BACK = 10  # niceness of the thread for heavy photos
Result = TypeVar("Result")


class Lanes:
    """The threads that decode."""

    def __init__(self, decoders: int, room: WaitingRoom) -> None:
        self._room = room
        self._light = ThreadPoolExecutor(decoders, thread_name_prefix="decode")
        self._heavy = ThreadPoolExecutor(1, thread_name_prefix="heavy", initializer=_step_back)
        self._budget = Budget(LIGHT_TOGETHER)

    async def decode(self, weigh: Callable[[], int], decode: Callable[[], Result]) -> Result:
        """Weigh a photo, then decode it in its lane."""
        loop = asyncio.get_running_loop()

        def work() -> Result | None:
            weight = weigh()
            if weight > HEAVY:
                return None
            with self._budget.spend(weight):
                return decode()

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
    try:
        return decode()
    finally:
        give_back()


def _step_back() -> None:
    if sys.platform.startswith("linux"):  # where a thread has a niceness of its own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), STEP_BACK)
