"""What a document takes for granted: photos under the names it uses, runs, arrays, descriptors."""

import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

import evenplace as ep
from evenplace.training.recipe import read_recipe
from tests.documents.typist import FEWER, QUICK, in_this_process, shrink
from tests.standins import Standins, layouts

RUNS = (  # one trained and asked, and a baseline beside it
    "train photos --run runs/city",
    "train photos --method cosface --run runs/base",
    "index runs/city --database photos",
    "index runs/base --database photos",
    "evaluate runs/city --queries queries",
    "evaluate runs/base --queries queries",
)


def lay_out(folder: Path, standins: Standins) -> None:
    """Every stand-in, and the names documents have for a folder of photos."""
    standins.link_into(folder)
    (folder / "PHOTOS").symlink_to(standins.photos)
    (folder / "QUERIES").symlink_to(standins.queries)
    shutil.copy(sorted(standins.queries.iterdir())[0], folder / "photo.jpg")


def train_runs(folder: Path) -> Path:
    """runs/city and runs/base, made by the command line in a folder of stand-ins."""
    for line in RUNS:
        said, code = in_this_process(shrink(["evenplace", *line.split()]))
        assert code == 0, said
    ep.Run.open("runs/city").files.open_describer(
        expected=None
    )  # exported once, and not by every service
    return folder / "runs"


def give(document: str, folder: Path, standins: Standins, runs: Path | None) -> dict[str, Any]:
    """Fill the folder a document is typed in; the names its Python may use."""
    lay_out(folder, standins)
    if runs is not None:
        shutil.copytree(runs, folder / "runs")
    if document in ("docs/deploy.md", "docs/serve.md"):
        _give_sf(folder, standins)
    if document == "docs/evaluate.md":
        shutil.copytree(folder / "runs/city", folder / "runs/sf")
    quick = read_recipe("dapr-m").changed([*QUICK, *FEWER])
    names: dict[str, Any] = {"ep": ep, "np": np, "torch": torch, "recipe": quick}
    if document in ("README.md", "docs/train.md", "docs/evaluate.md", "docs/methods.md"):
        names |= _descriptors(folder)
    if document == "docs/locate.md":
        _give_trip(folder, standins)
    if document == "docs/plugins.md":
        _give_tables(folder)
    if document == "docs/methods.md":
        places, rows = names["places"], names["descriptors"]
        names["index"] = ep.index_descriptors(rows, names["photos"], places, folder / "index")
        ep.index_descriptors(rows, names["photos"], places, folder / "ranking")
    return names


def _give_sf(folder: Path, standins: Standins) -> None:
    """runs/sf on photos of a phone, and others to add."""
    (folder / "runs/city").rename(folder / "runs/sf")
    shots = standins.shots("sf")
    layouts.exif(folder / "old_photos", layouts.of(shots, "database"))
    layouts.exif(folder / "new_photos", layouts.of(shots, "query"))
    said, code = in_this_process(["evenplace", "index", "runs/sf", "--database", "old_photos"])
    assert code == 0, said


def _give_trip(folder: Path, standins: Standins) -> None:
    """Twelve photos under names that say nothing, and a film of them."""
    (folder / "trip").mkdir()
    queries = sorted(standins.queries.iterdir())
    film: Any = None
    for number in range(12):
        picture = ep.open_picture(queries[number % len(queries)], 64)
        picture.save(folder / f"trip/img_{number:02d}.jpg")
        film = film or cv2.VideoWriter(
            str(folder / "walk.avi"), cv2.VideoWriter.fourcc(*"MJPG"), 4.0, picture.size
        )
        film.write(np.asarray(picture)[:, :, ::-1])
    film.release()


def _give_tables(folder: Path) -> None:
    """Somebody's descriptors, and tables of positions whose photos are elsewhere."""
    given = _descriptors(folder)
    for name, photos in (("database", given["photos"]), ("queries", given["queries"])):
        rows = [f"{path},{east},{north}" for path, (east, north) in
                zip(photos.paths, photos.positions.tolist(), strict=True)]  # fmt: skip
        zone = photos.zones[0]
        table = "\n".join(["path,east,north,zone", *(f"elsewhere/{row},{zone}" for row in rows)])
        (folder / f"{name}.csv").write_text(table)
    np.save(folder / "salad.npy", given["descriptors"])
    np.save(folder / "queries.npy", given["query_descriptors"])
    np.save(folder / "one.npy", given["query_descriptors"][0])


def _descriptors(folder: Path) -> dict[str, Any]:
    """Photos, places and somebody's descriptors of both."""
    photos = ep.read_photos(folder / "photos")
    places = ep.Grid(cell=20).partition(photos)
    rows = np.load(folder / "descriptors/database.npy")
    asked = np.load(folder / "descriptors/queries.npy")
    return {
        "photos": photos,
        "places": places,
        "counts": places.counts,
        "descriptors": rows,
        "queries": ep.read_photos(folder / "queries"),
        "query_descriptors": asked,
        "for_places": asked,
        "for_photos": asked,
    }
