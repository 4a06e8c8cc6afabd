"""What every verb shares: a console, progress bars, tables, and one sentence for each error."""

import errno
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
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
from rich.table import Table
from rich.text import Text

_PIPED = 160  # columns where there is no terminal to ask
console = Console(highlight=False, width=None if sys.stdout.isatty() else _PIPED)
errors = Console(stderr=True, highlight=False)

Show = Callable[[int, int], None]


class _Rate(ProgressColumn):
    """How many a second, once that is known."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.3g}/s")


@contextmanager
def bars() -> Iterator[Callable[[str], Show]]:
    """Progress bars: `announce(what)` gives a function that takes (done, total)."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors, transient=not errors.is_terminal) as progress:

        def announce(what: str) -> Show:
            task = progress.add_task(what, total=None)
            return lambda done, total: progress.update(task, completed=done, total=total)

        yield announce


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """A table that wraps rather than cuts."""
    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def print_skipped(skipped: Sequence[object], what: str = "photos") -> None:
    """Say what was left out, with the first few and their reasons."""
    if skipped:
        errors.print(f"left out {len(skipped)} {what}:", markup=False)
        for one in skipped[:5]:
            reason = getattr(one, "reason", one)
            errors.print(f"  {getattr(one, 'path', '')}: {reason}", markup=False, soft_wrap=True)
        if len(skipped) > 5:
            errors.print(f"  … and {len(skipped) - 5} more", markup=False)


def sentence(error: OSError) -> str:
    """An operating system's error as one sentence with a remedy."""
    where = f" ({error.filename})" if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"the disk is full{where}; free some space and run the command again"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"not allowed to write or read{where}; choose another folder or change its rights"
    return f"{error.strerror or error}{where}; check the path"
