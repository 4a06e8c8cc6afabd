"""What a monitor asks: requests, photos, batches, stages, the queue, the index.

With several workers the numbers of all are added up (PROMETHEUS_MULTIPROC_DIR, which the server
sets before the workers start).
"""

import os
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_PHOTOS = (1, 2, 4, 8, 16, 32)


class Metrics:
    """The numbers of one process."""

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
