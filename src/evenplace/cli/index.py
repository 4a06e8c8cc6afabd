"""evenplace index: a database to files, updates of them, and a check."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from evenplace.cli.console import bars, console, print_skipped
from evenplace.errors import SettingError

if TYPE_CHECKING:
    from evenplace.retrieval import Index


class BuildByDefault(TyperGroup):
    """`evenplace index RUN …` is `evenplace index build RUN …`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["build", *args]
        return super().parse_args(ctx, args)


def build(
    run: Annotated[Path, typer.Argument(help="run folder with a trained model, or a new one")],
    database: Annotated[Path, typer.Option(help="geo-tagged photos to search in")],
    method: Annotated[
        str | None, typer.Option(help="whose network --checkpoint is of: salad, boq, cosplace …")
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            help="published weights instead of a trained run: file or official; of a run "
            "where another network ranks, that one's: file, official, imagenet or a run"
        ),
    ] = None,
    descriptors: Annotated[
        Path | None,
        typer.Option(help="descriptors computed elsewhere: .npy, or .h5 as hloc writes it"),
    ] = None,
    cell: Annotated[
        float, typer.Option(help="with --method or --descriptors: side of a place in metres")
    ] = 20.0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="of the network of --checkpoint: backbone=, dim=, image_size="),
    ] = None,
    layout: Annotated[
        str | None, typer.Option(help="layout of the photos; found by looking")
    ] = None,
) -> None:
    """Describe a database with the run's model and lay it out for search."""
    from evenplace.photos import read_photos
    from evenplace.run.folder import choose_describer, describer_of
    from evenplace.run.run import index_files, index_foreign, index_run
    from evenplace.training.distributed import leave_ranks, rank_of_process
    from evenplace.training.recipe import parse_settings

    changes = parse_settings(settings or [])
    if (checkpoint or changes) and not method and not describer_of(run):
        named = f"--checkpoint {checkpoint}" if checkpoint else f"--set {next(iter(changes))}"
        raise SettingError(f"{named} needs its network's name; add --method")
    photos = read_photos(database, layout)
    with bars() as announce:
        if descriptors:
            built = index_files(run, photos, descriptors, cell=cell)
        elif method:
            built = index_foreign(
                run, photos, method, checkpoint or "official", cell=cell, announce=announce,
                **changes,
            )  # fmt: skip
        else:
            if checkpoint or changes:
                choose_describer(run, checkpoint, **changes)
            built = index_run(run, photos, announce=None if rank_of_process() else announce)
            leave_ranks()
    if rank_of_process():  # one process of several speaks for all
        return
    print_skipped(built.photos.skipped)
    _say(run, built, f"next: evenplace locate {run} photo.jpg" if not descriptors else "")


def add(
    run: Annotated[Path, typer.Argument(help="run folder with an index")],
    database: Annotated[Path, typer.Option(help="geo-tagged photos to add")],
    replace: Annotated[
        bool, typer.Option(help="the index has these photos: describe them anew")
    ] = False,
    layout: Annotated[
        str | None, typer.Option(help="layout of the photos; found by looking")
    ] = None,
) -> None:
    """Add photos to the run's index while others read it; new cells become places at once."""
    from evenplace.photos import read_photos
    from evenplace.run.run import add_to_run

    with bars() as announce:
        photos = read_photos(database, layout)
        grown, skipped = add_to_run(run, photos, replace=replace, announce=announce)
    print_skipped(skipped)
    _say(run, grown)


def remove(
    run: Annotated[Path, typer.Argument(help="run folder with an index")],
    paths: Annotated[list[str], typer.Argument(help="paths of photos, as they were indexed")],
) -> None:
    """Take photos out of the run's index while others read it."""
    from evenplace.retrieval import remove_photos
    from evenplace.run.folder import run_indexes

    _say(run, [remove_photos(folder, paths) for folder in run_indexes(run)][-1])


def verify(
    run: Annotated[Path, typer.Argument(help="run folder with an index")],
) -> None:
    """Read every file of the run's index and compare it with its checksum."""
    from evenplace.retrieval import verify_index
    from evenplace.run.folder import run_indexes

    for folder in run_indexes(run):
        manifest = verify_index(folder)
        console.print(
            f"{folder} is whole: generation {manifest.generation}, {len(manifest.files)} files",
            markup=False,
            soft_wrap=True,
        )


def _say(run: Path, index: "Index", then: str = "") -> None:
    from evenplace.retrieval import open_index
    from evenplace.run.folder import run_indexes

    size = sum(open_index(folder).bytes for folder in run_indexes(run))
    console.print(
        f"{len(index)} photos in {int((index.sizes > 0).sum())} places, "
        f"{int((index.labels < 0).sum())} in no place the model knows, "
        f"{size / 2**20:.1f} MiB" + (f"; {then}" if then else ""),
        markup=False,
        soft_wrap=True,
    )
