"""evenplace locate: where was this photo taken?"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenplace.cli.console import print_table, say
from evenplace.cli.locate_many import Many, Output, Tags, Walk, locate_many, undo_positions
from evenplace.cli.options import Batched, Centre, IndexedRun, Promise, Verify, grouped
from evenplace.errors import SettingError
from evenplace.photos.cities import zone_name

if TYPE_CHECKING:
    from evenplace.run.run import Run


@grouped
def locate(
    run: IndexedRun,
    photos: Annotated[
        list[str] | None,
        typer.Argument(help="a photo, or many: folders, patterns, lists (.txt, .csv), videos"),
    ] = None,
    *,
    descriptor: Annotated[
        Path | None, typer.Option(help="instead of a photo its descriptor, a .npy of one row")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="how many answers")] = 5,
    verify: Verify = None,
    centre: Centre = None,
    promise: Promise,
    output: Output,
    every: Annotated[float, typer.Option(help="seconds between the frames of a video")] = 1.0,
    walk: Walk,
    tags: Tags,
    undo: Annotated[
        Path | None, typer.Option(help="take back what a list of written positions names")
    ] = None,
    how: Batched,
) -> None:
    """Say where photos were taken, from the run's database, or that it cannot be said."""
    from evenplace.photos.asked import find_asked
    from evenplace.run.run import Run

    if undo is not None:
        undo_positions(undo)
        return
    promise.check()
    tagging = tags.how(output.replace, promise.min_precision)
    more = bool(output.out or tagging or walk.sequence)
    _check(photos, descriptor, more)
    opened = Run.open(run, **how.how(quiet=output.as_json))
    asked = find_asked(photos or [])
    alone = len(asked.paths) == 1 and [*asked.paths] == photos and not asked.videos
    ways = asdict(promise) | {"verify": verify}
    if descriptor is not None or (alone and not more):
        if centre:
            raise SettingError("--centre is for photos that are asked together; leave it out")
        _locate_one(opened, (photos or [""])[0], descriptor, k, ways, output.as_json)
        return
    many = Many(k=k, output=output, every=every, tagging=tagging, walk=walk, centre=centre, **ways)
    locate_many(opened, asked, many)


def _check(photos: list[str] | None, descriptor: Path | None, more: bool) -> None:
    """Refuse what is neither photos nor a descriptor, and of a descriptor what photos are for."""
    if bool(photos) == (descriptor is not None):
        raise SettingError("locate takes photos or --descriptor FILE, one of them")
    if descriptor is not None and more:
        raise SettingError(
            "--out, --sequence and written positions are of photos; a --descriptor's answer is "
            "printed: leave them out"
        )


def _locate_one(
    opened: "Run",
    photo: str,
    descriptor: Path | None,
    k: int,
    ways: dict[str, Any],
    as_json: bool,
) -> None:
    from evenplace.retrieval import open_index
    from evenplace.retrieval.answer_json import answer_json, index_name
    from evenplace.retrieval.descriptor_files import read_descriptor

    given = photo if descriptor is None else read_descriptor(descriptor)
    answer = opened.locate(given, k, **ways)
    index = open_index(opened.folder / "index")
    plain = answer_json(index, answer, index_name(index.folder))
    if as_json:
        print(json.dumps(plain))
        return
    if answer.abstains:
        say(f"no answer: {answer.reason}; the best guesses are")
    else:
        shape = answer.position.ellipse
        say(
            f"{_place(plain['position'])}; confidence {answer.confidence:.2f}: {answer.meaning}; "
            f"if right, 95 % within {shape.major:.0f} × {shape.minor:.0f} m, longer towards "
            f"{shape.bearing:.0f}°"
        )
    zones = [hit["zone"] for hit in plain["hits"]]
    print_table(
        ("photo", "east", "north", "place", "similarity", "matches"),
        [
            [hit.path, f"{zone}{hit.position[0]:.1f}", f"{hit.position[1]:.1f}", str(hit.place),
             f"{hit.similarity:.3f}", "" if hit.inliers is None else str(hit.inliers)]
            for hit, zone in zip(answer.hits, _zone_marks(zones), strict=True)
        ],
    )  # fmt: skip
    if answer.looked:
        say(f"candidates looked at a second time: {answer.looked}")


def _zone_marks(zones: list[int]) -> list[str]:
    """What stands before metres of several zones; nothing where all are of one."""
    return [f"{zone_name(zone)} " if len(set(zones)) > 1 else "" for zone in zones]


def _place(where: dict[str, Any]) -> str:
    """A position as people use it: degrees if there is a globe, and metres with the zone."""
    from evenplace.photos.geodesy import say_spot

    east, north = where["east"], where["north"]
    metres = say_spot(east, north)
    if not where["zone"]:
        return metres
    globe = say_spot(east, north, where["latitude"], where["longitude"])
    return f"{globe} (UTM {zone_name(where['zone'])} {metres})"
