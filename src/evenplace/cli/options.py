"""Options that several verbs have: the same names, the same meaning, declared once.

A verb takes a group of them as one argument; `@grouped` puts its options on the command line.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenplace.cli.console import tell
from evenplace.errors import SettingError

if TYPE_CHECKING:
    from evenplace.photos import Photos

IndexedRun = Annotated[Path, typer.Argument(help="run folder with an index")]
Device = Annotated[str, typer.Option("--device", help="auto, cuda, mps or cpu")]
Verify = Annotated[
    int | None,
    typer.Option("--verify", help="candidates to look at a second time; 0 for none"),
]
Centre = Annotated[
    bool | None,
    typer.Option(
        "--centre/--no-centre",
        help="take out what sets all photos asked apart from the database: season, light, camera",
    ),
]
QueryDescriptors = Annotated[
    Path | None,
    typer.Option("--descriptors", help="the queries' descriptors, computed elsewhere: .npy or .h5"),
]
Radius = Annotated[float, typer.Option(help="metres within which an answer is right")]
Heading = Annotated[
    float | None, typer.Option(help="degrees within which it must look the same way")
]
AllowPartial = Annotated[bool, typer.Option(help="accept a data set that is not complete")]
Tiles = Annotated[
    str | None, typer.Option(help="a base map, as in https://tiles.example/{z}/{x}/{y}.png")
]
ForAll = Annotated[list[str] | None, typer.Option("--set", help="key=value for all systems")]
City = Annotated[
    list[str] | None,
    typer.Option("--city", help="keep this city, as often as needed; all keeps strays too"),
]
Zone = Annotated[int | None, typer.Option(help="keep one UTM zone, negative in the south")]
Box = Annotated[str | None, typer.Option("--bbox", help="keep west,south,east,north in degrees")]


def grouped(verb: Callable[..., None]) -> Callable[..., None]:
    """Take every argument that is a dataclass as options, one for each of its fields."""
    signature = inspect.signature(verb, eval_str=True)
    groups: dict[str, Any] = {
        name: one.annotation
        for name, one in signature.parameters.items()
        if is_dataclass(one.annotation)
    }

    @wraps(verb)
    def typed(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        verb(**given)

    options: list[inspect.Parameter] = []
    for name, one in signature.parameters.items():
        inner = inspect.signature(groups[name], eval_str=True).parameters if name in groups else {}
        options += inner.values() or [one]
    named = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in options]
    typed.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
    return typed


@dataclass(frozen=True)
class Which:
    """Which photos are read, and how."""

    layout: Annotated[str | None, typer.Option(help="layout of the photos; found by looking")] = (
        None
    )
    city: City = None
    zone: Zone = None
    bbox: Box = None
    column: Annotated[
        list[str] | None,
        typer.Option("--column", help="a table's own name: latitude=gps_lat, as often as needed"),
    ] = None
    offset: Annotated[
        float | None,
        typer.Option(help="seconds that the camera's clock was ahead of a track's, which is UTC"),
    ] = None

    def read(self, *paths: Path) -> "Photos":
        """Read the photos of all paths; columns that were guessed are said in a line."""
        from evenplace.photos import join_photos, read_photos

        _refuse_twice(paths)
        parts = []
        for path in paths:
            parts.append(read_photos(path, self.layout, **self.chosen()))
            self.say_guessed(path)
        return parts[0] if len(parts) == 1 else join_photos(parts)

    def read_given(self, path: Path) -> "Photos":
        """Read the photos of descriptors that others computed, row by row."""
        from evenplace.photos.read import read_rows

        found = read_rows(path, self.layout, **self.chosen())
        self.say_guessed(path)
        return found

    def say_guessed(self, path: Path) -> None:
        """Say on stderr which columns were taken for what, where their names leave a doubt."""
        from evenplace.photos.layouts.tables import say_read
        from evenplace.photos.read import find_layout

        told = self._columns()
        layout = self.layout or find_layout(path, told)
        if layout == "table" and (said := say_read(path, told)):
            tell(said)

    def chosen(self) -> dict[str, Any]:
        """The options as `read_photos` takes them."""
        told = {"city": self.city or None, "zone": self.zone, "bbox": box(self.bbox)}
        return told | {"offset": self.offset} | self._columns()

    def _columns(self) -> dict[str, Any]:
        from evenplace.photos.layouts.tables import parse_columns

        return parse_columns(self.column or [])


def _refuse_twice(paths: Sequence[Path]) -> None:
    """Photos that are read twice would count twice."""
    known: set[Path] = set()
    for path in sorted((path.resolve() for path in paths), key=lambda path: len(path.parts)):
        if held := known & {path, *path.parents}:
            within = "" if path in held else f", itself and within {held.pop()}"
            raise SettingError(f"{path} was given twice{within}; name each folder once")
        known.add(path)


def only(paths: list[Path], what: str) -> Path:
    """The one path that can be meant; what: says which option takes no more."""
    if len(paths) > 1:
        raise SettingError(f"{what}, and {len(paths)} were given; leave all but one out")
    return paths[0]


def box(text: str | None) -> list[float] | None:
    """Four numbers of --bbox."""
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        raise SettingError(f"--bbox {text!r} is not west,south,east,north in degrees") from None


@dataclass(frozen=True)
class Describing:
    """What describes photos."""

    device: Device = "auto"
    engine: Annotated[
        str, typer.Option(help="runs the network: auto, onnxruntime, torch or torch-compile")
    ] = "auto"
    precision: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16")] = "auto"

    def how(self, *, quiet: bool = False) -> dict[str, Any]:
        """What a `Describer` takes; it says on stderr what was chosen, unless quiet."""
        return asdict(self) | ({} if quiet else {"tell": tell})


@dataclass(frozen=True)
class Batched(Describing):
    """The same, so many photos at a time."""

    batch: Annotated[
        int | None, typer.Option(help="photos at a time; what suits the device if left out")
    ] = None


@dataclass(frozen=True)
class Promise:
    """How right answers must be, and what to do where none can say."""

    min_precision: Annotated[
        float | None,
        typer.Option(
            help="give only answers that are right so often, each and all together, as 0.95"
        ),
    ] = None
    insist: Annotated[
        bool,
        typer.Option("--insist", help="ask for a precision of an uncalibrated run all the same"),
    ] = False

    def check(self) -> None:
        """Refuse what is no share of answers before anything is asked."""
        from evenplace.retrieval.calibration import check_precision

        if self.min_precision is not None:
            check_precision(self.min_precision)
