"""Towns of different seeds, drawn small and set down in cities of several UTM zones.

`draw_city` takes about 0.07 s a photo, so a town is drawn with few and each drawn photo gives
several views (a crop, another light, half a metre on): four of a busy cell, one of a quiet one.
"""

import hashlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance

import evenplace.city
from evenplace.city import draw_city
from evenplace.photos import read_photos
from evenplace.photos.geodesy import to_degrees, to_metres

DRAWN, ASKED, SIZE = 24, 8, 96
VIEWS = (4, 2, 1)  # of a drawn photo, in the busiest third of the cells, the middle, the rest
CELL = 20.0


@dataclass(frozen=True)
class City:
    """A town's seed and the corner of the map it is set down at."""

    name: str
    seed: int
    latitude: float
    longitude: float


CITIES = {
    city.name: city
    for city in (
        City("sf", 1, 37.77, -122.42),  # zone 10 S, as in SF-XL and MSLS
        City("boston", 2, 42.36, -71.06),  # 19 T
        City("cph", 3, 55.68, 12.57),  # 33 U, MSLS
        City("london", 4, 51.51, -0.13),  # 30 U
        City("melbourne", 5, -37.81, 144.96),  # 55 H, south of the equator
        City("pittsburgh", 6, 40.44, -80.0),  # 17 T
    )
}


def code_digest() -> str:
    """Changes when a town would look different: what a folder of drawn towns is named by."""
    files = [Path(__file__), *sorted(Path(evenplace.city.__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


@dataclass(frozen=True)
class Shot:
    """One picture of a town, where it stands in its city's UTM zone."""

    file: Path
    city: str
    part: str  # "database" or "query"
    number: int
    east: float
    north: float
    zone: int
    latitude: float
    longitude: float
    heading: float
    month: str  # 201409
    note: str  # day, dusk, night, snow
    sequence: str  # the pass it was taken in
    place: int  # number of its 20 m cell, the same for database and queries


def town_shots(city: City, cache: Path) -> list[Shot]:
    """The pictures of a city, database first; drawn the first time `cache` is asked for them."""
    folder = cache / city.name
    if not folder.is_dir():
        _draw(city, folder)
    corner = _corner(city)
    return [*_shots(city, folder, "database", corner), *_shots(city, folder, "query", corner)]


def _draw(city: City, folder: Path) -> None:
    """Draw beside `folder` and rename: another test process may be drawing the same town."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    drawing = Path(tempfile.mkdtemp(dir=folder.parent)) / "town"
    draw_city(drawing, photos=DRAWN, queries=ASKED, seed=city.seed, size=SIZE, workers=1)
    _add_views(drawing / "database", np.random.default_rng(city.seed))
    try:
        drawing.rename(folder)
    except OSError:  # the other one was quicker
        shutil.rmtree(drawing)
    drawing.parent.rmdir()


def _add_views(database: Path, dice: np.random.Generator) -> None:
    files = sorted(database.iterdir())
    cells = [
        tuple(int(float(part) // CELL) for part in file.name.split("@")[1:3]) for file in files
    ]
    ranks = {cell: rank for rank, (cell, _) in enumerate(Counter(cells).most_common())}
    for file, cell in zip(files, cells, strict=True):
        _, east, north, zone, letter, lat, lon, pano, *rest = file.name.split("@")
        for view in range(1, VIEWS[3 * ranks[cell] // len(ranks)]):
            x, y = float(east) // CELL * CELL, float(north) // CELL * CELL
            moved = np.array([float(east), float(north)]) + dice.uniform(-0.5, 0.5, 2)
            e, n = np.clip(moved, (x + 0.01, y + 0.01), (x + CELL - 0.01, y + CELL - 0.01))
            name = (f"{e:010.2f}", f"{n:010.2f}", zone, letter, lat, lon, f"{pano}v{view}", *rest)
            _view(file, dice).save(database / ("@" + "@".join(name)), quality=88)


def _view(file: Path, dice: np.random.Generator) -> Image.Image:
    with Image.open(file) as image:
        left, top = dice.integers(0, 9, 2)
        crop = image.crop((int(left), int(top), int(left) + SIZE - 8, int(top) + SIZE - 8))
        return ImageEnhance.Brightness(crop).enhance(float(dice.uniform(0.85, 1.15)))


def _corner(city: City) -> tuple[float, float, int]:
    """Metres to add to the town's, in whole cells, so that its cells stay cells; and the zone."""
    metres = to_metres([city.latitude], [city.longitude])
    east, north = float(metres.east[0]), float(metres.north[0])
    return (east - 500_000) // CELL * CELL, (north - 55_000) // CELL * CELL, int(metres.zone[0])


def _shots(city: City, folder: Path, part: str, corner: tuple[float, float, int]) -> Iterator[Shot]:
    photos = read_photos(folder / ("queries" if part == "query" else part))
    east, north = photos.east + corner[0], photos.north + corner[1]
    lat, lon = to_degrees(east, north, corner[2])
    places = (east // CELL % 300) * 300 + north // CELL % 300
    for number, place in enumerate(places.astype(int)):
        *_, pano, _, heading, _, _, _, month, note, _ = Path(photos.paths[number]).name.split("@")
        yield Shot(
            file=Path(photos.paths[number]), city=city.name, part=part, number=number,
            east=round(float(east[number]), 2), north=round(float(north[number]), 2),
            zone=corner[2], latitude=round(float(lat[number]), 7),
            longitude=round(float(lon[number]), 7), heading=float(heading), month=month,
            note=note, sequence=pano.partition("n")[0], place=int(place),
        )  # fmt: skip


def link(source: Path, target: Path) -> Path:
    """The same picture under another name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    os.link(source, target)
    return target
