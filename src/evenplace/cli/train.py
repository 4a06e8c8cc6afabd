"""evenplace train: photos to a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenplace.cli.console import bars, print_skipped, say, stoppable, tell
from evenplace.cli.options import Device, Which, grouped

if TYPE_CHECKING:
    from evenplace.run.run import Run
    from evenplace.training.loop import Trained

STOPPED = "stopped; the same command goes on from the last checkpoint"
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
    photos: Annotated[
        list[Path], typer.Argument(help="folders, lists or tables of geo-tagged photos")
    ],
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
    from evenplace.training.recipe_variants import corner, rehearsal, with_loss

    recipe = find_recipe(method, preset)
    recipe = (with_loss(recipe, loss, preset) if loss else recipe).changed(settings or [])
    recipe = rehearsal(recipe) if dev else recipe
    found = which.read(*photos)
    chosen = corner(found, recipe.places.cell) if dev else found
    opened = Run(run)
    if rank_of_process():  # one process of several speaks for all
        opened.train(chosen, recipe=recipe, device=device)
        leave_ranks()
        return
    for caution in recipe.cautions():
        tell(f"note: {caution}")
    with stoppable(lambda: STOPPED), bars() as announce:
        trained = opened.train(chosen, recipe=recipe, announce=announce, device=device)
    _say_doubt(opened)
    leave_ranks()
    print_skipped(found.skipped + trained.skipped)
    _say(opened, trained)


def _say(run: "Run", trained: "Trained") -> None:
    if trained.recall is not None:
        say(f"held out: {trained.recall}")
    loss = f", loss {trained.losses[-1]:.3f}" if trained.losses else ""
    say(
        f"{run.recipe.name}: {trained.network.place_count} places, {len(trained.losses)} epochs"
        f"{loss}, {trained.seconds:.0f} s; next: evenplace index {run.folder} --database PHOTOS"
    )


def _say_doubt(run: "Run") -> None:
    """What keeps the run's confidences from being probabilities."""
    from evenplace.training.distributed import world_size

    folds, folder = run.recipe.search.folds, run.folder
    if folds and world_size() > 1:
        tell(
            f"note: several processes leave the {folds} folds out, so confidence is not "
            f"calibrated yet; index, then: evenplace tune {folder}"
        )
    if (folder / "calibration.json").exists() and (doubt := run.files.rehearsal.doubt):
        tell(
            f"note: uncalibrated: {doubt}, so no other day could be rehearsed and no precision is "
            f"promised; with photos whose place is known: evenplace tune {folder} --queries PHOTOS"
        )
