"""evenplace index, evenplace verify: a database to files, and a check of them."""

from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import bars, console, print_skipped
from evenplace.errors import SettingError


def index(
    run: Annotated[Path, typer.Argument(help="run folder with a trained model, or a new one")],
    database: Annotated[Path, typer.Option(help="geo-tagged photos to search in")],
    method: Annotated[
        str | None, typer.Option(help="whose network --checkpoint is of: salad, boq, cosplace …")
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(help="published weights instead of a trained run: file or official"),
    ] = None,
    cell: Annotated[float, typer.Option(help="with --method: side of a place in metres")] = 20.0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="with --method: backbone=, dim=, image_size=")
    ] = None,
    layout: Annotated[
        str | None, typer.Option(help="layout of the photos; found by looking")
    ] = None,
) -> None:
    """Describe a database with the run's model and lay it out for search."""
    from evenplace.photos import read_photos
    from evenplace.run import describe_run, index_foreign, index_run
    from evenplace.training.distributed import join_ranks, leave_ranks
    from evenplace.training.recipe import parse_settings

    if checkpoint and not method:
        raise SettingError(f"--checkpoint {checkpoint} needs its network's name; add --method")
    photos = read_photos(database, layout)
    ranks = join_ranks()
    if ranks.count > 1 and not method:  # torchrun's processes describe, the first one indexes
        describe_run(run, photos, ranks)
        ranks.wait()
        leave_ranks()
    if ranks.rank:
        return
    with bars() as announce:
        if method:
            built = index_foreign(
                run, photos, method, checkpoint or "official", cell=cell, announce=announce,
                **parse_settings(settings or []),
            )  # fmt: skip
        else:
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
