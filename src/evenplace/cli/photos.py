"""evenplace photos check: what was understood, what was left out, and why."""

from pathlib import Path
from typing import Annotated, Any

import typer

from evenplace.cli.console import console, print_table, say
from evenplace.cli.options import Which, grouped


@grouped
def check(
    path: Annotated[Path, typer.Argument(help="folder or table of photos")],
    *,
    which: Which,
    pattern: Annotated[str | None, typer.Option(help="shell pattern for file names")] = None,
    sheet: Annotated[
        Path | None, typer.Option(help="a sheet of thumbnails to write, as in sheet.jpg")
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="also check a named test")] = None,
    allow_partial: Annotated[bool, typer.Option(help="go on with other numbers")] = False,
) -> None:
    """Read photos and say what was understood, with a few rows, and thumbnails on request."""
    from evenplace.photos.check import check_photos
    from evenplace.photos.protocols import read_protocol

    if protocol is not None:
        say(read_protocol(protocol, path, allow_partial).describe())
        return
    which.say_guessed(path)
    found = check_photos(path, which.layout, sheet, pattern=pattern, **which.chosen())
    console.print(*found.lines(), sep="\n")
    for row in found.rows():
        say(_row(row))
    left_out = [[reason, f"{count:,}", example] for reason, count, example in found.left_out()]
    if left_out:
        print_table(("left out", "photos", "for example"), left_out)
    else:
        say("nothing was left out")
    if sheet is not None:
        say(f"wrote {sheet}" if sheet.exists() else "no files to show")


def _row(row: dict[str, Any]) -> str:
    """A photo and what is known of it, in a line."""
    known = {name: value for name, value in row.items() if value not in (None, "")}
    told = [f"{name} {_plain(value)}" for name, value in known.items() if value == value]  # not nan
    return f"{known['path']}: {', '.join(told[1:])}"


def _plain(value: Any) -> str:
    return f"{round(value, 6):.12g}" if isinstance(value, float) else str(value)
