"""evenplace train: photos to a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenplace.cli.console import bars, print_skipped, say, stoppable, tell
from evenplace.cli.options import Device, Which, grouped

if TYPE_CHECKING:
    from evenplace.training.loop import Trained


RunFolder = Annotated[
    Path,
    typer.Option(
        "--run",
        "--out",  # torchrun takes --run for a prefix of its own --run-path
        help="run folder to write, or to go on with; --out under torchrun",
    ),
]


@grouped
def train(
    photos: Annotated[Path, typer.Argument(help="folder, list or table of geo-tagged photos")],
    *,
    run: RunFolder,
    method: Annotated[str, typer.Option(help="a recipe's name, or a .toml file")] = "dapr-m",
    preset: Annotated[str, typer.Option(help="recommended, or paper")] = "recommended",
    which: Which,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, as often as needed")
    ] = None,
    loss: Annotated[
        str | None, typer.Option(help="another loss; low-visit-bias takes the method's own form")
    ] = None,
    device: Device = "auto",
    dev: Annotated[
        bool, typer.Option("--dev", help="rehearse: two steps of everything on a few photos")
    ] = False,
) -> None:
    """Train a model on photos and leave a run folder; torchrun starts it on several devices."""
    from evenplace.run.run import Run
    from evenplace.training.distributed import leave_ranks, rank_of_process
    from evenplace.training.recipe import find_recipe
    from evenplace.training.variants import corner, rehearsal, with_loss

    recipe = find_recipe(method, preset)
    recipe = (with_loss(recipe, loss, preset) if loss else recipe).changed(settings or [])
    recipe = rehearsal(recipe) if dev else recipe
    found = which.read(photos)
    chosen = corner(found, recipe.places.cell) if dev else found
    if rank_of_process():  # one process of several speaks for all
        Run(run).train(chosen, recipe=recipe, device=device)
        leave_ranks()
        return
    for caution in recipe.cautions():
        tell(f"note: {caution}")
    with (
        stoppable(lambda: "stopped; the same command goes on from the last checkpoint"),
        bars() as announce,
    ):
        trained = Run(run).train(chosen, recipe=recipe, announce=announce, device=device)
    _say_doubt(run)
    leave_ranks()
    print_skipped(found.skipped + trained.skipped)
    _say(run, trained)


def _say_doubt(folder: Path) -> None:
    """What keeps the run's confidences from being probabilities."""
    from evenplace.run.run import Run
    from evenplace.training.distributed import world_size

    run = Run(folder)
    if run.recipe.search.folds and world_size() > 1:
        tell(
            f"note: several processes leave the {run.recipe.search.folds} folds out, so confidence "
            f"is not calibrated yet; index, then: evenplace tune {folder}"
        )
    if (folder / "calibration.json").exists() and (doubt := run.files.rehearsal.doubt):
        tell(
            f"note: uncalibrated: {doubt}, so no other day could be rehearsed and no precision is "
            f"promised; with photos whose place is known: evenplace tune {folder} --queries PHOTOS"
        )


def _say(run: Path, trained: "Trained") -> None:
    from evenplace.run.run import Run

    if trained.recall is not None:
        say(f"held out: {trained.recall}")
    say(
        f"{Run(run).recipe.name}: {trained.network.place_count} places, "
        f"{len(trained.losses)} epochs, "
        f"loss {trained.losses[-1] if trained.losses else float('nan'):.3f}, "
        f"{trained.seconds:.0f} s; next: evenplace index {run} --database PHOTOS"
    )
