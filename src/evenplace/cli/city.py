"""evenplace city: draw a town to try everything on."""

from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import bars, say


def city(
    out: Annotated[Path, typer.Argument(help="folder to make; gets database/ and queries/")],
    photos: Annotated[int, typer.Option(help="database photos")] = 6000,
    queries: Annotated[int, typer.Option(help="photos of another day to ask with")] = 600,
    seed: Annotated[int, typer.Option(help="another seed, another town")] = 0,
    size: Annotated[int, typer.Option(help="pixels a side")] = 224,
) -> None:
    """Draw a town with a long-tailed survey, as JPEGs with SF-XL names."""
    from evenplace.city import draw_city

    with bars() as announce:
        drawn = draw_city(
            out, photos=photos, queries=queries, seed=seed, size=size, progress=announce("drawing")
        )
    say(
        f"{out}: {drawn.photos:,} photos in {drawn.places:,} places, the busiest with "
        f"{drawn.imbalance:.0f} times the photos of the quietest, and {drawn.queries:,} queries; "
        f"{drawn.seconds:.0f} s; next: evenplace train {out}/database --run runs/town"
    )
