"""evenplace study: one table or figure of the paper, trained, asked and printed."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import bars, console


def study(
    name: Annotated[
        str,
        typer.Argument(
            help="losses, modules, plug-in, sensitivity, partition, margin, distance, "
            "confidence, cost, tail, abstention, beyond, choices, rewards or fine-tuning"
        ),
    ],
    data: Annotated[
        str, typer.Option(help="town, a set under EVENPLACE_DATA, or a folder of photos")
    ] = "town",
    seeds: Annotated[int, typer.Option(help="splits (towns) and trainings to average over")] = 3,
    out: Annotated[
        Path, typer.Option(help="folder of all studies, which share trainings; this one's is NAME")
    ] = Path("runs/studies"),
    photos: Annotated[int | None, typer.Option(help="database photos at most")] = None,
    queries: Annotated[int | None, typer.Option(help="queries at most")] = None,
    radius: Annotated[float, typer.Option(help="metres within which an answer is right")] = 25.0,
    heading: Annotated[
        float | None, typer.Option(help="degrees within which it must look the same way")
    ] = None,
    development: Annotated[
        bool,
        typer.Option("--development", help="ask with database photos, the test queries unseen"),
    ] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value for all systems")
    ] = None,
) -> None:
    """Run a named study: train what it needs, resume what it has, write tables and figures."""
    from evenplace.study import find_study, read_splits, run_study, write_findings
    from evenplace.study.tables import TABLES

    chosen = find_study(name)
    with bars() as announce:
        splits = read_splits(
            data, seeds, out / "data", photos=photos, queries=queries, radius=radius,
            heading=heading, development=development, announce=announce,
        )  # fmt: skip
        found = run_study(chosen, splits, out, settings=settings or [], announce=announce)
    words = [word for word in sys.argv[1:] if word != "--out" and Path(word) != out]
    folder = "-".join([name, Path(data).name, *(["development"] if development else [])])
    page = write_findings(found, out / folder, command=" ".join(["evenplace", *words]))
    for table in chosen.tables:
        console.print(TABLES[table](found) + "\n", markup=False, soft_wrap=True)
    console.print(f"tables: {page}\nfigures: {page.parent / 'figures'}", markup=False)
