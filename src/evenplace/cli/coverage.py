"""evenplace coverage: where would the next photos help most?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenplace.cli.console import bars, print_table, say, tell

if TYPE_CHECKING:  # torch loads when the verb runs, not when help is asked for
    from evenplace.places.wanted import HeldOut
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
    from evenplace.places.wanted import check_most, find_wanted
    from evenplace.report.answers import check_out
    from evenplace.report.wanted import KINDS, wanted_row, write_wanted
    from evenplace.run.run import Run

    engine = Run.open(what).search() if (what / "recipe.toml").exists() else None
    photos = read_photos(what) if engine is None else engine.index.photos
    check_most(most)
    for file in out or []:  # refused before minutes of asking
        check_out(file, KINDS, photos.zones, replace)
    places = Grid().partition(photos) if engine is None else engine.index.places
    held = None if engine is None else _hold_out(engine)
    wanted = find_wanted(photos, places, most, held)
    rows = [wanted_row(one) for one in wanted[:20]]
    for row, one in zip(rows, wanted, strict=False):
        row[-1] += ", a gap by guess" if one.between else ""
    print_table(("where", "take", "has", "gain in 100", "look"), rows)
    if len(wanted) > 20:
        say(f"… and {len(wanted) - 20} more; --out FILE keeps all")
    for file in out or []:
        write_wanted(wanted, places, file)
        say(f"written: {file}")


def _hold_out(engine: "Search") -> "HeldOut | None":
    """Ask about some of the run's own photos, each left out, and say how that went."""
    from evenplace.run.leave_one_out import hold_out

    with bars() as announce:
        held = hold_out(engine, progress=announce("asking about its own photos"))
    if held is None:
        tell("none of its own photos can be opened; the list goes by their number")
        return None
    say(
        f"{len(held.right)} of its own photos asked about, each left out: "
        f"{100 * held.right.mean():.0f} % found within 25 m"
    )
    return held
