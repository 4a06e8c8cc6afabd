"""One process or several around the application, until told to stop.

uvicorn waits for the end of a header for ever, and logs a line for every request it cannot read:
here a header has `HEADER_SECONDS`, and strangers write nothing into the log.
"""

import asyncio
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import TypeAdapter
from uvicorn.protocols.http.h11_impl import H11Protocol

from evenplace.serve.app import create_app
from evenplace.serve.service import Service
from evenplace.serve.settings import TOKEN_VARIABLE, Settings

VARIABLE = "EVENPLACE_SERVE"
GRACE = 30  # seconds for the answers under way when told to stop
HEADER_SECONDS = 10.0  # from a connection's first byte, or its opening, to the end of the header
FLUSH_SECONDS = 60.0  # to fetch an answer before the line is cut
MOST = 512  # connections of a process; beyond them the one that has idled longest ends

log = logging.getLogger("evenplace.serve.connection")
log.setLevel(logging.ERROR)  # what a stranger sends is no news


def serve(settings: Settings, announce: Callable[[str], None]) -> None:
    """Answer until interrupted; what was asked before is answered first."""
    service = Service(settings)  # an index that cannot be opened is said here, before any port
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    announce(f"http://{host}:{settings.port}")
    if settings.workers == 1:
        uvicorn.run(create_app(settings, service), **_options(settings))
    else:
        del service
        _serve_several(settings)


def app_from_environment() -> FastAPI:
    """The application of one of several workers."""
    plain = json.loads(os.environ[VARIABLE]) | {"token": os.environ.get(TOKEN_VARIABLE, "")}
    return create_app(TypeAdapter(Settings).validate_python(plain))


def _serve_several(settings: Settings) -> None:
    folder = tempfile.mkdtemp(prefix="evenplace-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
    plain = TypeAdapter(Settings).dump_python(settings, mode="json", exclude={"token"})
    os.environ[VARIABLE] = json.dumps(plain)
    share = max(1, (os.cpu_count() or 1) // settings.workers)  # of the cores, for either engine
    os.environ.setdefault("OMP_NUM_THREADS", str(share))
    for threshold in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
        os.environ.setdefault(threshold, str(1 << 30))  # as cli/process.py does for one process
    if settings.token:
        os.environ[TOKEN_VARIABLE] = settings.token  # not beside the rest: it may be printed
    try:
        uvicorn.run(
            "evenplace.serve.server:app_from_environment",
            factory=True,
            workers=settings.workers,
            **_options(settings),
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _options(settings: Settings) -> dict[str, Any]:
    return {
        "host": settings.host,
        "port": settings.port,
        "log_level": "info",
        "access_log": False,  # /metrics counts requests; writing a line of each costs 0.5 ms
        "server_header": False,
        "proxy_headers": False,
        "timeout_graceful_shutdown": GRACE,
        "timeout_keep_alive": 30,
        "timeout_worker_healthcheck": 60,  # a worker that loads its model is not dead
        "h11_max_incomplete_event_size": 32 << 10,
        "http": Connection,
        "ws": "none",
    }


class Connection(H11Protocol):
    """uvicorn's connection, with the clocks that it lacks."""

    header_seconds = HEADER_SECONDS

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.logger = log
        self._clock: asyncio.TimerHandle | None = None
        self.idle_since = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > MOST:
            idle = [one for one in self.connections if isinstance(one, Connection) and one.idle]
            min(idle, key=lambda one: one.idle_since).end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        super().on_response_complete()  # which goes on with what has been sent already
        if self.transport.is_closing():
            self._flush()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._flush()

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def end(self) -> None:
        """Cut the line."""
        self._stop()
        self.transport.abort()

    def _watch(self) -> None:
        """Start the clock while a header is awaited, stop it when one has come."""
        if not self.idle:
            self._stop()
        elif self._clock is None and not self.transport.is_closing():
            self._clock = self.loop.call_later(self.header_seconds, self.end)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _flush(self) -> None:
        """Cut the line of one who does not fetch his answer."""
        self._stop()
        self._clock = self.loop.call_later(FLUSH_SECONDS, self.transport.abort)
