"""evenplace audit: how long is my tail, and where."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenplace.cli.console import console, print_table, say
from evenplace.cli.options import Tiles, Which, grouped
from evenplace.errors import SettingError

if TYPE_CHECKING:
    from evenplace.places import Places
    from evenplace.report.audit import Audit


@grouped
def audit(
    path: Annotated[Path, typer.Argument(help="folder or table of photos")],
    *,
    cell: Annotated[float, typer.Option(help="side of a place in metres")] = 20.0,
    min_photos: Annotated[int, typer.Option(help="fewer photos make no place")] = 1,
    against: Annotated[str, typer.Option(help="partition to compare with, or none")] = "kd-tree",
    out: Annotated[Path | None, typer.Option(help="a page to write, as in audit.html")] = None,
    which: Which,
    descriptors: Annotated[Path | None, typer.Option(help=".npy or .h5, a row a photo")] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="predictions.parquet, or .txt of VPR-methods-evaluation")
    ] = None,
    tiles: Tiles = None,
    figures: Annotated[
        Path | None, typer.Option(help="folder for the map and the tail as still pictures")
    ] = None,
    beside: Annotated[
        list[Path] | None, typer.Option(help="other photos, for the figure of tails")
    ] = None,
) -> None:
    """Say how uneven photos are over the places they show, and draw where.  Needs no model."""
    from evenplace.report.audit import audit_path, title_of
    from evenplace.report.audit_page import write_audit

    if beside and figures is None:
        raise SettingError("--beside is drawn by --figures FOLDER; add it")
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise SettingError(f"--out {out} is no name for a page; call it audit.html")
    if tiles is not None and out is None:
        raise SettingError("--tiles lies under the map of --out PAGE; add it")
    found = audit_path(
        path, cell=cell, min_photos=min_photos, against=against, descriptors=descriptors,
        predictions=predictions, layout=which.layout, **which.chosen(),
    )  # fmt: skip
    _print(found)
    if figures is not None:
        _draw(figures, {title_of(path): found.places}, beside or [], cell, min_photos)
    if out is not None:
        title = f"How uneven are the photos of {title_of(path)}?"
        say(f"wrote {write_audit(found, out, title=title, tiles=tiles)}")
    elif figures is None:
        say("with a map and pictures: --out audit.html")


def _print(found: "Audit") -> None:
    columns, rows = found.table()
    print_table(columns, rows, found.places.summary().splitlines()[0])
    cities, each = found.city_table()
    if each:
        print_table(cities, each, "city by city, and together")
    console.print(found.sentence(), *found.notes(), sep="\n", markup=False)


def _draw(
    folder: Path, sets: "dict[str, Places]", beside: list[Path], cell: float, min_photos: int
) -> None:
    """The map and the tail as still pictures, with the tails of other photos beside."""
    from evenplace.report.audit import cut_path, title_of
    from evenplace.report.audit_figures import write_figures

    for other in beside:
        name = title_of(other) if title_of(other) not in sets else str(other)
        sets[name] = cut_path(other, cell=cell, min_photos=min_photos)[1]
    for file in write_figures(sets, folder):
        say(f"wrote {file}")
