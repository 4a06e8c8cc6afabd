"""The first hour of somebody who comes with photos: every command, its seconds, what it said.

    python benchmarks/first_hour.py EVENPLACE FOLDER [exif csv sf-xl takeout descriptors map]

EVENPLACE is the command of an environment that has nothing but the wheel; FOLDER is where it
works.  The photos are a drawn town's, laid out as people have them: a phone's EXIF, a table with
foreign names, SF-XL names, Google Takeout, somebody's descriptors; `map` goes from an empty
folder to every kind of file, a page, and positions in photos that had been stripped of theirs,
read by Pillow and by exiftool where that is installed, and taken back.  Results:
benchmarks/results/first-hour.md and, of `map` alone, folder.md.
"""

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image

from evenplace.photos import Photos, read_photos
from evenplace.photos.choose import globe

_ROUND = re.compile(r": [\d,]+ of [\d,]+|it/s|%\||^\s*$|photos a second:|: \d+ s$")


class Typist:
    """Types commands in a folder and writes down what came back."""

    def __init__(self, command: Path, folder: Path) -> None:
        self.command, self.folder = command.resolve(), folder

    def short(self, path: str) -> Path:
        return Path(path).relative_to(self.folder)

    def type(self, words: str, code: int = 0, tool: str = "evenplace") -> None:
        began = time.perf_counter()
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = self.command if tool == "evenplace" else tool
        done = subprocess.run([command, *words.split()], cwd=self.folder, text=True,
                              capture_output=True, env=alone)  # fmt: skip
        spent = time.perf_counter() - began
        lines = [line.rstrip() for line in (done.stderr + done.stdout).splitlines()]
        said = [line for line in lines if not _ROUND.search(line)]
        more = [f"… {len(said) - 14} lines more"] if len(said) > 14 else []
        print(f"$ {tool} {words}    # {spent:.1f} s", *said[:14], *more, "", sep="\n", flush=True)
        assert done.returncode == code, f"{done.returncode} from {words}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("evenplace", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="*", default=list(PARTS))
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    typist = Typist(asked.evenplace, asked.folder.resolve())
    town = typist.folder / "town"
    if not town.exists():
        typist.type("city town --photos 250 --queries 40 --seed 3")
    for part in asked.parts:
        print(f"## {part}\n", flush=True)
        PARTS[part](typist, *(read_photos(town / one) for one in ("database", "queries")))


def exif(typist: Typist, database: Photos, queries: Photos) -> None:
    """A phone's folder, with what else lies in such folders."""
    phone = typist.folder / "phone"
    lay_exif(phone, database)
    (phone / "notes.txt").write_text("Sunday")
    (phone / "IMG_9999.jpg").write_bytes(b"")
    typist.type("photos check phone")
    typist.type("audit phone --out audit.html")
    learn_phone(typist)
    lay_exif(typist.folder / "asked", queries)
    typist.type("locate runs/phone asked/IMG_0000.jpg")
    typist.type("locate runs/phone asked/IMG_0000.jpg --min-precision 0.95")
    typist.type("evaluate runs/phone --queries asked")


def learn_phone(typist: Typist) -> None:
    typist.type("train phone --run runs/phone")
    typist.type("index runs/phone --database phone")


def lay_exif(folder: Path, photos: Photos) -> None:
    folder.mkdir(exist_ok=True)
    for row, (latitude, longitude) in enumerate(zip(*globe(photos), strict=True)):
        tags = Image.Exif()
        tags[ExifTags.Base.DateTime] = str(photos.time[row]).replace("-", ":").replace("T", " ")
        gps = tags.get_ifd(ExifTags.IFD.GPSInfo)
        gps |= {1: "N", 2: sexagesimal(latitude), 3: "E", 4: sexagesimal(longitude),
                17: float(photos.heading[row])}  # fmt: skip
        with Image.open(photos.paths[row]) as picture:
            picture.save(folder / f"IMG_{row:04d}.jpg", exif=tags, quality=90)


def sexagesimal(degrees: float) -> tuple[float, float, float]:
    minutes = degrees % 1 * 60
    return float(int(degrees)), float(int(minutes)), minutes % 1 * 60


def table(typist: Typist, database: Photos, queries: Photos) -> None:
    """A table with names of one's own, as a spreadsheet in Germany saves it."""
    folder = typist.folder / "survey"
    folder.mkdir(exist_ok=True)
    with (folder / "meine liste.csv").open("w", encoding="utf-8-sig", newline="") as file:
        rows = csv.writer(file, delimiter=";")
        rows.writerow(("image_name", "gps_lat", "gps_lng", "compass", "shot_at"))
        for row, spot in enumerate(zip(*globe(database), strict=True)):
            name = f"bild {row}.jpg"
            (folder / name).write_bytes(Path(database.paths[row]).read_bytes())
            place = (f"{one:.7f}".replace(".", ",") for one in spot)
            rows.writerow((name, *place, int(database.heading[row]), database.time[row]))
    typist.type("photos check survey")
    typist.type("photos check survey --column latitude=gps_latt", code=2)
    typist.type("train survey --run runs/survey --set verify=0")
    typist.type("index runs/survey --database survey")
    typist.type(f"locate runs/survey {typist.short(queries.paths[0])}")


def sfxl(typist: Typist, database: Photos, queries: Photos) -> None:
    """Names of SF-XL, as research has them."""
    typist.type("photos check town/database")
    typist.type("train town/database --run runs/town --set verify=0")
    typist.type("index runs/town --database town/database")
    typist.type("evaluate runs/town --queries town/queries --min-precision 0.9")


def takeout(typist: Typist, database: Photos, queries: Photos) -> None:
    """What Google hands out: a JSON beside each photo."""
    folder = typist.folder / "Takeout" / "Google Photos"
    folder.mkdir(parents=True, exist_ok=True)
    for row, (latitude, longitude) in enumerate(zip(*globe(database), strict=True)):
        (folder / f"P{row}.jpg").write_bytes(Path(database.paths[row]).read_bytes())
        seconds = database.time[row].astype("datetime64[s]").astype(int)
        told = {"title": f"P{row}.jpg", "photoTakenTime": {"timestamp": str(seconds)},
                "geoData": {"latitude": latitude, "longitude": longitude}}  # fmt: skip
        (folder / f"P{row}.jpg.supplemental-metadata.json").write_text(json.dumps(told))
    typist.type("photos check Takeout")
    typist.type("train Takeout --run runs/takeout --set verify=0")
    typist.type("index runs/takeout --database Takeout")
    typist.type(f"locate runs/takeout {typist.short(queries.paths[1])}")


def descriptors(typist: Typist, database: Photos, queries: Photos) -> None:
    """Somebody's descriptors: here thumbnails of 16 by 16, whitened by nobody."""
    for name, photos in (("db", database), ("q", queries)):
        with (typist.folder / f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("path", "latitude", "longitude", "heading", "time"))
            for row, spot in enumerate(zip(*globe(photos), strict=True)):
                rows.writerow((f"gone/{row}.jpg", *spot, photos.heading[row], photos.time[row]))
        small = [Image.open(one).resize((16, 16)) for one in photos.paths]
        flat = np.stack([np.asarray(one, np.float32).ravel() for one in small])
        flat -= flat.mean(axis=1, keepdims=True)
        np.save(typist.folder / f"{name}.npy", flat / np.linalg.norm(flat, axis=1, keepdims=True))
    np.save(typist.folder / "one.npy", np.load(typist.folder / "q.npy")[:1])
    typist.type("index runs/theirs --database db.csv --descriptors db.npy")
    typist.type("tune runs/theirs")
    typist.type("evaluate runs/theirs --queries q.csv --descriptors q.npy")
    typist.type("locate runs/theirs --descriptor one.npy")


def to_map(typist: Typist, database: Photos, queries: Photos) -> None:
    """From an empty folder to positions on a map, into the photos, and out of them again."""
    if not (typist.folder / "runs" / "phone" / "index").exists():
        lay_exif(typist.folder / "phone", database)
        learn_phone(typist)
    asked, trip = typist.folder / "asked", typist.folder / "trip"
    lay_exif(asked, queries)
    trip.mkdir(exist_ok=True)
    typist.type("locate runs/phone trip --out trip.geojson", code=2)
    for path in sorted(asked.iterdir()):
        with Image.open(path) as picture:
            picture.save(trip / path.name, quality=90)  # no EXIF at all
    before = {path: path.read_bytes() for path in trip.iterdir()}
    kinds = ("geojson", "csv", "parquet", "gpx", "kml", "html")
    typist.type("locate runs/phone trip " + " ".join(f"--out trip.{kind}" for kind in kinds))
    typist.type("locate runs/phone trip --out trip.geojson", code=2)
    found = json.loads((typist.folder / "trip.geojson").read_text())["features"]
    print(f"# trip.geojson holds {len(found)} features; the first: {json.dumps(found[0])[:300]}\n")
    typist.type("locate runs/phone trip --min-precision 0.9 --write-exif")
    read_back(typist, asked)
    typist.type("locate runs/phone --undo located/written.jsonl")
    left = sorted(path.name for path in (typist.folder / "located").glob("*.jpg"))
    same = all(path.read_bytes() == data for path, data in before.items())
    print(f"# left in located: {left}; trip is as it was: {same}\n")


def read_back(typist: Typist, asked: Path) -> None:
    """What Pillow and exiftool find in the copies, and how far that is from the truth."""
    written = sorted((typist.folder / "located").glob("*.jpg"))
    if not written:
        return
    with Image.open(written[0]) as picture:
        gps = picture.getexif().get_ifd(ExifTags.IFD.GPSInfo)
    print(f"# Pillow reads of {written[0].name}: {dict(gps)}\n")
    told, true = (
        {Path(path).name: spot for path, spot in zip(some.paths, some.positions, strict=True)}
        for some in map(read_photos, (written[0].parent, asked))
    )
    away = np.array([np.linalg.norm(spot - true[name]) for name, spot in told.items()])
    print(f"# {len(away)} positions written, {(away <= 25).sum()} of them within 25 m of where "
          f"the photo had been before it was stripped\n")  # fmt: skip
    if shutil.which("exiftool"):
        tags = "-GPSLatitude -GPSLongitude -GPSHPositioningError -GPSMapDatum"
        typist.type(f"-n {tags} located/{written[0].name}", tool="exiftool")
        typist.type(f"-validate -warning -a located/{written[0].name}", tool="exiftool")


PARTS: dict[str, Callable[[Typist, Photos, Photos], None]] = {
    "exif": exif, "csv": table, "sf-xl": sfxl, "takeout": takeout, "descriptors": descriptors,
    "map": to_map,
}  # fmt: skip

if __name__ == "__main__":
    main()
