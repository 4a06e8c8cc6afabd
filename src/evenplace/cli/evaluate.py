"""evenplace evaluate: how often is a run right, in the head and in the tail?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenplace.cli.console import bars, console, errors, print_skipped, print_table
from evenplace.cli.describing import BatchSize, Device, Engine, Precision, Verify, describing
from evenplace.cli.promising import Insist, MinPrecision
from evenplace.cli.reading import Box, City, Column, Layout, Zone, read, read_given
from evenplace.errors import UnplacedError

if TYPE_CHECKING:  # torch loads when the verb runs, not when help is asked for
    from evenplace.evaluation import Scores
    from evenplace.run.run import Run


def evaluate(
    run: Annotated[Path, typer.Argument(help="run folder with an index")],
    queries: Annotated[
        Path, typer.Option(help="photos to ask with; with --protocol, the data set")
    ],
    descriptors: Annotated[
        Path | None,
        typer.Option(help="the queries' descriptors, computed elsewhere: .npy or .h5"),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="a named test: sfxl-v1, msls-val-740, nordland-1f …")
    ] = None,
    allow_partial: Annotated[
        bool, typer.Option(help="accept a data set that is not complete")
    ] = False,
    radius: Annotated[float, typer.Option(help="metres within which an answer is right")] = 25.0,
    heading: Annotated[
        float | None, typer.Option(help="degrees within which it must look the same way")
    ] = None,
    frames: Annotated[
        int | None, typer.Option(help="count frames instead of metres, as Nordland does")
    ] = None,
    rerank: Annotated[str | None, typer.Option(help="rank by l2, cfd, kde, fused …")] = None,
    shortlist: Annotated[int | None, typer.Option(help="places the classifier keeps")] = None,
    exact: Annotated[bool, typer.Option(help="search the whole database")] = False,
    verify: Verify = None,
    min_precision: MinPrecision = None,
    insist: Insist = False,
    texts: Annotated[
        Path | None, typer.Option(help="also write VPR-methods-evaluation's .txt files here")
    ] = None,
    layout: Layout = None,
    city: City = None,
    zone: Zone = None,
    bbox: Box = None,
    column: Column = None,
    device: Device = "auto",
    engine: Engine = "auto",
    precision: Precision = "auto",
    batch: BatchSize = None,
) -> None:
    """Ask every query: recall by tier and condition, confidence, metres, cost."""
    from evenplace.evaluation.protocol import read_test
    from evenplace.evaluation.textfiles import write_texts
    from evenplace.retrieval.calibration import check_precision
    from evenplace.retrieval.sources import read_descriptors
    from evenplace.run.run import Run

    opened = Run.open(run, **describing(device, engine, precision, batch))
    if min_precision is not None:
        check_precision(min_precision)
    if protocol is None:
        try:
            photos = (
                read_given(queries, layout, column)
                if descriptors
                else read(queries, layout, city, zone, bbox, column)
            )
        except UnplacedError as cause:
            if descriptors:
                raise
            _without_truth(opened, queries, min_precision, str(cause))
            return
    else:
        test = read_test(run / "index", protocol, queries, allow_partial)
        console.print(test.describe(), markup=False)
        photos, frames, radius = test.queries, test.frames, test.radius or radius
    asked = {"rerank": rerank, "shortlist": shortlist, "exact": exact or None, "verify": verify}
    changes: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    given = read_descriptors(descriptors, photos) if descriptors else None
    with bars() as announce:
        scores = opened.evaluate(
            photos, given, radius=radius, heading=heading, frames=frames, announce=announce,
            min_precision=min_precision, insist=insist, **changes,
        )  # fmt: skip
    print_skipped(scores.skipped)
    _print(scores)
    for note in opened.cautions(scores, **changes):
        errors.print(f"note: {note}", markup=False, soft_wrap=True)
    if min_precision is not None:
        judged = opened.judge(scores, min_precision, insist=insist, **changes)
        console.print(
            f"asked for {100 * min_precision:g} % right: "
            f"{judged.overall}; tail: {judged.tail}",
            markup=False, soft_wrap=True,
        )  # fmt: skip
    if texts is not None:
        console.print(f"{write_texts(scores.predictions, texts)} files in {texts}", markup=False)


def _without_truth(run: "Run", queries: Path, min_precision: float | None, why: str) -> None:
    """What can be said of photos without positions; recall cannot."""
    from evenplace.run.unlabelled import judge_unlabelled

    errors.print(f"no recall: {why.split(';')[0]}", markup=False, soft_wrap=True)
    with bars() as announce:
        found = run.locate_many(
            [queries], min_precision=min_precision, progress=announce("asking the queries")
        )
        judged = judge_unlabelled([line for block in found for line in block])
    asked = "" if min_precision is None else f" at {100 * min_precision:g} % asked"
    low, middle, high = judged.confidence
    kind = "" if judged.calibrated else ", not calibrated: a score and no probability"
    rows = [
        ["photos", f"{judged.photos:,}"],
        ["unreadable", f"{judged.unreadable:,}"],
        [f"answered{asked}", f"{judged.answered:,}"],
        [f"confidence, quartiles{kind}", f"{low:.2f} / {middle:.2f} / {high:.2f}"],
        ["best five matches within 25 m of the first", f"{100 * judged.agreement:.0f} %"],
    ]
    if judged.calibrated:
        rows.append(["right, by its own confidence", f"{100 * judged.expected:.0f} %"])
    print_table(("without truth", ""), rows)


def _print(scores: "Scores") -> None:
    from evenplace.report import tables

    counts = (
        f"{scores.overall.queries} queries, {scores.answerable.queries} with a match within "
        f"{scores.truth}; tail {scores.tail.queries}; places found by {scores.reached_by()}"
    )
    print_table(tables.COLUMNS, tables.score_rows([scores]), counts)
    rows = tables.condition_rows([scores])
    if rows:
        print_table((*tables.CONDITION_COLUMNS, "R@1"), rows)
    print_table(tables.KNOWING_COLUMNS, tables.knowing_rows([scores]), "confidence")
    print_table(*tables.cost_table([scores]), "cost: median / 95th percentile of one query")
