"""Which photos a verb reads: the options that every one of them has."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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


def read(
    path: Path, layout: str | None, city: list[str] | None, zone: int | None, bbox: str | None
) -> "Photos":
    """Read photos as the options say."""
    from evenplace.photos import read_photos

    return read_photos(path, layout, **chosen(city, zone, bbox))


def chosen(city: list[str] | None, zone: int | None, bbox: str | None) -> dict[str, Any]:
    """The options as `read_photos` takes them."""
    box = None
    if bbox is not None:
        try:
            box = [float(part) for part in bbox.split(",")]
        except ValueError:
            raise SettingError(f"--bbox {bbox!r} is not west,south,east,north in degrees") from None
    return {"city": city or None, "zone": zone, "bbox": box}
