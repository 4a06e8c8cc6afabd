"""Everything one process of the service holds, started and stopped together."""

import asyncio
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

from evenplace.errors import SettingError
from evenplace.retrieval import Answer
from evenplace.serve.batches import Batcher
from evenplace.serve.problems import Problem
from evenplace.serve.queue import WaitingRoom
from evenplace.serve.served_index import IndexWatch
from evenplace.serve.settings import Settings
from evenplace.serve.uploads import Bodies

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_PHOTOS = (1, 2, 4, 8, 16, 32)


class Metrics:
    """What a monitor asks of one process: requests, photos, batches, stages, the queue, the index.

    With several workers the numbers of all are added up (PROMETHEUS_MULTIPROC_DIR, which the
    server sets before the workers start).
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        count = partial(Counter, registry=self._registry)
        times = partial(Histogram, buckets=_SECONDS, registry=self._registry)
        now = partial(Gauge, registry=self._registry)
        self.requests = count(
            "evenplace_requests", "requests answered", ("method", "route", "status")
        )
        self.seconds = times("evenplace_request_seconds", "time of a request", ("route",))
        self.photos = count(
            "evenplace_photos", "photos: answered, abstained, refused, busy", ("outcome",)
        )
        self.batch = times("evenplace_batch_photos", "photos described together", buckets=_PHOTOS)
        self.stage = times("evenplace_stage_seconds", "time of a stage", ("stage",))
        self.warnings = count(
            "evenplace_decoder_warnings", "warnings of decoders, which are not printed"
        )
        self.waiting = now(
            "evenplace_waiting_photos", "photos let in without an answer yet",
            multiprocess_mode="livesum",
        )  # fmt: skip
        self.reloads = count(
            "evenplace_index_reloads", "new indexes: opened, refused", ("outcome",)
        )
        self.index_photos = now(
            "evenplace_index_photos", "photos of the index", multiprocess_mode="livemax"
        )

    def text(self) -> bytes:
        """All numbers as Prometheus reads them."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        multiprocess.MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)

    def close(self) -> None:
        """Take this process's live numbers out of the sum."""
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            multiprocess.mark_process_dead(os.getpid())  # type: ignore[no-untyped-call]


class Service:
    """The index, the waiting room, the batches and the numbers of a process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.index_watch = IndexWatch(settings, self._reloaded)
        _check_tiles(settings, self.index_watch.current.engine.index.places.zones)
        self.waiting = WaitingRoom(settings.limits)
        self.bodies = Bodies(settings.limits)
        self.batcher = Batcher(settings.batching, settings.limits, self.waiting, self._batched)
        self.painters = ThreadPoolExecutor(2, thread_name_prefix="thumbnails")
        self.began = time.monotonic()
        self.stopping = False
        self._watcher: asyncio.Task[None] | None = None
        self.metrics.index_photos.set(len(self.index_watch.current.engine.index))

    async def start(self) -> None:
        self.batcher.start()
        if self.settings.watch_seconds:
            watch = self.index_watch.watch(self.settings.watch_seconds)
            self._watcher = asyncio.get_running_loop().create_task(watch)

    async def stop(self) -> None:
        """Answer what was let in, then go."""
        self.stopping = True
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
        await self.batcher.stop()
        self.painters.shutdown()
        self.metrics.close()

    @contextmanager
    def admit(self, photos: int, sender: str) -> Iterator[None]:
        """Let photos into the waiting room, counting the ones that do not fit."""
        with ExitStack() as stack:
            stack.callback(lambda: self.metrics.waiting.set(self.waiting.photos))
            try:
                stack.enter_context(self.waiting.admit(photos, sender))
            except Problem:
                self.metrics.photos.labels("busy").inc(photos)
                raise
            self.metrics.waiting.set(self.waiting.photos)
            yield

    def count(self, found: Answer) -> None:
        self.metrics.photos.labels("abstained" if found.abstains else "answered").inc()
        for stage, spent in found.elapsed_ms.items():
            self.metrics.stage.labels(stage).observe(spent / 1e3)

    def _batched(self, photos: int, seconds: float) -> None:
        self.waiting.answered(photos, seconds)
        self.metrics.batch.observe(photos)

    def _reloaded(self, outcome: str) -> None:
        self.metrics.reloads.labels(outcome).inc()
        self.metrics.index_photos.set(len(self.index_watch.current.engine.index))


def _check_tiles(settings: Settings, zones: ArrayLike) -> None:
    if settings.tiles and not np.all(zones):
        raise SettingError(
            f"--tiles {settings.tiles} cannot lie under photos in local metres; "
            "leave it out, or index photos with a UTM zone"
        )
