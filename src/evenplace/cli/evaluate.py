"""evenplace evaluate: how often is a run right, in the head and in the tail?"""

from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import bars, print_skipped, print_table


def evaluate(
    run: Annotated[Path, typer.Argument(help="run folder with an index")],
    queries: Annotated[Path, typer.Option(help="geo-tagged photos to ask with")],
    radius: Annotated[float, typer.Option(help="metres within which an answer is right")] = 25.0,
    heading: Annotated[
        float | None, typer.Option(help="degrees within which it must look the same way")
    ] = None,
    rerank: Annotated[str | None, typer.Option(help="rank by l2, cfd, kde, fused …")] = None,
    shortlist: Annotated[int | None, typer.Option(help="places the classifier keeps")] = None,
    exact: Annotated[bool, typer.Option(help="search the whole database")] = False,
    layout: Annotated[
        str | None, typer.Option(help="layout of the photos; found by looking")
    ] = None,
) -> None:
    """Ask every query and print recall, overall and by tier, with intervals."""
    from evenplace.photos import read_photos
    from evenplace.report.tables import COLUMNS, score_rows
    from evenplace.run import evaluate_run

    photos = read_photos(queries, layout)
    asked = {"rerank": rerank, "shortlist": shortlist, "exact": exact or None}
    changes = {name: value for name, value in asked.items() if value is not None}
    with bars() as announce:
        scores = evaluate_run(
            run, photos, radius=radius, heading=heading, announce=announce, **changes
        )
    print_skipped(photos.skipped, "queries")
    counts = f"{scores.overall.queries} queries; tail {scores.tail.queries}"
    print_table(COLUMNS, score_rows([scores]), counts)
