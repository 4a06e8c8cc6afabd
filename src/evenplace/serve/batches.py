"""Photos of many requests, described together.

A photo that finds the network idle and nobody on the way is decoded and described in one go.
Others are decoded on threads as they come; a decoded photo waits for those that are being
decoded, a few milliseconds at most, and while the network works on one batch the next gathers.

    B batch · D descriptor
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from evenplace.arrays import Bytes, Floats
from evenplace.describe.describer import Describer
from evenplace.photos.pictures import Size
from evenplace.retrieval import Answer
from evenplace.retrieval.local_features import Features
from evenplace.serve.decode import decode_photo, weigh_photo
from evenplace.serve.problems import Problem
from evenplace.serve.queue import HEAVY, Lanes, Turns, WaitingRoom
from evenplace.serve.served_index import ServedIndex
from evenplace.serve.settings import Batching, Limits

_SMALL = 1 << 20  # bytes; a larger photo decodes slowly, and meanwhile others may want the network


@dataclass(frozen=True)
class _Question:
    """A photo as it came."""

    served: ServedIndex
    photo: bytes
    k: int
    matches: int  # hits whose points are told
    number: int  # in its request
    sender: str
    since: float  # when it came

    def weigh(self, limits: Limits) -> int:
        return weigh_photo(self.photo, self._size, limits, self.number)

    def read(self) -> "_Read":
        began = time.perf_counter()
        pixels = decode_photo(self.photo, self._size, self.number)
        look = self.served.engine.look
        seen = None if look is None else look.see(self.photo)
        return _Read(replace(self, photo=b""), pixels, seen, began, time.perf_counter())

    @property
    def _size(self) -> Size:
        describer = self.served.engine.describer
        assert describer is not None  # a run has one
        return describer.image_size


@dataclass(frozen=True)
class _Read:
    """A question whose photo has been decoded."""

    question: _Question  # without the photo's bytes
    pixels: Bytes  # (3, H, W)
    seen: Features | None  # its points, where candidates are looked at a second time
    began: float  # to be decoded
    ended: float


@dataclass(frozen=True)
class _Asked:
    read: _Read
    answer: asyncio.Future[Answer]


class Batcher:
    """Answers photos; start it inside a running loop, stop it when no one waits any more."""

    def __init__(
        self,
        batching: Batching,
        limits: Limits,
        room: WaitingRoom,
        on_batch: Callable[[int, float], None] = lambda photos, seconds: None,
    ) -> None:
        self._batching, self._limits, self._on_batch = batching, limits, on_batch
        self._room, self._lanes = room, Lanes(batching.decoders, room)
        self._network = ThreadPoolExecutor(1, thread_name_prefix="network")
        self._turns = Turns(2 * batching.photos)  # one batch at work, one that gathers
        self._working = asyncio.Lock()  # held while the network has a batch
        self._ready: asyncio.Queue[_Asked] = asyncio.Queue()
        self._decoding = 0
        self._unanswered = 0
        self._worker: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._worker = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """Finish what was asked, then let the threads go."""
        while self._unanswered and self.alive:
            await asyncio.sleep(0.01)
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        self._lanes.shutdown()
        self._network.shutdown()

    @property
    def alive(self) -> bool:
        return self._worker is not None and not self._worker.done()

    async def ask(
        self,
        served: ServedIndex,
        photo: bytes,
        k: int,
        number: int = 1,
        matches: int = 0,
        sender: str = "",
    ) -> Answer:
        """Where was this photo taken?  Its bytes are dropped as soon as it is decoded.

        sender: an address; photos of different ones are answered in turn.
        """
        question = _Question(served, photo, k, matches, number, sender, time.perf_counter())
        del photo
        self._unanswered += 1
        try:
            alone = self._unanswered == 1 and not self._working.locked()
            if alone and len(question.photo) <= _SMALL:
                answer = await self._alone(question)
                if answer is not None:
                    return answer
            read = await self._decoded(question)
            del question
            async with self._turns.take(sender):
                asked = _Asked(read, asyncio.get_running_loop().create_future())
                self._ready.put_nowait(asked)
                return await asked.answer
        finally:
            self._unanswered -= 1

    async def _alone(self, question: _Question) -> Answer | None:
        """One way to a thread and back instead of two: half a millisecond of a lone question.

        None for a picture that would keep the network from others while it is decoded.
        """
        loop, began = asyncio.get_running_loop(), time.perf_counter()

        def work() -> Answer | None:
            if question.weigh(self._limits) > HEAVY:
                return None
            return _answer([question.read()])[0]

        async with self._working:
            answer = await loop.run_in_executor(self._network, work)
        if answer is not None:
            self._on_batch(1, time.perf_counter() - began)
        return answer

    async def _decoded(self, question: _Question) -> _Read:
        def read() -> _Read:
            self._room.check_patience(time.perf_counter() - question.since)
            return question.read()

        self._decoding += 1
        try:
            weigh = partial(question.weigh, self._limits)
            return await self._lanes.decode(weigh, read, question.sender)
        finally:
            self._decoding -= 1

    async def _work(self) -> None:
        while True:
            batch = [await self._ready.get()]
            async with self._working:
                await self._gather(batch)
                began = time.perf_counter()
                for part in _alike(self._in_time(batch)):
                    await self._answer(part)
            self._on_batch(len(batch), time.perf_counter() - began)

    def _in_time(self, batch: Sequence[_Asked]) -> list[_Asked]:
        """The questions whose answer is still of use; the others are told so."""
        kept = []
        for asked in batch:
            try:
                self._room.check_patience(time.perf_counter() - asked.read.question.since)
                kept.append(asked)
            except Problem as late:
                _settle([asked], late)
        return kept

    async def _answer(self, batch: Sequence[_Asked]) -> None:
        loop = asyncio.get_running_loop()
        try:
            reads = [asked.read for asked in batch]
            _settle(batch, await loop.run_in_executor(self._network, _answer, reads))
        except Exception as error:
            if len(batch) == 1:
                _settle(batch, error)
                return
            for one in batch:  # whose photo it was must not cost the others their answer
                await self._answer([one])

    async def _gather(self, batch: list[_Asked]) -> None:
        until = time.perf_counter() + self._batching.window_ms / 1e3
        while len(batch) < self._batching.photos:
            if not self._ready.empty():
                batch.append(self._ready.get_nowait())
                continue
            left = until - time.perf_counter()
            if left <= 0 or not self._decoding:  # nobody is on the way
                return
            try:
                batch.append(await asyncio.wait_for(self._ready.get(), left))
            except TimeoutError:
                return


def _alike(batch: Sequence[_Asked]) -> list[list[_Asked]]:
    """Split a batch by index and by what was asked for; mostly all are of one kind."""
    kinds: dict[tuple[str, int, int], list[_Asked]] = defaultdict(list)
    for asked in batch:
        question = asked.read.question
        kinds[question.served.version, question.k, question.matches].append(asked)
    return list(kinds.values())


def _answer(batch: Sequence[_Read]) -> list[Answer]:
    question, began = batch[0].question, time.perf_counter()
    engine = question.served.engine
    assert engine.describer is not None
    described = describe(engine.describer, np.stack([read.pixels for read in batch]))
    spent = (time.perf_counter() - began) * 1e3
    seen = [read.seen for read in batch if read.seen is not None]
    answers = engine.answers(described, question.k, pictures=seen or None, matches=question.matches)
    return [
        replace(answer, elapsed_ms=_times(read, began, spent) | answer.elapsed_ms)
        for read, answer in zip(batch, answers, strict=True)
    ]


def describe(describer: Describer, pixels: Bytes) -> Floats:
    """Unit descriptors of a batch, each as if it had come alone: (B, 3, H, W) -> (B, D)."""
    if describer.together is None:
        return describer.describe(pixels).descriptors
    # Such a network looks at the photos of a batch together: strangers' photos must not mix.
    return np.concatenate([describer.describe(one[None]).descriptors for one in pixels])


def _times(read: _Read, began: float, described_ms: float) -> dict[str, float]:
    waited = read.began - read.question.since + began - read.ended
    decoded = read.ended - read.began
    return {"wait": 1e3 * waited, "decode": 1e3 * decoded, "describe": described_ms}


def _settle(batch: Sequence[_Asked], outcome: Sequence[Answer] | Exception) -> None:
    for number, asked in enumerate(batch):
        if asked.answer.done():  # the sender hung up
            continue
        if isinstance(outcome, Exception):
            asked.answer.set_exception(outcome)
        else:
            asked.answer.set_result(outcome[number])
