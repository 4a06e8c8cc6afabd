"""evenplace photos check: what was understood, what was left out, and why."""

from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import console, print_table
from evenplace.cli.reading import Box, City, Column, Layout, Zone, chosen, say_guessed


def check(
    path: Annotated[Path, typer.Argument(help="folder or table of photos")],
    layout: Layout = None,
    pattern: Annotated[str | None, typer.Option(help="shell pattern for file names")] = None,
    city: City = None,
    zone: Zone = None,
    bbox: Box = None,
    column: Column = None,
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
        console.print(read_protocol(protocol, path, allow_partial).describe(), markup=False)
        return
    say_guessed(path, layout, column)
    found = check_photos(path, layout, sheet, pattern=pattern, **chosen(city, zone, bbox, column))
    console.print(*found.lines(), sep="\n")
    for row in found.rows():
        console.print({name: value for name, value in row.items() if value is not None})
    left_out = [[reason, f"{count:,}", example] for reason, count, example in found.left_out()]
    if left_out:
        print_table(("left out", "photos", "for example"), left_out)
    else:
        console.print("nothing was left out")
    if sheet is not None:
        console.print(f"wrote {sheet}" if sheet.exists() else "no files to show", markup=False)
