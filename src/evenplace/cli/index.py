"""evenplace index, evenplace verify: a database to files, and a check of them."""

from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import bars, console, print_skipped


def index(
    run: Annotated[Path, typer.Argument(help="run folder with a trained model")],
    database: Annotated[Path, typer.Option(help="geo-tagged photos to search in")],
    layout: Annotated[
        str | None, typer.Option(help="layout of the photos; found by looking")
    ] = None,
) -> None:
    """Describe a database with the run's model and lay it out for search."""
    from evenplace.photos import read_photos
    from evenplace.run import index_run

    photos = read_photos(database, layout)
    with bars() as announce:
        built = index_run(run, photos, announce=announce)
    print_skipped(built.photos.skipped)
    console.print(
        f"{len(built)} photos in {int((built.sizes > 0).sum())} places, "
        f"{int((built.labels < 0).sum())} in no place the model knows, "
        f"{built.bytes / 2**20:.1f} MiB; next: evenplace locate {run} photo.jpg",
        markup=False,
        soft_wrap=True,
    )


def verify(
    run: Annotated[Path, typer.Argument(help="run folder with an index")],
) -> None:
    """Read every file of the run's index and compare it with its checksum."""
    from evenplace.index import verify_index

    verify_index(run / "index")
    console.print(f"{run / 'index'} is whole", markup=False, soft_wrap=True)
