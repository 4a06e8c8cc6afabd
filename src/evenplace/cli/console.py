"""What every verb shares: a console, progress, tables, and one sentence for each error."""

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from evenplace.cli.progress import Announce, drawn_bars, written_lines
from evenplace.errors import missing_package

_PIPED = 160  # columns where there is no terminal to ask
console = Console(highlight=False, width=None if sys.stdout.isatty() else _PIPED)
errors = Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """A line of the answer."""
    console.print(text, markup=False, soft_wrap=True)


def tell(text: str) -> None:
    """A line about the answer, beside it."""
    errors.print(text, markup=False, soft_wrap=True)


@contextmanager
def stoppable(said: Callable[[], str]) -> Iterator[None]:
    """Say at Ctrl-C what was kept and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        tell(said())
        raise typer.Exit(130) from None


@contextmanager
def bars() -> Iterator[Announce]:
    """How far a verb is: `announce(what)` gives a function that takes (done, total)."""
    if errors.is_terminal:
        with drawn_bars(errors) as announce:
            yield announce
    else:
        with written_lines(tell) as announce:
            yield announce


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    title: str = "",
    most: int | None = None,
) -> None:
    """A table; one too wide for the screen lies on its side where it fits so, and else wraps.

    most: columns of the screen that it may take.
    """
    width = min(console.width, most or console.width)
    sideways = list(zip(columns, *rows, strict=True))
    if table_width(columns, rows) > width >= table_width(sideways[0], sideways[1:]):
        columns, rows = sideways[0], sideways[1:]
    if title:
        say(title)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table, width=width)


def table_width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Columns of the screen that a table takes where nothing wraps."""
    longest = [max(map(cell_len, cells)) for cells in zip(columns, *rows, strict=True)]
    return sum(longest) + 3 * len(longest) - 1


def print_skipped(skipped: Sequence[object]) -> None:
    """Say what was left out, with the first few and their reasons."""
    if skipped:
        tell(f"left out {len(skipped)} photo{'s' * (len(skipped) > 1)}:")
        for one in skipped[:5]:
            reason = getattr(one, "reason", one)
            tell(f"  {getattr(one, 'path', '')}: {reason}")
        if len(skipped) > 5:
            tell(f"  … and {len(skipped) - 5} more")


def speak_any_name() -> None:
    """Print names that are not UTF-8 with their bytes written out, rather than fail on them."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def end_output() -> None:
    """Write what is left, unless the reader has gone (`evenplace … | head -1`)."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # Python would try again at its end, and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def sentence(error: Exception) -> str:
    """An error as one sentence with a remedy; empty where nothing can be said of it."""
    if isinstance(error, ModuleNotFoundError):
        return missing_package(error)
    if not isinstance(error, OSError):
        return str(error)
    where = f" ({error.filename})" if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"the disk is full{where}; free some space and run the command again"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"not allowed to write or read{where}; choose another folder or change its rights"
    return f"{error.strerror or error}{where}; check the path"
