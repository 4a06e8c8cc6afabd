"""A waiting room with walls: what does not fit is told when to come back."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

from evenplace.serve.problems import Problem
from evenplace.serve.settings import Limits

LONGEST_WAIT = 30  # seconds a sender is told to wait at most


class WaitingRoom:
    """Counts the photos and the bytes that were let in and have no answer yet."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.photos = 0
        self._bytes = 0
        self._pace = 10.0  # photos answered a second, lately

    @contextmanager
    def admit(self, photos: int, size: int = 0) -> Iterator[None]:
        """Let photos in for as long as the context lasts, or raise 503."""
        limits = self._limits
        if self.photos + photos > limits.waiting or self._bytes + size > limits.waiting_bytes:
            raise Problem(
                "busy",
                f"{self.photos} photos are waiting and no more fit",
                "try again after the seconds in Retry-After",
                retry_after=self.retry_after(),
            )
        self.photos += photos
        self._bytes += size
        try:
            yield
        finally:
            self.photos -= photos
            self._bytes -= size

    def answered(self, photos: int, seconds: float) -> None:
        """Keep the pace: an average over the last few batches, idle time left out."""
        self._pace += 0.1 * (min(photos / max(seconds, 1e-3), 1e4) - self._pace)

    def retry_after(self) -> int:
        """Seconds until what waits now will have been answered."""
        return max(1, min(LONGEST_WAIT, math.ceil(self.photos / max(self._pace, 0.1))))
