"""One connection: a clock for its headers, and an end for those that only stand there.

uvicorn waits for the end of a header for ever, and logs a line for every request it cannot read:
here a header has `HEADER_SECONDS`, and strangers write nothing into the log.
"""

import asyncio
import logging
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0  # from a connection's first byte, or its opening, to the end of the header
FLUSH_SECONDS = 60.0  # to fetch an answer before the line is cut
MOST = 512  # connections of a process; beyond them the one that has idled longest ends

log = logging.getLogger("evenplace.serve.connection")
log.setLevel(logging.ERROR)  # what a stranger sends is no news


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
