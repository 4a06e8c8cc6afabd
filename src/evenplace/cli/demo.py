"""evenplace demo: everything on a drawn town, in minutes."""

from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import bars, print_table, say
from evenplace.cli.options import ForAll


def demo(
    out: Annotated[Path, typer.Option(help="folder of the runs")] = Path("runs/demo"),
    photos: Annotated[int, typer.Option(help="database photos")] = 500,
    queries: Annotated[int, typer.Option(help="queries")] = 200,
    seeds: Annotated[int, typer.Option(help="towns and trainings to average over")] = 1,
    settings: ForAll = None,
) -> None:
    """Draw a town, train three systems on it, and report who finds the tail."""
    from evenplace.demo import run_demo
    from evenplace.report.tables import COLUMNS, GAIN_COLUMNS, gain_rows, score_rows

    with bars() as announce:
        done = run_demo(
            out, photos=photos, queries=queries, seeds=seeds, settings=settings or [],
            announce=announce,
        )  # fmt: skip
    print_table(COLUMNS, score_rows(done.systems), done.title)
    print_table(GAIN_COLUMNS, gain_rows(done.systems), "* the 95 % interval excludes 0")
    say(f"report: {done.page}")
    say(f"serve it: evenplace serve {done.run}\nask it:   evenplace locate {done.run} PHOTO.jpg")
