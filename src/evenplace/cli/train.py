"""evenplace train: photos to a model."""

from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import bars, console, errors, print_skipped
from evenplace.cli.reading import Box, City, Column, Layout, Zone, read


def train(
    photos: Annotated[Path, typer.Argument(help="folder, list or table of geo-tagged photos")],
    run: Annotated[
        Path,
        typer.Option(
            "--run",
            "--out",  # torchrun takes --run for a prefix of its own --run-path
            help="run folder to write, or to go on with; --out under torchrun",
        ),
    ],
    method: Annotated[str, typer.Option(help="a recipe's name, or a .toml file")] = "dapr-m",
    preset: Annotated[str, typer.Option(help="recommended, or paper")] = "recommended",
    layout: Layout = None,
    city: City = None,
    zone: Zone = None,
    bbox: Box = None,
    column: Column = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, as often as needed")
    ] = None,
    loss: Annotated[
        str | None, typer.Option(help="another loss; low-visit-bias takes the method's own form")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cuda, mps or cpu")] = "auto",
    dev: Annotated[
        bool, typer.Option("--dev", help="rehearse: two steps of everything on a few photos")
    ] = False,
) -> None:
    """Train a model on photos and leave a run folder; torchrun starts it on several devices."""
    from evenplace.run.run import Run
    from evenplace.training.dev import corner, rehearsal
    from evenplace.training.distributed import leave_ranks, rank_of_process, world_size
    from evenplace.training.plug_in import with_loss
    from evenplace.training.recipe import find_recipe

    recipe = find_recipe(method, preset)
    recipe = (with_loss(recipe, loss, preset) if loss else recipe).changed(settings or [])
    recipe = rehearsal(recipe) if dev else recipe
    found = read(photos, layout, city, zone, bbox, column)
    chosen = corner(found, recipe.places.cell) if dev else found
    if rank_of_process():  # one process of several speaks for all
        Run(run).train(chosen, recipe=recipe, device=device)
        leave_ranks()
        return
    for caution in recipe.cautions():
        errors.print(f"note: {caution}", markup=False, soft_wrap=True)
    try:
        with bars() as announce:
            trained = Run(run).train(chosen, recipe=recipe, announce=announce, device=device)
    except KeyboardInterrupt:
        errors.print("stopped; the same command goes on from the last checkpoint", markup=False)
        raise typer.Exit(130) from None
    if recipe.search.folds and world_size() > 1:
        errors.print(
            f"note: several processes leave the {recipe.search.folds} folds out, so confidence is "
            f"not calibrated yet; index, then: evenplace tune {run}",
            markup=False,
            soft_wrap=True,
        )
    leave_ranks()
    print_skipped(found.skipped + trained.skipped)
    if (run / "calibration.json").exists() and (doubt := Run(run).files.rehearsal.doubt):
        errors.print(
            f"note: uncalibrated: {doubt}, so no other day could be rehearsed and no precision is "
            f"promised; with photos whose place is known: evenplace tune {run} --queries PHOTOS",
            markup=False,
            soft_wrap=True,
        )
    if trained.recall is not None:
        console.print(f"held out: {trained.recall}", markup=False, soft_wrap=True)
    console.print(
        f"{recipe.name}: {trained.network.place_count} places, {len(trained.losses)} epochs, "
        f"loss {trained.losses[-1] if trained.losses else float('nan'):.3f}, "
        f"{trained.seconds:.0f} s; next: evenplace index {run} --database PHOTOS",
        markup=False,
        soft_wrap=True,
    )
