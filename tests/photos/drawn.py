"""Draws a small data set in each layout of the field, so that no test downloads anything."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

SFXL = "@0545981.19@4184971.70@10@S@037.81098@-122.47762@rtCs5-P_9NGD@@174@@@@201409@@.jpg"


def picture(path: Path, colour: tuple[int, int, int] = (90, 120, 150), **save: Any) -> Path:
    """A small JPEG (or what the suffix says) with a dark half, so that it is not one colour."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("RGB", (48, 32), colour)
    image.paste((10, 20, 30), (0, 0, 24, 32))
    image.save(path, **save)
    return path


def table(path: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
    return path


def sfxl_name(
    east: float,
    north: float,
    *,
    zone: str = "10",
    letter: str = "S",
    heading: str = "090",
    time: str = "201409",
    pano: str = "pano",
    tile: str = "",
    note: str = "",
) -> str:
    return (
        f"@{east:010.2f}@{north:010.2f}@{zone}@{letter}@037.77000@-122.42000@{pano}@{tile}"
        f"@{heading}@@@@{time}@{note}@.jpg"
    )


def sfxl(root: Path) -> Path:
    """processed/test with a database, both query sets, and a folder above with an @ in its name."""
    test = root / "copy@home" / "sf_xl" / "processed" / "test"
    for number in range(6):
        name = sfxl_name(545000 + 15 * number, 4184000.5, heading=f"{60 * number:03d}")
        picture(test / "database" / f"{number % 2}" / name)
    picture(test / "queries_v1" / sfxl_name(545001, 4184003, time="20150102_030405"))
    picture(test / "queries_v2" / sfxl_name(545031, 4184003, heading=""))
    return test


def msls(root: Path) -> Path:
    """Two cities in different zones, with a panorama, a query off the subtask, one far away."""
    for city, lon, lat, east in (("cph", 12.57, 55.68, 347000.0), ("sf", -122.42, 37.77, 551000.0)):
        for part, count in (("database", 4), ("query", 4)):
            folder = root / "train_val" / city / part
            keys = [f"{city}{part[0]}{number}" for number in range(count)]
            for key in keys:
                picture(folder / "images" / f"{key}.jpg")
            metres = [east + 10 * n if n < 3 else east + 9000 for n in range(count)]
            _msls_tables(folder, keys, lon, lat, metres)
    return root


def _msls_tables(
    folder: Path, keys: list[str], lon: float, lat: float, metres: list[float]
) -> None:
    pano = [number == 1 for number in range(len(keys))]
    subtask = [number != 2 or folder.name == "database" for number in range(len(keys))]
    table(
        folder / "raw.csv",
        ["", "key", "lon", "lat", "ca", "captured_at", "pano"],
        [[n, k, lon, lat, 45.5, "2017-05-05", pano[n]] for n, k in enumerate(keys)],
    )
    table(
        folder / "postprocessed.csv",
        ["", "key", "easting", "northing", "unique_cluster", "control_panel", "night",
         "view_direction"],
        [[n, k, metres[n], 6170000.0, n, False, n == 0, "Forward"] for n, k in enumerate(keys)],
    )  # fmt: skip
    table(
        folder / "seq_info.csv",
        ["", "key", "sequence_key", "frame_number"],
        [[n, k, "seq", n] for n, k in enumerate(keys)],
    )
    table(
        folder / "subtask_index.csv",
        ["", "all", "s2w", "w2s", "o2n", "n2o", "d2n", "n2d"],
        [[n, subtask[n], *([False] * 6)] for n in range(len(keys))],
    )


def pitts30k(root: Path) -> Path:
    test = root / "pitts30k" / "images" / "test"
    for pitch in (1, 2):
        for yaw in (1, 12):
            name = sfxl_name(
                585000, 4477000, zone="17", letter="T", heading="", time="", pano="000829",
                tile=f"{(pitch - 1) * 24 + yaw - 1:02d}", note=f"pitch{pitch}_yaw{yaw}",
            )  # fmt: skip
            picture(test / "database" / name)
    note = "pitch1_yaw1"
    picture(test / "queries" / sfxl_name(585010, 4477000, zone="17", letter="T", note=note))
    return test


def nordland(root: Path, database: int = 30, every: int = 1) -> Path:
    """The downloader's dummy names: 25 m are 10.5 frames."""
    test = root / "nordland" / "images" / "test"
    for frame in range(database):
        north = frame * 25 / 10.5
        name = f"@0@{north:.3f}@@@@@{frame}@@@@@@@@.jpg"
        picture(test / "database" / name)
        if frame % every == 0:
            picture(test / "queries" / name)
    return test


def gsv(root: Path) -> Path:
    """Two cities; latitudes as a table prints them, one with a trailing suffix in capitals."""
    columns = ["place_id", "year", "month", "northdeg", "city_id", "lat", "lon", "panoid"]
    cities = {"Boston": ("42.3500", "-71.05"), "London": ("51.5", "-0.1275800")}
    for city, (lat, lon) in cities.items():
        rows = [[place, 2015 + place, 7, 90 * place, city, lat, lon, f"pan_{place}"]
                for place in (1, 1, 2)]  # fmt: skip
        rows[1][3] = 5
        table(root / "Dataframes" / f"{city}.csv", columns, rows)
        for number, (place, year, month, north, _, _, _, pano) in enumerate(rows):
            stem = f"{city}_{place:07d}_{year:04d}_{month:02d}_{north:03d}_{lat}_{lon}_{pano}"
            picture(root / "Images" / city / f"{stem}.{'JPG' if number == 2 else 'jpg'}")
    return root


def exif(root: Path) -> Path:
    """Phone photos: one in the south-west with a heading, one without a position, one at 0, 0."""
    exif_one = Image.Exif()
    exif_one[306] = "2021:06:07 08:09:10"
    exif_one.get_ifd(34853).update(
        {1: "S", 2: (33.0, 52.0, 7.68), 3: "W", 4: (70.0, 40.0, 0.0), 17: 271.5}
    )
    picture(root / "one.jpg", exif=exif_one)
    picture(root / "two.jpg")
    exif_zero = Image.Exif()
    exif_zero.get_ifd(34853).update({1: "N", 2: (0.0, 0.0, 0.0), 3: "E", 4: (0.0, 0.0, 0.0)})
    picture(root / "zero.jpg", exif=exif_zero)
    return root


def colmap(root: Path) -> Path:
    """A camera 5 m east and 7 m north of the origin that looks east; z is up."""
    # World to camera for a camera looking along +x: its axes are -y, -z and x of the world.
    lines = ["# Image list with two lines of data per image:",
             "1 0.5 0.5 -0.5 0.5 7.0 2.0 -5.0 1 east.jpg", "10.0 20.0 -1"]  # fmt: skip
    (root / "images.txt").write_text("\n".join(lines))
    return root / "images.txt"
