"""evenplace evaluate: how often is a run right, in the head and in the tail?"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenplace.cli.console import bars, print_skipped, print_table, say, tell
from evenplace.cli.options import (
    AllowPartial,
    Batched,
    Centre,
    Heading,
    IndexedRun,
    Promise,
    QueryDescriptors,
    Radius,
    Verify,
    Which,
    grouped,
    only,
)
from evenplace.errors import UnplacedError

if TYPE_CHECKING:  # torch loads when the verb runs, not when help is asked for
    from evenplace.evaluation import Scores
    from evenplace.photos import Photos
    from evenplace.run.run import Run


@dataclass(frozen=True)
class Asked:
    """The queries, and whose they are."""

    queries: Annotated[
        list[Path],
        typer.Option(help="photos to ask with, as often as needed; with --protocol, the data set"),
    ]
    descriptors: QueryDescriptors = None
    protocol: Annotated[
        str | None, typer.Option(help="a named test: sfxl-v1, msls-val-740, nordland-1f …")
    ] = None
    allow_partial: AllowPartial = False


@dataclass(frozen=True)
class Right:
    """What counts as found."""

    radius: Radius = 25.0
    heading: Heading = None
    frames: Annotated[
        int | None, typer.Option(help="count frames instead of metres, as Nordland does")
    ] = None


@dataclass(frozen=True)
class Ways:
    """How queries are answered, where that is not as the run has it."""

    rerank: Annotated[str | None, typer.Option(help="rank by l2, cfd, kde, fused …")] = None
    shortlist: Annotated[int | None, typer.Option(help="places the classifier keeps")] = None
    exact: Annotated[
        bool | None, typer.Option(help="compare the whole database, or a shortlist's photos")
    ] = None
    verify: Verify = None
    centre: Centre = None

    def told(self) -> dict[str, Any]:
        """Those that were given."""
        return {name: value for name, value in vars(self).items() if value is not None}


@grouped
def evaluate(
    run: IndexedRun,
    *,
    asked: Asked,
    right: Right,
    ways: Ways,
    promise: Promise,
    texts: Annotated[
        Path | None, typer.Option(help="also write VPR-methods-evaluation's .txt files here")
    ] = None,
    which: Which,
    how: Batched,
) -> None:
    """Ask every query: recall by tier and condition, confidence, metres, cost."""
    from evenplace.evaluation.truth import read_test
    from evenplace.retrieval.descriptor_files import read_descriptors
    from evenplace.run.run import Run

    opened = Run.open(run, **how.how())
    promise.check()
    if asked.protocol is None:
        photos = _read(opened, asked, which, promise)
        if photos is None:
            return
    else:
        whole = only(asked.queries, "--protocol reads one data set")
        test = read_test(run / "index", asked.protocol, whole, asked.allow_partial)
        say(test.describe())
        photos = test.queries
        right = replace(right, frames=test.frames, radius=test.radius or right.radius)
    changes = ways.told()
    given = read_descriptors(asked.descriptors, photos) if asked.descriptors else None
    with bars() as announce:
        scores = opened.evaluate(
            photos, given, announce=announce, **vars(right), **vars(promise), **changes
        )
    _print(opened, scores)
    _print_promise(opened, scores, promise, changes)
    if texts is not None:
        _write_texts(run, photos, right, scores, texts)


def _write_texts(run: Path, photos: "Photos", right: Right, scores: "Scores", folder: Path) -> None:
    """Each query with its hits and every photo of the database that would be right."""
    from evenplace.evaluation.predictions import write_texts
    from evenplace.evaluation.truth import Truth
    from evenplace.retrieval import open_index

    index, row = open_index(run / "index"), {path: at for at, path in enumerate(photos.paths)}
    asked = photos[[row[path] for path in scores.predictions.paths]]  # some could not be read
    near = Truth(**vars(right)).positives(asked, index.photos)
    matches = [index.paths(near.of(query)) for query in range(len(asked))]
    say(f"{write_texts(scores.predictions, folder, matches)} files in {folder}")


def _read(run: "Run", asked: Asked, which: Which, promise: Promise) -> "Photos | None":
    """The queries; None where their places are unknown, and what can be said then has been."""
    if asked.descriptors:
        return which.read_given(only(asked.queries, "--descriptors are the rows of one --queries"))
    try:
        return which.read(*asked.queries)
    except UnplacedError as cause:
        _without_truth(run, asked.queries, promise, str(cause))
        return None


def _without_truth(run: "Run", queries: list[Path], promise: Promise, why: str) -> None:
    """What can be said of photos without positions; recall cannot."""
    from evenplace.run.answer_summary import judge_unlabelled

    tell(f"no recall: {why.split(';')[0]}")
    with bars() as announce:
        found = run.locate_many(queries, **vars(promise), progress=announce("asking the queries"))
        judged = judge_unlabelled([line for block in found for line in block])
    least = promise.min_precision
    asked = "" if least is None else f" at {100 * least:g} % asked"
    low, middle, high = judged.confidence
    kind = "" if judged.calibrated else ", a score and no probability"
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
    if judged.doubt:
        tell(f"note: uncalibrated: {judged.doubt}")


def _print(run: "Run", scores: "Scores") -> None:
    from evenplace.report import tables

    print_skipped(scores.skipped)
    counts = (
        f"{scores.overall.queries} queries, {scores.answerable.queries} with a match within "
        f"{scores.truth}; tail {scores.tail.queries}; places found by {_finder(run, scores)}"
    )
    print_table(tables.COLUMNS, tables.score_rows([scores]), counts)
    print_table(tables.TIER_COLUMNS, tables.tier_rows([scores]))
    rows = tables.condition_rows([scores])
    if rows:
        print_table((*tables.CONDITION_COLUMNS, "R@1"), rows)
    print_table(tables.KNOWING_COLUMNS, tables.knowing_rows([scores]), "confidence")
    print_table(*tables.cost_table([scores]), "cost: median / 95th percentile of one query")


def _finder(run: "Run", scores: "Scores") -> str:
    """What found the places: prototypes that `tune` learned, or a classifier, or means."""
    from evenplace.retrieval import open_index
    from evenplace.retrieval.prototypes import MEANS

    kind = open_index(run.folder / "index").manifest.prototypes
    learned = kind not in ("classifier", MEANS)
    return f"prototypes learned by {kind}" if learned else scores.reached_by()


def _print_promise(run: "Run", scores: "Scores", promise: Promise, changes: dict[str, Any]) -> None:
    """What keeps confidences from being probabilities, and what was delivered of what was asked."""
    for note in run.cautions(scores, **changes):
        tell(f"note: {note}")
    if (least := promise.min_precision) is not None:
        judged = run.judge(scores, least, insist=promise.insist, **changes)
        say(f"asked for {100 * least:g} % right: {judged.overall}; tail: {judged.tail}")
