"""evenplace locate, for more than one photo: in batches, resumable, into files and a table."""

import json
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer

from evenplace.cli.console import bars, console, errors, print_table
from evenplace.cli.tagging import say_tagged

if TYPE_CHECKING:
    from evenplace.photos.asked import Asked
    from evenplace.retrieval import Index
    from evenplace.retrieval.calibration import Calibration
    from evenplace.run.journal import Journal
    from evenplace.run.located import Located
    from evenplace.run.run import Run
    from evenplace.run.tagging import Tagging

SHOWN = 20  # lines of the table on screen


@dataclass(frozen=True)
class Walk:
    """How photos follow one another."""

    speed: float
    order: str


@dataclass(frozen=True)
class Many:
    """What was asked for besides the photos."""

    k: int
    min_precision: float | None
    insist: bool
    verify: int | None
    out: tuple[Path, ...]
    replace: bool
    every: float
    as_json: bool
    tagging: "Tagging | None" = None
    walk: Walk | None = None


def locate_many(run: "Run", asked: "Asked", many: Many) -> None:
    """Answer every photo, then write every file; what was answered before a stop is kept."""
    from evenplace.report.answers import check_out, write_answers
    from evenplace.retrieval import open_index
    from evenplace.retrieval.answers import least_confidence
    from evenplace.run.journal import check_free
    from evenplace.run.tagging import write_positions

    index = open_index(run.folder / "index")
    for out in many.out:
        check_out(out, index.photos.zones)
        check_free(out, many.replace)
    learned, least = run.calibration(verify=many.verify), 0.0
    if many.min_precision is not None:  # refused now rather than after a walk of an hour
        least = least_confidence(many.min_precision, learned, many.insist)
    if passed := asked.say_passed():
        _tell(passed)
    journal, rate = _answer_all(run, asked, many, index)
    lines = journal.answers if many.walk is None else _followed(journal.answers, many, least)
    for out in many.out:
        write_answers(lines, out, index.places)
    tagged = None if many.tagging is None else write_positions(lines, many.tagging)
    journal.end()
    if many.as_json:
        for line in lines:
            print(json.dumps(line.as_dict()))
        return
    _print(lines, rate, learned)
    for out in many.out:
        console.print(f"written: {out}", markup=False, soft_wrap=True)
    if tagged is not None:
        say_tagged(tagged)


def _answer_all(run: "Run", asked: "Asked", many: Many, index: "Index") -> "tuple[Journal, float]":
    """All answers, those of a job that was stopped among them, and how many a second are new."""
    from evenplace.retrieval.answer_json import index_name
    from evenplace.run.journal import Journal
    from evenplace.run.walks import CANDIDATES

    way = {"index": index_name(index), "k": many.k, "min_precision": many.min_precision,
           "verify": many.verify, "every": many.every,
           "sequence": many.walk is not None}  # fmt: skip
    journal = Journal(many.out[0] if many.out else None, way, many.replace)
    if journal.answers:
        _tell(f"going on after {len(journal.answers):,} photos answered before")
    began, before = time.perf_counter(), len(journal.answers)
    try:
        with bars() as announce:
            show = announce("locating")
            found = run.locate_many(
                asked, many.k if many.walk is None else max(many.k, CANDIDATES),
                min_precision=many.min_precision if many.walk is None else None,
                insist=many.insist, verify=many.verify,
                every=many.every, done=journal.done,
                progress=lambda done, _: show(before + done, max(len(asked.paths), before + done)),
            )  # fmt: skip
            for block in found:
                journal.add(block)
    except KeyboardInterrupt:
        if many.out:
            _tell(f"stopped after {len(journal.answers):,} photos; the same command goes on")
        raise typer.Exit(130) from None
    return journal, (len(journal.answers) - before) / max(time.perf_counter() - began, 1e-9)


def _followed(lines: "list[Located]", many: Many, least: float) -> "list[Located]":
    """The answers with their neighbours heard, with as many matches as were asked for."""
    from evenplace.run.walks import follow

    assert many.walk is not None
    found, warning = follow(lines, many.walk.speed, many.walk.order, least)
    if warning:
        _tell(warning)
    moved = sum(
        one.matches[:1] != other.matches[:1] for one, other in zip(found, lines, strict=True)
    )
    _tell(f"the walk gives {moved:,} photos another place than they had alone")
    return [replace(line, matches=line.matches[: many.k]) for line in found]


def _tell(text: str) -> None:
    errors.print(text, markup=False, soft_wrap=True)


def _print(lines: "list[Located]", rate: float, learned: "Calibration | None") -> None:
    from evenplace.retrieval.shift import find_shift

    rows = [[Path(line.photo).name, *_cells(line)] for line in lines[:SHOWN]]
    print_table(("photo", "where", "give or take", "confidence", "like"), rows)
    if len(lines) > SHOWN:
        console.print(f"… and {len(lines) - SHOWN:,} more; --out FILE keeps all", markup=False)
    console.print(_summary(lines, rate), markup=False, soft_wrap=True)
    alike = [line.matches[0].similarity for line in lines if line.matches]
    if learned and (shifted := find_shift(alike, learned.likeness)):
        _tell(f"note: {shifted}")


def _cells(line: "Located") -> list[str]:
    if not line.answered or line.spot is None:
        return [line.status, "", f"{line.confidence:.2f}" if line.matches else "", line.reason]
    spot = line.spot
    where = f"east {spot.east:.1f}, north {spot.north:.1f}"
    if spot.latitude is not None:
        where = f"{spot.latitude:.6f}, {spot.longitude:.6f}"
    like = Path(line.matches[0].path).name
    return [where, f"{spot.major:.0f} m", f"{line.confidence:.2f}", like]


def _summary(lines: "list[Located]", rate: float) -> str:
    """How many were answered, how surely, and what own positions say to it."""
    from evenplace.report.answer_files import own_gps_gap

    count = Counter(line.status for line in lines)
    told = ", ".join(f"{many:,} {status}" for status, many in count.most_common())
    said = f"{len(lines):,} photos: {told}; {rate:.3g} photos a second"
    answers = [line for line in lines if line.answered]
    if answers:
        sure = np.median([line.confidence for line in answers])
        kind = f" (uncalibrated: {answers[0].doubt})" if answers[0].doubt else ""
        said += f"; median confidence {sure:.2f}{kind}"
    gaps = [gap for line in answers if (gap := own_gps_gap(line)) is not None]
    if gaps:
        near = sum(gap <= 25 for gap in gaps)
        said += f"; of {len(gaps):,} with a position of their own {near:,} are within 25 m of it"
    return said
