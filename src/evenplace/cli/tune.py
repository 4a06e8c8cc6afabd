"""evenplace tune: how to weigh evidence and how far to trust an answer."""

from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import bars, say
from evenplace.cli.options import Device, QueryDescriptors, Which, grouped
from evenplace.errors import RunError, SettingError


@grouped
def tune(
    run: Annotated[Path, typer.Argument(help="run folder, trained, or with an index")],
    *,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="of the recipe's [search]: folds=5, rerank=l2 …"),
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(help="calibrate on these photos instead: their place is known")
    ] = None,
    descriptors: QueryDescriptors = None,
    which: Which,
    device: Device = "auto",
) -> None:
    """Learn the weights of the score and what confidence is worth, from photos held out in turn.

    With --queries the weights stay, and confidence is calibrated on photos whose place is known.
    """
    from evenplace.retrieval.descriptor_files import read_descriptors
    from evenplace.run.run import Run

    opened, asked, given = Run.open(run), None, None
    if queries is not None and settings:
        raise SettingError("--queries calibrates what is there; leave --set out, or --queries")
    if queries is not None:
        asked = which.read(queries) if descriptors is None else which.read_given(queries)
        given = None if descriptors is None else read_descriptors(descriptors, asked)
    elif descriptors is not None:
        raise SettingError("--descriptors are of --queries; name those photos too")
    with bars() as announce:
        learned = opened.tune(
            settings or (), queries=asked, descriptors=given, announce=announce, device=device
        )
    if learned is None:
        raise RunError(f"{run} has too few places to hold any out; use more photos")
    for choice in learned.choices:
        say(choice.said)
    say(str((learned.look or learned).rehearsal.calibrate()))
