"""evenplace train: photos to a model."""

from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import bars, console, errors, print_skipped


def train(
    photos: Annotated[Path, typer.Argument(help="folder, list or table of geo-tagged photos")],
    run: Annotated[Path, typer.Option(help="run folder to write, or to go on with")],
    method: Annotated[str, typer.Option(help="a recipe's name, or a .toml file")] = "dapr-m",
    preset: Annotated[str, typer.Option(help="recommended, or paper")] = "recommended",
    layout: Annotated[
        str | None, typer.Option(help="layout of the photos; found by looking")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, as often as needed")
    ] = None,
) -> None:
    """Train a model on photos and leave a run folder."""
    from evenplace.photos import read_photos
    from evenplace.run import train_run
    from evenplace.training.recipe import find_recipe

    recipe = find_recipe(method, preset).changed(settings or [])
    for caution in recipe.cautions():
        errors.print(f"note: {caution}", markup=False, soft_wrap=True)
    found = read_photos(photos, layout)
    with bars() as announce:
        trained = train_run(run, found, recipe, announce=announce)
    print_skipped(found.skipped + trained.skipped)
    console.print(
        f"{recipe.name}: {trained.network.place_count} places, {len(trained.losses)} epochs, "
        f"loss {trained.losses[-1] if trained.losses else float('nan'):.3f}, "
        f"{trained.seconds:.0f} s; next: evenplace index {run} --database PHOTOS",
        markup=False,
        soft_wrap=True,
    )
