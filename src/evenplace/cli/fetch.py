"""evenplace fetch: street imagery that is free, with its licence kept."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import bars, say
from evenplace.cli.options import box
from evenplace.errors import SettingError

Box = Annotated[str, typer.Option("--bbox", help="west,south,east,north in degrees")]
Out = Annotated[Path, typer.Option(help="folder of the photos and their index.csv")]
Most = Annotated[int, typer.Option(help="photos in the folder at most")]
Rate = Annotated[float, typer.Option(help="requests a second at most")]


def panoramax(
    bbox: Box,
    out: Out,
    most: Most = 1000,
    rate: Rate = 5.0,
    api: Annotated[str, typer.Option(help="an instance")] = "https://api.panoramax.xyz",
) -> None:
    """Fetch the photos of a box from Panoramax; the same command goes on where it stopped."""
    from evenplace.photos.fetch import fetch_panoramax

    _fetch(out, partial(fetch_panoramax, box(bbox) or [], out, api=api, most=most, rate=rate))


def mapillary(
    bbox: Box,
    out: Out,
    token_file: Annotated[Path, typer.Option(help="file with a client token of Mapillary's")],
    most: Most = 1000,
    rate: Rate = 5.0,
    api: Annotated[str, typer.Option(help="the service")] = "https://graph.mapillary.com",
) -> None:
    """Fetch the photos of a box from Mapillary; the same command goes on where it stopped."""
    from evenplace.photos.fetch import fetch_mapillary

    token = token_file.read_text(encoding="utf-8").strip() if token_file.is_file() else ""
    if not token:
        raise SettingError(f"{token_file} holds no token; write Mapillary's client token into it")
    asked = box(bbox) or []
    _fetch(out, partial(fetch_mapillary, asked, out, token, api=api, most=most, rate=rate))


def _fetch(out: Path, fetch: Callable[..., int]) -> None:
    with bars() as announce:
        count = fetch(tell=announce("fetching"))
    say(
        f"{count:,} photos in {out}, with their producers and licences in index.csv; next: "
        f"evenplace photos check {out}"
    )
