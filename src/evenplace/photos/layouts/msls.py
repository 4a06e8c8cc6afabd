"""Mapillary Street-Level Sequences: <city>/{database,query} with four tables that go row by row.

    raw.csv            key, lon, lat, ca (compass), captured_at, pano
    postprocessed.csv  key, easting, northing, unique_cluster, control_panel, night, view_direction
    seq_info.csv       key, sequence_key, frame_number
    subtask_index.csv  all, s2w, w2s, o2n, n2o, d2n, n2d

Metres are of each city's own UTM zone: cities of different zones never meet in a radius search,
because a photo carries its zone.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from evenplace.errors import PhotoError, unknown_name
from evenplace.photos.gather import gather
from evenplace.photos.geodesy import zone_of
from evenplace.photos.layouts.cells import numbers, times
from evenplace.photos.layouts.tables import load_table
from evenplace.photos.table import Photos, join_photos

PARTS = ("database", "query")
SUBTASKS = ("all", "s2w", "w2s", "o2n", "n2o", "d2n", "n2d")
TABLES = ("raw", "postprocessed", "seq_info", "subtask_index")


def recognises(path: Path) -> bool:
    """Whether there is a seq_info.csv where MSLS has one."""
    return path.is_dir() and next(_shelves(path), None) is not None


def read(
    path: Path,
    *,
    cities: Sequence[str] | str | None = None,
    part: str | None = None,
    subtask: str | None = "all",
    panoramas: bool = False,
) -> Photos:
    """Read MSLS from its root, train_val, a city, or one folder of a city.

    Both parts are read unless `part` names one; panoramas are skipped unless asked for; photos
    outside the subtask are left out, as in the official evaluation; None keeps them all.
    """
    if part is not None and part not in PARTS:
        raise unknown_name("part of MSLS", part, PARTS)
    if subtask is not None and subtask not in SUBTASKS:
        raise unknown_name("subtask of MSLS", subtask, SUBTASKS)
    wanted = [cities] if isinstance(cities, str) else cities
    shelves = sorted(_shelves(path), key=lambda shelf: (shelf.parent.name, shelf.name))
    present = {shelf.parent.name for shelf in shelves}
    for city in wanted or ():
        if city not in present:
            raise unknown_name("city of MSLS here", city, present)
    chosen = [
        shelf
        for shelf in shelves
        if part in (None, shelf.name) and (wanted is None or shelf.parent.name in wanted)
    ]
    if not chosen:
        raise PhotoError(f"{path} holds no {part or 'city'} of MSLS; it has {sorted(present)}")
    return join_photos([_read_shelf(shelf, subtask, panoramas) for shelf in chosen])


def _shelves(path: Path) -> Iterator[Path]:
    """The folders of photos with their tables: CITY/database and CITY/query."""
    for depth in ("seq_info.csv", "*/seq_info.csv", "*/*/seq_info.csv", "*/*/*/seq_info.csv"):
        found = [file.parent.resolve() for file in path.glob(depth)]
        yield from (one for one in found if one.name in PARTS)
        if found:
            return


def _read_shelf(shelf: Path, subtask: str | None, panoramas: bool) -> Photos:
    tables = {name: _load(shelf / f"{name}.csv") for name in TABLES}
    lengths = {name: len(table) for name, table in tables.items()}
    if len(set(lengths.values())) > 1:
        raise PhotoError(
            f"the tables of {shelf} differ in length ({lengths}) and go row by row; "
            "download them again"
        )
    keys = tables["raw"].column("key").to_pylist()
    columns = _columns(tables, shelf)
    columns["path"] = [str(shelf / "images" / f"{key}.jpg") for key in keys]
    return gather(columns, reasons=_reasons(tables, shelf, subtask, panoramas), where=shelf)


def _load(file: Path) -> pa.Table:
    if not file.is_file():
        raise PhotoError(
            f"{file} is missing (the test cities of MSLS come without positions); "
            "read train_val, or add the file"
        )
    return load_table(file, text=("key", "sequence_key", "captured_at", "view_direction"))


def _columns(tables: dict[str, pa.Table], shelf: Path) -> dict[str, Any]:
    raw, processed, sequence = tables["raw"], tables["postprocessed"], tables["seq_info"]
    lat, lon = numbers(raw.column("lat")), numbers(raw.column("lon"))
    count = len(raw)
    return {
        "east": numbers(processed.column("easting")),
        "north": numbers(processed.column("northing")),
        "zone": zone_of(lat, lon),
        "heading": numbers(raw.column("ca")),
        "time": times(raw.column("captured_at")),
        "city": pa.array([shelf.parent.name] * count),
        "part": pa.array([shelf.name] * count),
        "latitude": lat,
        "longitude": lon,
        "night": processed.column("night").cast(pa.bool_()).combine_chunks(),
        "view": processed.column("view_direction").combine_chunks(),
        "cluster": processed.column("unique_cluster").combine_chunks(),
        "sequence": sequence.column("sequence_key").combine_chunks(),
        "frame": sequence.column("frame_number").combine_chunks(),
    }


def _reasons(
    tables: dict[str, pa.Table], shelf: Path, subtask: str | None, panoramas: bool
) -> dict[int, str]:
    reasons: dict[int, str] = {}
    images = shelf / "images"
    present = {one.name for one in images.iterdir()} if images.is_dir() else set()
    inside = tables["subtask_index"].column(subtask).to_pylist() if subtask else None
    flat = tables["raw"].column("pano").to_pylist()
    for row, key in enumerate(tables["raw"].column("key").to_pylist()):
        if f"{key}.jpg" not in present:
            reasons[row] = "its file is not there"
        elif flat[row] and not panoramas:
            reasons[row] = "it is a panorama"
        elif inside is not None and not inside[row]:
            reasons[row] = f"it is not in the subtask {subtask}"
    return reasons
