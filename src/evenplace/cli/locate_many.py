"""evenplace locate, for more than one photo: in batches, resumable, into files, tables, EXIF."""

import json
import time
from collections import Counter
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from evenplace.cli.console import bars, print_table, say, stoppable, tell
from evenplace.errors import PhotoError, RunError, SettingError

if TYPE_CHECKING:
    from evenplace.photos.asked import Asked
    from evenplace.retrieval.calibration import Calibration
    from evenplace.run.geotagging import Tagged, Tagging
    from evenplace.run.journal import Journal
    from evenplace.run.locate_many import Located
    from evenplace.run.run import Run

SHOWN = 20  # lines of the table on screen
WIDE = 100  # columns of it: a terminal's


@dataclass(frozen=True)
class Output:
    """What answers go to."""

    as_json: Annotated[
        bool, typer.Option("--json", help="for machines: what the service answers, and paths")
    ] = False
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="also a file, as often as needed: .csv .parquet .geojson .gpx .kml .html"
        ),
    ] = None
    replace: Annotated[bool, typer.Option(help="write over files that exist")] = False

    @property
    def files(self) -> list[Path]:
        return self.out or []


@dataclass(frozen=True)
class Walk:
    """How photos follow one another."""

    sequence: Annotated[
        bool, typer.Option(help="photos of one walk, drive or film: near in time is near by")
    ] = False
    speed: Annotated[float, typer.Option(help="of the walk, metres a second at most")] = 15.0
    order: Annotated[
        str, typer.Option(help="of the walk: time, name; auto is time where all have one")
    ] = "auto"


@dataclass(frozen=True)
class Tags:
    """Where positions are written to, beside the answers."""

    write_exif: Annotated[
        bool, typer.Option(help="write positions into copies of the JPEGs; see --copies")
    ] = False
    copies: Annotated[Path, typer.Option(help="folder of the copies")] = Path("located")
    in_place: Annotated[bool, typer.Option(help="write into the photos, not into copies")] = False
    sidecar: Annotated[
        str | None, typer.Option(help="xmp: write positions into files beside the photos")
    ] = None

    def how(self, replace: bool, min_precision: float | None) -> "Tagging | None":
        """What the options ask for; None where nothing is written into photos."""
        if self.sidecar not in (None, "xmp"):
            raise SettingError(f"--sidecar {self.sidecar} is no kind of sidecar; there is xmp")
        if self.write_exif and self.sidecar:
            raise SettingError("--write-exif and --sidecar write the same twice; choose one")
        if self.in_place and not self.write_exif:
            raise SettingError("--in-place says where --write-exif writes; give both")
        if not self.write_exif and self.sidecar is None:
            return None
        if min_precision is None:
            raise SettingError(
                "positions are only written where they are sure enough; say how sure with "
                "--min-precision, such as 0.95"
            )
        from evenplace.run.geotagging import Tagging

        copies = None if self.in_place else self.copies
        return Tagging(exif=self.write_exif, copies=copies, replace=replace)


@dataclass(frozen=True)
class Many:
    """What was asked for besides the photos."""

    k: int
    min_precision: float | None
    insist: bool
    verify: int | None
    centre: bool | None
    output: Output
    every: float
    walk: Walk
    tagging: "Tagging | None" = None


def locate_many(run: "Run", asked: "Asked", many: Many) -> None:
    """Answer every photo, then write every file; what was answered before a stop is kept."""
    from evenplace.report.answers import KINDS, check_out, write_answers
    from evenplace.retrieval import open_index
    from evenplace.retrieval.answer_json import index_name
    from evenplace.retrieval.calibration import least_confidence
    from evenplace.run.geotagging import write_positions
    from evenplace.run.locate_many import UNREADABLE
    from evenplace.run.sequence import follow

    index = open_index(run.folder / "index")
    for out in many.output.files:
        check_out(out, KINDS, index.photos.zones, many.output.replace)
    learned, least = run.calibration(verify=many.verify), 0.0
    if many.min_precision is not None:  # refused now rather than after a walk of an hour
        least = least_confidence(many.min_precision, learned, many.insist)
    if many.tagging is not None:
        many.tagging.check(asked.paths)
    if many.walk.sequence:
        follow([], many.walk.speed, many.walk.order)
    if passed := asked.say_passed():
        tell(passed)
    journal, rate = _ask(run, asked, many, index_name(index.folder))
    lines = journal.in_order()
    if many.walk.sequence:
        lines = _followed(lines, many, least)
    tagged = None if many.tagging is None else write_positions(lines, many.tagging)
    write_answers(lines, many.output.files, index.places)
    journal.end()
    if many.output.as_json:
        for line in lines:
            print(json.dumps(line.as_dict()))
    else:
        _print(lines, rate, many.min_precision, least, learned)
        for out in many.output.files:
            say(f"written: {out}")
        if tagged is not None:
            _say_tagged(tagged)
    if lines and all(line.status == UNREADABLE for line in lines):
        raise PhotoError(f"none of the {len(lines):,} photos can be read: {lines[0].reason}")


def _ask(run: "Run", asked: "Asked", many: Many, index: str) -> "tuple[Journal, float]":
    """The answers, those of before a stop among them, and how many came in a second."""
    from evenplace.run.journal import Journal
    from evenplace.run.sequence import CANDIDATES

    way = {"index": index, "k": many.k, "min_precision": many.min_precision,
           "verify": many.verify, "every": many.every, "sequence": many.walk.sequence,
           "centre": many.centre}  # fmt: skip
    journal = Journal(next(iter(many.output.files), None), way, asked.paths, many.output.replace)
    before, began = len(journal.answers), time.perf_counter()
    if before:
        tell(f"going on after {before:,} photos answered before")
    files = many.output.files
    kept = "the same command goes on" if files else "with --out FILE the same command would go on"
    with stoppable(lambda: f"stopped after {len(journal.answers):,} photos; {kept}"), bars() as to:
        show = to("locating")
        found = run.locate_many(
            asked, max(many.k, CANDIDATES) if many.walk.sequence else many.k,
            min_precision=None if many.walk.sequence else many.min_precision,
            insist=many.insist, verify=many.verify, centre=many.centre, every=many.every,
            done=journal.done,
            progress=lambda done, _: show(before + done, max(len(asked.paths), before + done)),
        )  # fmt: skip
        for block in found:
            journal.add(block)
    spent = max(time.perf_counter() - began, 1e-9)
    return journal, (len(journal.answers) - before) / spent


def _followed(lines: "list[Located]", many: Many, least: float) -> "list[Located]":
    """The answers with their neighbours heard, with as many matches as were asked for."""
    from evenplace.run.sequence import follow

    found, warning = follow(lines, many.walk.speed, many.walk.order, least)
    if warning:
        tell(warning)
    moved = sum(
        one.matches[:1] != other.matches[:1] for one, other in zip(found, lines, strict=True)
    )
    tell(f"the walk gives {moved:,} photos another place than they had alone")
    return [replace(line, matches=line.matches[: many.k]) for line in found]


def _print(
    lines: "list[Located]",
    rate: float,
    min_precision: float | None,
    least: float,
    learned: "Calibration | None",
) -> None:
    from evenplace.retrieval.calibration import find_shift

    rows = [[Path(line.photo).name, *_cells(line)] for line in lines[:SHOWN]]
    print_table(("photo", "where", "give or take", "confidence", "like"), rows, most=WIDE)
    if len(lines) > SHOWN:
        say(f"… and {len(lines) - SHOWN:,} more; --out FILE keeps all")
    _say_silence(lines, min_precision, least)
    say(_summary(lines, rate))
    alike = [line.matches[0].similarity for line in lines if line.matches]
    if learned and (shifted := find_shift(alike, learned.likeness)):
        tell(f"note: {shifted}")


def _cells(line: "Located") -> list[str]:
    from evenplace.photos.geodesy import say_spot

    sure, spot = f"{line.confidence:.2f}" if line.matches else "", line.spot
    if not line.answered or spot is None:
        return [line.status, "", sure, ""]
    where = say_spot(spot.east, spot.north, spot.latitude, spot.longitude)
    return [where, f"{spot.major:.0f} m", sure, Path(line.matches[0].path).name]


def _say_silence(lines: "list[Located]", min_precision: float | None, least: float) -> None:
    """Why photos have no answer, each reason once: the files have every photo's own."""
    from evenplace.retrieval.answers import say_bar

    silent = [line for line in reversed(lines) if line.reason]
    unsure = [bool(line.matches) and line.confidence < least for line in silent]
    if min_precision is not None and any(unsure):
        surest = max(line.confidence for line in compress(silent, unsure))
        say(f"no answer where it is not sure enough: {say_bar(min_precision, least, surest)}")
    others = [line for line, short in zip(silent, unsure, strict=True) if not short]
    for line in {line.status: line for line in others}.values():
        say(f"{line.status}, {Path(line.photo).name} for example: {line.reason}")


def _summary(lines: "list[Located]", rate: float) -> str:
    """How many were answered, how surely, and what own positions say to it."""
    from evenplace.report.answers import own_gps_gap

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


def _say_tagged(tagged: "Tagged") -> None:
    """How many positions were written, and how many photos were left as they were, and why."""
    said = f"positions written: {len(tagged.written):,}"
    if tagged.written:
        said += f"; listed in {tagged.listed}, undone by --undo {tagged.listed}"
    say(said)
    for reason, count in tagged.left.most_common():
        say(f"left as they were: {count:,} {reason}")


def undo_positions(listed: Path) -> None:
    """Take back what was written, and refuse at the end if some of it could not be."""
    from evenplace.run.geotagging import undo

    undone, changed = undo(listed)
    say(
        f"undone: {undone:,} of {listed}{'' if undone or changed else '; nothing was left to undo'}"
    )
    if changed:
        raise RunError(
            f"{len(changed):,} files were changed after they were written and stay as they are, "
            f"for example {changed[0]}; look at them yourself"
        )
