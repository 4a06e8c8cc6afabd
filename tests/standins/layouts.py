"""The same towns as each data set of the field lays its photos out; see the package's page."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image, ImageEnhance, ImageOps

from evenplace.photos.layouts.nordland import METRES_A_FRAME
from tests.photos.drawn import table
from tests.standins.towns import Shot, link

Shots = Sequence[Shot]
MSLS_TABLES = {
    "raw": ("", "key", "lon", "lat", "ca", "captured_at", "pano"),
    "postprocessed": ("", "key", "easting", "northing", "unique_cluster", "control_panel",
                      "night", "view_direction"),
    "seq_info": ("", "key", "sequence_key", "frame_number"),
    "subtask_index": ("", "all", "s2w", "w2s", "o2n", "n2o", "d2n", "n2d"),
}  # fmt: skip
GSV_COLUMNS = ("place_id", "year", "month", "northdeg", "city_id", "lat", "lon", "panoid")


def of(shots: Shots, part: str) -> list[Shot]:
    return [shot for shot in shots if shot.part == part]


def sfxl_name(shot: Shot, *, heading: bool = True, tile: str = "", note: str = "") -> str:
    """Fifteen fields; a phone's query has no heading."""
    letter = "CDEFGHJKLMNPQRSTUVWXX"[int(shot.latitude + 80) // 8]
    look = f"{shot.heading:03.0f}" if heading else ""
    return (
        f"@{shot.east:010.2f}@{shot.north:010.2f}@{abs(shot.zone)}@{letter}"
        f"@{shot.latitude:09.5f}@{shot.longitude:010.5f}@{shot.city}{shot.part[0]}{shot.number}"
        f"@{tile}@{look}@@@@{shot.month}@{note or shot.note}@.jpg"
    )


def sfxl(root: Path, shots: Shots) -> Path:
    database, queries = of(shots, "database"), of(shots, "query")
    for shot in database:
        for folder in ("raw/train/database", "processed/train", "processed/test/database"):
            link(shot.file, root / folder / f"{shot.place % 4}" / sfxl_name(shot))
        link(shot.file, root / "processed/val/database" / sfxl_name(shot))
    for shot in queries:
        link(shot.file, root / "processed/val/queries" / sfxl_name(shot))
        version = "queries_v1" if shot.number % 2 else "queries_v2"
        name = sfxl_name(shot, heading=version == "queries_v1")
        link(shot.file, root / "processed/test" / version / name)
    return root


def named(root: Path, shots: Shots) -> Path:
    """SF-XL names, a folder a city: photos that say where they were taken and nothing else."""
    for shot in shots:
        link(shot.file, root / shot.city / sfxl_name(shot))
    return root


def flat(root: Path, shots: Shots) -> Path:
    """SF-XL names in one folder."""
    for shot in shots:
        link(shot.file, root / sfxl_name(shot))
    return root


def pitts30k(root: Path, shots: Shots) -> Path:
    for shot in shots:
        step = round(shot.heading / 30) % 12 + 1
        name = sfxl_name(shot, heading=False, tile=f"{step - 1:02d}", note=f"pitch1_yaw{step}")
        part = "queries" if shot.part == "query" else "database"
        for split in ("train", "val", "test"):
            link(shot.file, root / "images" / split / part / name)
    return root


def nordland(root: Path, shots: Shots) -> Path:
    """The downloader's names; every summer frame is asked for in winter."""
    for frame, shot in enumerate(_line(shots)):
        name = f"@0@{frame * METRES_A_FRAME:.3f}@@@@@{frame}@@@@@@@@.jpg"
        link(shot.file, root / "images/test/database" / name)
        _winter(shot, root / "images/test/queries" / name)
    return root


def nordland_tenth(root: Path, shots: Shots) -> Path:
    """VPR-Bench's: every tenth frame is a query, and queries are numbered among themselves."""
    for frame, shot in enumerate(_line(shots)):
        link(shot.file, root / "ref" / f"images-{frame:05d}.jpg")
        if frame % 10 == 0:
            _winter(shot, root / "query" / f"images-{frame // 10:05d}.jpg")
    return root


def _line(shots: Shots) -> list[Shot]:
    return sorted(of(shots, "database"), key=lambda shot: (shot.north, shot.east))


def _winter(shot: Shot, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(shot.file) as summer:
        ImageOps.autocontrast(ImageEnhance.Color(summer).enhance(0.2)).save(path, quality=88)


def msls(root: Path, shots: Shots) -> Path:
    """train_val/CITY/{database,query}; the last is a panorama, the one before off the subtask."""
    for city in dict.fromkeys(shot.city for shot in shots):
        for part in ("database", "query"):
            here = [shot for shot in of(shots, part) if shot.city == city]
            _msls_shelf(root / "train_val" / city / part, here)
    return root


def _msls_shelf(folder: Path, shots: Shots) -> None:
    rows: dict[str, list[list[Any]]] = {name: [] for name in MSLS_TABLES}
    for number, shot in enumerate(shots):
        key = f"{shot.city}{shot.part[0]}{shot.number:05d}"
        link(shot.file, folder / "images" / f"{key}.jpg")
        day = f"{shot.month[:4]}-{shot.month[4:6]}-05"
        pano, inside = number == len(shots) - 1, number != len(shots) - 2
        night, view = shot.note == "night", "Forward"
        rows["raw"].append([number, key, shot.longitude, shot.latitude, shot.heading, day, pano])
        rows["postprocessed"].append(
            [number, key, shot.east, shot.north, shot.place, False, night, view]
        )
        rows["seq_info"].append([number, key, f"{shot.city}-{shot.sequence}", number])
        rows["subtask_index"].append([number, inside, *([False] * 6)])
    for name, columns in MSLS_TABLES.items():
        table(folder / f"{name}.csv", columns, rows[name])


def gsv(root: Path, shots: Shots) -> Path:
    """Dataframes/City.csv and Images/City; places are those of the database, named in capitals."""
    for city in dict.fromkeys(shot.city for shot in shots):
        rows = []
        for shot in of(shots, "database"):
            if shot.city == city:
                rows.append(_gsv_row(root, shot))
        table(root / "Dataframes" / f"{city.capitalize()}.csv", GSV_COLUMNS, rows)
    return root


def _gsv_row(root: Path, shot: Shot) -> list[Any]:
    city, pano = shot.city.capitalize(), f"pan{shot.number}"
    year, month, north = int(shot.month[:4]), int(shot.month[4:6]), int(shot.heading)
    when = f"{year:04d}_{month:02d}_{north:03d}"
    stem = f"{city}_{shot.place:07d}_{when}_{shot.latitude}_{shot.longitude}_{pano}"
    link(shot.file, root / "Images" / city / f"{stem}.jpg")
    return [shot.place, year, month, north, city, shot.latitude, shot.longitude, pano]


def tables(root: Path, shots: Shots) -> Path:
    """photos.csv, .tsv, .parquet and .geojson beside images/, and gps.csv in foreign words."""
    rows = []
    for shot in shots:
        file = f"{shot.city}-{shot.part}-{shot.number:04d}.jpg"
        link(shot.file, root / "images" / file)
        time = f"{shot.month[:4]}-{shot.month[4:6]}-05T12:00:00"
        rows.append([file, shot.latitude, shot.longitude, shot.heading, time, shot.city])
    names = ("path", "latitude", "longitude", "heading", "time", "city")
    table(root / "photos.csv", names, rows)
    tabs = ["\t".join(str(value) for value in row) for row in [names, *rows]]
    (root / "photos.tsv").write_text("\n".join(tabs) + "\n")
    foreign = ("image_name", "gps_lat", "gps_lng", "compass", "shot_at", "town")
    table(root / "gps.csv", foreign, rows)
    metres = [_metres(shot, str(row[0])) for shot, row in zip(shots, rows, strict=True)]
    pq.write_table(pa.Table.from_pylist(metres), root / "photos.parquet")
    features = [
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [row[2], row[1]]},
         "properties": {"path": row[0], "heading": row[3], "city": row[5]}} for row in rows
    ]  # fmt: skip
    text = json.dumps({"type": "FeatureCollection", "features": features})
    (root / "photos.geojson").write_text(text)
    return root


def _metres(shot: Shot, path: str) -> dict[str, Any]:
    return {"path": path, "east": shot.east, "north": shot.north, "zone": shot.zone,
            "heading": shot.heading, "city": shot.city}  # fmt: skip


def exif(root: Path, shots: Shots) -> Path:
    """IMG_0001.jpg …: position, direction and time in the EXIF, as a phone writes them."""
    root.mkdir(parents=True)
    for number, shot in enumerate(shots):
        tags = Image.Exif()
        tags[306] = f"{shot.month[:4]}:{shot.month[4:6]}:05 12:00:00"
        south, west = "S" if shot.latitude < 0 else "N", "W" if shot.longitude < 0 else "E"
        tags.get_ifd(34853).update({
            1: south, 2: _degrees(shot.latitude), 3: west, 4: _degrees(shot.longitude),
            17: shot.heading,
        })  # fmt: skip
        with Image.open(shot.file) as image:
            image.save(root / f"IMG_{number:04d}.jpg", exif=tags, quality=88)
    return root


def _degrees(value: float) -> tuple[float, float, float]:
    whole, rest = divmod(abs(value) * 60, 60)
    return whole, float(int(rest)), round(rest % 1 * 60, 5)


def lists(root: Path, shots: Shots) -> Path:
    """hloc's db_list.txt: names below the list."""
    for shot in shots:
        link(shot.file, root / "images" / sfxl_name(shot))
    names = sorted(f"images/{sfxl_name(shot)}" for shot in shots)
    (root / "db_list.txt").write_text("\n".join(names) + "\n")
    return root


def descriptors(root: Path, shots: Shots) -> Path:
    """photos/ with SF-XL names, database.npy and queries.npy in their order, and hloc's HDF5.

    Rows look alike where photos are near: 64 waves over the position, of unit length.
    """
    dice = np.random.default_rng(0)
    waves, phase = dice.normal(0, 0.05, (2, 64)), dice.uniform(0, 6, 64)
    for part, folder in (("database", "photos"), ("query", "queries")):
        here = sorted(of(shots, part), key=sfxl_name)
        spots = np.array([[shot.east % 10_000, shot.north % 10_000] for shot in here])
        looks = np.cos(spots @ waves + phase)
        looks = (looks / np.linalg.norm(looks, axis=1, keepdims=True)).astype(np.float32)
        for shot in here:
            link(shot.file, root / folder / sfxl_name(shot))
        np.save(root / f"{'database' if part == 'database' else 'queries'}.npy", looks)
        with h5py.File(root / "hloc.h5", "a") as file:
            for shot, row in zip(here, looks, strict=True):
                file.create_group(f"{folder}/{sfxl_name(shot)}")["global_descriptor"] = row
    return root
