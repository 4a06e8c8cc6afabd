"""evenplace tune: how to weigh evidence and how far to trust an answer."""

from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import bars, console


def tune(
    run: Annotated[Path, typer.Argument(help="run folder, trained, or with an index")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="of the recipe's [search]: folds=5, rerank=l2 …"),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cuda, mps or cpu")] = "auto",
) -> None:
    """Learn the weights of the score and what confidence is worth, from photos held out in turn."""
    from evenplace.errors import RunError
    from evenplace.run.run import Run

    opened = Run.open(run)
    with bars() as announce:
        learned = opened.tune(settings or (), announce=announce, device=device)
    if learned is None:
        raise RunError(f"{run} has too few places to hold any out; use more photos")
    console.print(str(learned.rehearsal.calibrate()), markup=False, soft_wrap=True)
