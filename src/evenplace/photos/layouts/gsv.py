"""GSV-Cities: Dataframes/<City>.csv, and pictures whose names are made from its columns.

    Images/<city>/<city>_<place:07d>_<year:04d>_<month:02d>_<heading:03d>_<lat>_<lon>_<pano>.jpg

Latitude and longitude stand in the name exactly as in the table, so they are read as text.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from evenplace.errors import PhotoError, unknown_name
from evenplace.photos.gather import gather
from evenplace.photos.geodesy import to_metres, zone_of
from evenplace.photos.layouts.cells import numbers
from evenplace.photos.layouts.tables import load_table
from evenplace.photos.pictures import SUFFIXES
from evenplace.photos.table import Photos, join_photos

PLACES_A_CITY = 100_000  # what makes a place's number unique among cities


def recognises(path: Path) -> bool:
    """Whether there are Dataframes and Images."""
    return (path / "Dataframes").is_dir() and (path / "Images").is_dir()


def read(path: Path, *, cities: Sequence[str] | str | None = None) -> Photos:
    """Read the cities named, or all; `place` is the data set's own place, unique among them."""
    frames = {file.stem: file for file in sorted((path / "Dataframes").glob("*.csv"))}
    if not frames:
        raise PhotoError(f"{path / 'Dataframes'} holds no tables (*.csv); check the download")
    wanted = [cities] if isinstance(cities, str) else list(cities or frames)
    for city in wanted:
        if city not in frames:
            raise unknown_name("city of GSV-Cities here", city, frames)
    return join_photos([_read_city(frames[city], list(frames).index(city)) for city in wanted])


def _read_city(file: Path, number: int) -> Photos:
    table = load_table(file, text=("lat", "lon", "panoid", "city_id"))
    rows = {name: table.column(name).to_pylist() for name in table.column_names}
    names = [
        f"{city}_{place:07d}_{year:04d}_{month:02d}_{north:03d}_{lat}_{lon}_{pano}"
        for city, place, year, month, north, lat, lon, pano in zip(
            rows["city_id"], rows["place_id"], rows["year"], rows["month"], rows["northdeg"],
            rows["lat"], rows["lon"], rows["panoid"], strict=True,
        )
    ]  # fmt: skip
    folder = file.parent.parent / "Images" / file.stem
    present = {one.stem: one for one in folder.iterdir()} if folder.is_dir() else {}
    present = {stem: one for stem, one in present.items() if one.suffix.lower() in SUFFIXES}
    degrees = numbers(table.column("lat")), numbers(table.column("lon"))
    zones, counts = np.unique(zone_of(*degrees), return_counts=True)
    metres = to_metres(*degrees, int(zones[counts.argmax()]))  # London lies in two zones
    place = numbers(table.column("place_id")).astype(np.int64) % PLACES_A_CITY
    months = [
        f"{year:04d}-{month:02d}" for year, month in zip(rows["year"], rows["month"], strict=True)
    ]
    columns = {
        "path": [str(present.get(name, folder / f"{name}.jpg")) for name in names],
        "east": metres.east,
        "north": metres.north,
        "zone": metres.zone,
        "heading": numbers(table.column("northdeg")),
        "time": np.array(months, "datetime64[M]"),
        "city": pa.array([file.stem] * len(table)),
        "place": place + number * PLACES_A_CITY,
        "pano": table.column("panoid").combine_chunks(),
    }
    gone = [row for row, name in enumerate(names) if name not in present]
    return gather(columns, reasons=dict.fromkeys(gone, "its file is not there"), where=file)
