"""evenplace coverage: where would the next photos help most?"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenplace.cli.console import bars, print_table, say

if TYPE_CHECKING:
    from evenplace.places.wanted import HeldOut, Wanted
    from evenplace.retrieval import Search


def coverage(
    what: Annotated[Path, typer.Argument(help="a run with an index, or photos")],
    most: Annotated[int, typer.Option(help="photos that you would take")] = 100,
    out: Annotated[
        list[Path] | None, typer.Option(help="also a file, as often as needed: .geojson .html")
    ] = None,
    replace: Annotated[bool, typer.Option(help="write over files that exist")] = False,
) -> None:
    """Say where new photos would help most: a ranked list, and a map of it.

    A run is asked about some of its own photos, each left out, so the list goes by what it gets
    wrong; of photos alone it goes by how many there are.
    """
    from evenplace.photos import read_photos
    from evenplace.places import Grid
    from evenplace.places.wanted import find_wanted
    from evenplace.report.wanted import check_list, write_wanted
    from evenplace.run.journal import check_free
    from evenplace.run.run import Run

    engine = Run.open(what).search() if (what / "recipe.toml").exists() else None
    photos = read_photos(what) if engine is None else engine.index.photos
    for file in out or []:  # refused before minutes of asking
        check_list(file, photos.zones)
        check_free(file, replace)
    places = Grid().partition(photos) if engine is None else engine.index.places
    held = None if engine is None else _asked(engine)
    wanted = find_wanted(photos, places, most, held)
    _print(wanted)
    for file in out or []:
        write_wanted(wanted, places, file)
        say(f"written: {file}")


def _asked(engine: "Search") -> "HeldOut | None":
    """What a run says of some of its own photos when each is left out."""
    from evenplace.run.held_out import hold_out

    with bars() as announce:
        held = hold_out(engine, progress=announce("asking about its own photos"))
    if held is not None:
        say(
            f"{len(held.right)} of its own photos asked about, each left out: "
            f"{100 * held.right.mean():.0f} % found within 25 m"
        )
    return held


def _print(wanted: "Sequence[Wanted]") -> None:
    from evenplace.report.wanted import say_sides, say_spot

    print_table(
        ("where", "take", "has", "gain in 100", "look"),
        [
            [say_spot(one), str(one.photos), str(one.have), f"+{one.gain}",
             say_sides(one) + (", a gap by guess" if one.between else "")]
            for one in wanted[:20]
        ],
    )  # fmt: skip
    if len(wanted) > 20:
        say(f"… and {len(wanted) - 20} more; --out FILE keeps all")
