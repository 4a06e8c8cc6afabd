"""What a monitor asks: requests, photos, batches, stages, the queue, the index.

With several workers the numbers of all are added up (PROMETHEUS_MULTIPROC_DIR, which the server
sets before the workers start).
"""

import os

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
        here = self._registry
        self.requests = Counter(
            "evenplace_requests",
            "requests answered",
            ("method", "route", "status"),
            registry=here,
        )
        self.seconds = Histogram(
            "evenplace_request_seconds",
            "time of a request",
            ("route",),
            buckets=_SECONDS,
            registry=here,
        )
        self.photos = Counter(
            "evenplace_photos",
            "photos: answered, abstained, refused, busy",
            ("outcome",),
            registry=here,
        )
        self.batch = Histogram(
            "evenplace_batch_photos",
            "photos described together",
            buckets=_PHOTOS,
            registry=here,
        )
        self.stage = Histogram(
            "evenplace_stage_seconds",
            "time of a stage",
            ("stage",),
            buckets=_SECONDS,
            registry=here,
        )
        self.warnings = Counter(
            "evenplace_decoder_warnings",
            "warnings of decoders, which are not printed",
            registry=here,
        )
        self.waiting = Gauge(
            "evenplace_waiting_photos",
            "photos let in without an answer yet",
            multiprocess_mode="livesum",
            registry=here,
        )
        self.reloads = Counter(
            "evenplace_index_reloads",
            "new indexes: opened, refused",
            ("outcome",),
            registry=here,
        )
        self.index_photos = Gauge(
            "evenplace_index_photos",
            "photos of the index",
            multiprocess_mode="livemax",
            registry=here,
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
