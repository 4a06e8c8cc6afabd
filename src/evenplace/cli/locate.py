"""evenplace locate: where was this photo taken?"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenplace.cli.console import console, print_table

if TYPE_CHECKING:
    from evenplace.retrieval import Answer


def locate(
    run: Annotated[Path, typer.Argument(help="run folder with an index")],
    photo: Annotated[Path, typer.Argument(help="the photo")],
    k: Annotated[int, typer.Option("-k", help="how many answers")] = 5,
    min_precision: Annotated[
        float | None,
        typer.Option(help="answer only when this share of such answers is right, as in 0.95"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="for machines: the hits")] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="with --json: places, position and confidence too")
    ] = False,
) -> None:
    """Say where a photo was taken, from the run's database, or that it cannot be said."""
    from evenplace.run.run import open_engine

    answer = open_engine(run, min_precision=min_precision).answer(str(photo), k)
    if as_json:
        hits = [asdict(hit) for hit in answer.hits]
        print(json.dumps(asdict(answer) if whole else hits))
        return
    _say(answer)
    print_table(
        ("photo", "east", "north", "place", "similarity"),
        [
            [hit.path, f"{hit.position[0]:.1f}", f"{hit.position[1]:.1f}", str(hit.place),
             f"{hit.similarity:.3f}"]
            for hit in answer.hits
        ],
    )  # fmt: skip


def _say(answer: "Answer") -> None:
    if answer.abstains:
        console.print(f"no answer: {answer.reason}; the best guesses are", markup=False)
        return
    where, shape = answer.position, answer.position.ellipse
    console.print(
        f"east {where.east:.1f}, north {where.north:.1f}; confidence {answer.confidence:.2f}; "
        f"if right, 95 % within {shape.major:.0f} × {shape.minor:.0f} m, "
        f"longer towards {shape.bearing:.0f}°",
        markup=False,
        soft_wrap=True,
    )
