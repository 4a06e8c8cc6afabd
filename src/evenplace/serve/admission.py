"""A waiting room with walls: what does not fit is told when to come back."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

from evenplace.serve.problems import Problem
from evenplace.serve.settings import Limits

LONGEST_WAIT = 30  # seconds a sender is told to wait at most


class WaitingRoom:
    """Counts the photos that were let in and have no answer yet."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.photos = 0
        self.heavy = 0
        self._pace = 10.0  # photos answered a second, lately

    @contextmanager
    def admit(self, photos: int) -> Iterator[None]:
        """Let photos in for as long as the context lasts, or raise 503."""
        if self.photos + photos > self._limits.waiting:
            raise self._busy(f"{self.photos} photos are waiting and no more fit")
        if self.photos and self._wait() > self._limits.patience:
            raise self._busy(f"{self.photos} photos are waiting, {self._wait():.0f} seconds' work")
        self.photos += photos
        try:
            yield
        finally:
            self.photos -= photos

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
        return max(1, min(LONGEST_WAIT, math.ceil(self._wait())))

    def _wait(self) -> float:
        return self.photos / max(self._pace, 0.1)

    def _busy(self, detail: str) -> Problem:
        return Problem(
            "busy",
            detail,
            "try again after the seconds in Retry-After",
            retry_after=self.retry_after(),
        )
