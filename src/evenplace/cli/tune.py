"""evenplace tune: how to weigh evidence and how far to trust an answer."""

from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import bars, console
from evenplace.cli.reading import Box, City, Column, Layout, Zone, read, read_given


def tune(
    run: Annotated[Path, typer.Argument(help="run folder, trained, or with an index")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="of the recipe's [search]: folds=5, rerank=l2 …"),
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(help="calibrate on these photos instead: their place is known")
    ] = None,
    descriptors: Annotated[
        Path | None,
        typer.Option(help="the queries' descriptors, computed elsewhere: .npy or .h5"),
    ] = None,
    layout: Layout = None,
    city: City = None,
    zone: Zone = None,
    bbox: Box = None,
    column: Column = None,
    device: Annotated[str, typer.Option(help="auto, cuda, mps or cpu")] = "auto",
) -> None:
    """Learn the weights of the score and what confidence is worth, from photos held out in turn.

    With --queries the weights stay, and confidence is calibrated on photos whose place is known.
    """
    from evenplace.errors import RunError, SettingError
    from evenplace.retrieval.sources import read_descriptors
    from evenplace.run.run import Run

    opened, asked, given = Run.open(run), None, None
    if queries is not None and settings:
        raise SettingError("--queries calibrates what is there; leave --set out, or --queries")
    if queries is not None and descriptors is None:
        asked = read(queries, layout, city, zone, bbox, column)
    elif queries is not None and descriptors is not None:
        asked = read_given(queries, layout, column)
        given = read_descriptors(descriptors, asked)
    elif descriptors is not None:
        raise SettingError("--descriptors are of --queries; name those photos too")
    with bars() as announce:
        learned = opened.tune(
            settings or (), queries=asked, descriptors=given, announce=announce, device=device
        )
    if learned is None:
        raise RunError(f"{run} has too few places to hold any out; use more photos")
    console.print(str(learned.rehearsal.calibrate()), markup=False, soft_wrap=True)
