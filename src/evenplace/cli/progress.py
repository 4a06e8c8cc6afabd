"""How far a verb is: bars on a terminal, and lines where there is none (a file, a CI log)."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

EVERY = 15.0  # seconds between two lines

Show = Callable[[int, int], None]
Announce = Callable[[str], Show]


class _Rate(ProgressColumn):
    """How many a second, once that is known."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.3g}/s")


@contextmanager
def drawn_bars(console: Console) -> Iterator[Announce]:
    """A bar for everything announced."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:

        def announce(what: str) -> Show:
            task = progress.add_task(what, total=None)
            return lambda done, total: progress.update(task, completed=done, total=total)

        yield announce


@contextmanager
def written_lines(say: Callable[[str], None]) -> Iterator[Announce]:
    """A line when something starts, and one every 15 seconds that says how far it is."""
    lines, ended = Lines(say), threading.Event()

    def watch() -> None:
        while not ended.wait(min(1.0, EVERY)):
            lines.tell()

    watcher = threading.Thread(target=watch, name="progress", daemon=True)
    watcher.start()
    try:
        yield lines.announce
    finally:
        ended.set()
        watcher.join()


@dataclass
class _Stage:
    what: str
    began: float
    done: int = 0
    total: int = 0


class Lines:
    """What was announced last, and how far that is."""

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._print, self._clock = say, clock
        self._stage: _Stage | None = None
        self._spoke = clock()

    def announce(self, what: str) -> Show:
        """Say that a stage starts; what comes back takes (done, total)."""
        self._say(what)
        stage = self._stage = _Stage(what, self._clock())

        def show(done: int, total: int) -> None:
            stage.done, stage.total = done, total
            self._stage = stage

        return show

    def tell(self) -> None:
        """Say how far the last stage is, unless it has ended or something was said just now."""
        stage = self._stage
        quiet = self._clock() - self._spoke
        if quiet < EVERY or stage is None or 0 < stage.total <= stage.done:
            return
        spent = self._clock() - stage.began
        if stage.done == 0:
            self._say(f"{stage.what}: {spent:.0f} s")
            return
        self._say(f"{stage.what}: {stage.done:,} of {stage.total:,}, {stage.done / spent:.3g}/s")

    def _say(self, line: str) -> None:
        self._spoke = self._clock()
        self._print(line)
