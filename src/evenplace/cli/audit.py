"""evenplace audit: how long is my tail, and where."""

from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import console, print_table
from evenplace.cli.reading import Box, City, Column, Layout, Zone, chosen
from evenplace.errors import SettingError


def audit(
    path: Annotated[Path, typer.Argument(help="folder or table of photos")],
    cell: Annotated[float, typer.Option(help="side of a place in metres")] = 20.0,
    min_photos: Annotated[int, typer.Option(help="fewer photos make no place")] = 1,
    against: Annotated[str, typer.Option(help="partition to compare with, or none")] = "kd-tree",
    out: Annotated[Path | None, typer.Option(help="a page to write, as in audit.html")] = None,
    layout: Layout = None,
    city: City = None,
    zone: Zone = None,
    bbox: Box = None,
    column: Column = None,
    descriptors: Annotated[Path | None, typer.Option(help=".npy, a row a photo")] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="predictions.parquet, or .txt of VPR-methods-evaluation")
    ] = None,
    tiles: Annotated[
        str | None, typer.Option(help="a base map, as in https://tiles.example/{z}/{x}/{y}.png")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="folder for the map and the tail as still pictures")
    ] = None,
    beside: Annotated[
        list[Path] | None, typer.Option(help="other photos, for the figure of tails")
    ] = None,
) -> None:
    """Say how uneven photos are over the places they show, and draw where.  Needs no model."""
    from evenplace.report.audit import audit_path, cut_path, title_of, write_audit

    if beside and figures is None:
        raise SettingError("--beside is drawn by --figures FOLDER; add it")
    if tiles is not None and out is None:
        raise SettingError("--tiles lies under the map of --out PAGE; add it")
    found = audit_path(
        path, cell=cell, min_photos=min_photos, against=against, layout=layout,
        choice=chosen(city, zone, bbox, column), descriptors=descriptors, predictions=predictions,
    )  # fmt: skip
    columns, rows = found.table()
    print_table(columns, rows, found.places.summary().splitlines()[0])
    cities, each = found.city_table()
    if each:
        print_table(cities, each, "city by city, and together")
    console.print(found.sentence(), *found.notes(), sep="\n", markup=False)
    if figures is not None:
        from evenplace.report.audit_figures import write_figures

        sets = {title_of(path): found.places}
        for other in beside or ():
            name = title_of(other) if title_of(other) not in sets else str(other)
            sets[name] = cut_path(other, cell=cell, min_photos=min_photos)[1]
        for file in write_figures(sets, figures):
            console.print(f"wrote {file}", markup=False, soft_wrap=True)
    if out is not None:
        title = f"How uneven are the photos of {title_of(path)}?"
        page = write_audit(found, out, title=title, tiles=tiles)
        console.print(f"wrote {page}", markup=False, soft_wrap=True)
    elif figures is None:
        console.print("with a map and pictures: --out audit.html", markup=False)
