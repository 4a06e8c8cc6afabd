"""Everything one process of the service holds, started and stopped together."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from evenplace.errors import SettingError
from evenplace.retrieval import Answer
from evenplace.serve.batches import Batcher
from evenplace.serve.metrics import Metrics
from evenplace.serve.problems import Problem
from evenplace.serve.queue import WaitingRoom
from evenplace.serve.served_index import Library
from evenplace.serve.settings import Settings
from evenplace.serve.uploads import Bodies


class Service:
    """The index, the waiting room, the batches and the numbers of a process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.library = Library(
            settings.run,
            photos=settings.photos,
            asked={
                "min_precision": settings.min_precision,
                "insist": settings.insist,
                "verify": settings.verify,
            },
            how={
                "device": settings.device,
                "engine": settings.engine,
                "precision": settings.precision,
                "batch": settings.batching.photos,
            },
            on_reload=self._reloaded,
        )
        _check_tiles(settings, self.library.current.engine.index.places.maps[0].zone)
        self.waiting = WaitingRoom(settings.limits)
        self.bodies = Bodies(settings.limits)
        self.batcher = Batcher(settings.batching, settings.limits, self.waiting, self._batched)
        self.painters = ThreadPoolExecutor(2, thread_name_prefix="thumbnails")
        self.began = time.monotonic()
        self.stopping = False
        self._watcher: asyncio.Task[None] | None = None
        self.metrics.index_photos.set(len(self.library.current.engine.index))

    async def start(self) -> None:
        self.batcher.start()
        if self.settings.watch_seconds:
            watch = self.library.watch(self.settings.watch_seconds)
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
    def admit(self, photos: int) -> Iterator[None]:
        """Let photos into the waiting room, counting the ones that do not fit."""
        with ExitStack() as stack:
            stack.callback(lambda: self.metrics.waiting.set(self.waiting.photos))
            try:
                stack.enter_context(self.waiting.admit(photos))
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
        self.metrics.index_photos.set(len(self.library.current.engine.index))


def _check_tiles(settings: Settings, zone: int) -> None:
    if settings.tiles and not zone:
        raise SettingError(
            f"--tiles {settings.tiles} cannot lie under photos in local metres; "
            "leave it out, or index photos with a UTM zone"
        )
