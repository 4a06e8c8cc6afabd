"""evenplace locate: where was this photo taken?"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import console, print_table


def locate(
    run: Annotated[Path, typer.Argument(help="run folder with an index")],
    photo: Annotated[Path, typer.Argument(help="the photo")],
    k: Annotated[int, typer.Option("-k", help="how many answers")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="for machines")] = False,
) -> None:
    """Say where a photo was taken, from the run's database."""
    from evenplace.run import open_engine

    hits = open_engine(run).locate(str(photo), k)
    if as_json:
        print(json.dumps([asdict(hit) for hit in hits]))
        return
    east, north = hits[0].position
    console.print(f"east {east:.1f}, north {north:.1f}; confidence {hits[0].confidence:.2f}")
    print_table(
        ("photo", "east", "north", "place", "distance"),
        [
            [hit.path, f"{hit.position[0]:.1f}", f"{hit.position[1]:.1f}", str(hit.place),
             f"{hit.distance:.3f}"]
            for hit in hits
        ],
    )  # fmt: skip
