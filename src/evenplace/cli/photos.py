"""evenplace photos check: what was understood, what was left out, and why."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from evenplace.photos.check import check_photos
from evenplace.photos.protocols import read_protocol


def check(
    path: Annotated[Path, typer.Argument(help="folder or table of photos")],
    layout: Annotated[str | None, typer.Option(help="how the photos are laid out")] = None,
    pattern: Annotated[str | None, typer.Option(help="shell pattern for file names")] = None,
    zone: Annotated[int | None, typer.Option(help="keep one UTM zone")] = None,
    sheet: Annotated[Path, typer.Option(help="sheet of thumbnails to write")] = Path("photos.jpg"),
    protocol: Annotated[str | None, typer.Option(help="also check a named test")] = None,
    allow_partial: Annotated[bool, typer.Option(help="go on with other numbers")] = False,
) -> None:
    """Read photos and say what was understood, with a few rows and a sheet of thumbnails."""
    console = Console()
    if protocol is not None:
        console.print(read_protocol(protocol, path, allow_partial).describe())
        return
    found = check_photos(path, layout, sheet, pattern=pattern, zone=zone)
    console.print(*found.lines(), sep="\n")
    for row in found.rows():
        console.print({name: value for name, value in row.items() if value is not None})
    table = Table("left out", "photos", "for example")
    for reason, count, example in found.left_out():
        table.add_row(reason, f"{count:,}", example)
    console.print(table if table.row_count else "nothing was left out")
    console.print(f"wrote {sheet}" if sheet.exists() else "no files to show")
