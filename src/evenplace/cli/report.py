"""evenplace report: evaluated runs, side by side, as one page."""

from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import print_table, say, tell


def report(
    runs: Annotated[list[Path], typer.Argument(help="evaluated run folders, the baseline first")],
    out: Annotated[
        Path | None, typer.Option(help="folder; the last run's report/ if left out")
    ] = None,
    tiles: Annotated[
        str | None, typer.Option(help="base map under the places: https://…/{z}/{x}/{y}.png")
    ] = None,
) -> None:
    """Write a page that compares runs; it opens from disk with no network."""
    from evenplace.report.evaluation import write_report
    from evenplace.report.tables import COLUMNS, GAIN_COLUMNS, gain_rows, say_databases, score_rows
    from evenplace.run.run import Run

    systems = [Run(run).scores() for run in runs]
    page = write_report(systems, out or runs[-1] / "report", runs=runs, tiles=tiles)
    print_table(COLUMNS, score_rows(systems))
    if len(systems) > 1:
        print_table(GAIN_COLUMNS, gain_rows(systems))
    if differ := say_databases(systems):
        tell(f"note: {differ}")
    say(f"report: {page}")
