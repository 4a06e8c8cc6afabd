"""Which photos a verb reads: the options that every one of them has."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenplace.cli.console import errors
from evenplace.errors import SettingError

if TYPE_CHECKING:
    from evenplace.photos import Photos

Layout = Annotated[str | None, typer.Option(help="layout of the photos; found by looking")]
City = Annotated[
    list[str] | None,
    typer.Option("--city", help="keep this city, as often as needed; all keeps strays too"),
]
Zone = Annotated[int | None, typer.Option(help="keep one UTM zone, negative in the south")]
Box = Annotated[str | None, typer.Option("--bbox", help="keep west,south,east,north in degrees")]

Column = Annotated[
    list[str] | None,
    typer.Option("--column", help="a table's own name: latitude=gps_lat, as often as needed"),
]


def read(
    path: Path,
    layout: str | None,
    city: list[str] | None,
    zone: int | None,
    bbox: str | None,
    column: list[str] | None = None,
) -> "Photos":
    """Read photos as the options say; columns that were guessed are said in a line."""
    from evenplace.photos import read_photos

    found = read_photos(path, layout, **chosen(city, zone, bbox, column))
    say_guessed(path, layout, column)
    return found


def read_given(path: Path, layout: str | None, column: list[str] | None) -> "Photos":
    """Read the photos of descriptors that others computed, row by row."""
    from evenplace.photos.columns import parse_columns
    from evenplace.photos.read import read_rows

    found = read_rows(path, layout, **parse_columns(column or []))
    say_guessed(path, layout, column)
    return found


def say_guessed(path: Path, layout: str | None, column: list[str] | None) -> None:
    """Say on stderr which columns of a table were taken for what, where names leave a doubt."""
    from evenplace.photos.columns import parse_columns
    from evenplace.photos.layouts.tables import say_read
    from evenplace.photos.read import find_layout

    told = parse_columns(column or [])
    if (layout or ("table" if told else find_layout(path))) == "table" and (
        said := say_read(path, told)
    ):
        errors.print(said, markup=False, soft_wrap=True)


def chosen(
    city: list[str] | None, zone: int | None, bbox: str | None, column: list[str] | None = None
) -> dict[str, Any]:
    """The options as `read_photos` takes them."""
    from evenplace.photos.columns import parse_columns

    box = None
    if bbox is not None:
        try:
            box = [float(part) for part in bbox.split(",")]
        except ValueError:
            raise SettingError(f"--bbox {bbox!r} is not west,south,east,north in degrees") from None
    return {"city": city or None, "zone": zone, "bbox": box} | parse_columns(column or [])
