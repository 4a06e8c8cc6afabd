"""What does the order of a walk add? Right answers won and lost, by tier, with paired intervals.

    python benchmarks/sequence.py town [--seed 0] [--photos 1000]
    python benchmarks/sequence.py stlucia | kudamm | halensee | cambridge [--data FOLDER]

The recommended recipe without its second look is trained on the database and indexes it.  Walks
of the town go along its streets on another day, a frame every 6 m.  Queries of the photographs
are a drive in the order of their names, a second a frame.  Of Cambridge every second location is
asked, one heading; these and Halensee's, whose names are in no order, are a walk from each
location to the nearest not yet visited, which tells the walk something of the truth.  Right is
within 25 m.
"""

import argparse
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenplace.city import draw_city
from evenplace.city.camera import Camera
from evenplace.city.light import query_days
from evenplace.city.plan import plan_town
from evenplace.city.render import Renderer
from evenplace.city.survey import ORIGIN, Shot, photo_name
from evenplace.evaluation.uncertainty import pair
from evenplace.photos import Photos, read_photos
from evenplace.places import Places
from evenplace.places.tiers import TIERS
from evenplace.run.located import Located
from evenplace.run.run import Run
from evenplace.run.walks import CANDIDATES, follow
from evenplace.training.recipe import find_recipe

RADIUS, STEP = 25.0, 6.0
Bools = NDArray[np.bool_]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", choices=["town", "stlucia", "kudamm", "halensee", "cambridge"])
    parser.add_argument("--seed", type=int, default=0, help="of the town")
    parser.add_argument("--photos", type=int, default=1000, help="of the town")
    parser.add_argument("--data", type=Path, default=os.environ.get("EVENPLACE_DATA"))
    parser.add_argument("--speed", type=float, default=15.0, help="metres a second at most")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if asked.set == "town":
            draw_city(folder / "town", photos=asked.photos, queries=1, seed=asked.seed)
            database = read_photos(folder / "town" / "database", city="all")
            walks = town_walks(folder / "walks", asked.seed, database.positions)
        else:
            database, walk = photographs(asked.data, asked.set)
            walks = [walk]
        run = Run(folder / "run")
        run.train(database, recipe=find_recipe("dapr-m").changed(["verify=0"]))
        run.index(database)
        report(asked.set, run, walks, asked.speed)


def report(name: str, run: Run, walks: list[Photos], speed: float) -> None:
    alone, heard, asked = [], [], []
    for walk in walks:
        lines = [one for block in run.locate_many(walk.paths, CANDIDATES) for one in block]
        clock = [replace(one, taken="", second=float(at)) for at, one in enumerate(lines)]
        alone.append(right(lines, walk))
        heard.append(right(follow(clock, speed)[0], walk))
        asked.append(walk)
    before, after = np.concatenate(alone), np.concatenate(heard)
    places = run.search().index.places
    tiers = np.concatenate([_tiers(places, walk) for walk in asked])
    clusters = np.concatenate([np.full(len(walk), n) for n, walk in enumerate(asked)])
    if len(asked) == 1:  # of one drive, stretches of ten frames
        clusters = np.arange(len(before)) // 10
    print(f"{name}: {len(before)} frames of {len(asked)} walks; alone {100 * before.mean():.1f} %")
    for tier, rows in [("all", tiers > -2), *((n, tiers == i) for i, n in enumerate(TIERS))]:
        if rows.any():
            told = pair(after[rows], before[rows], clusters[rows])
            print(f"  {tier} ({rows.sum()}): {100 * after[rows].mean():.1f} %, gain {told}")


def right(lines: list[Located], walk: Photos) -> Bools:
    spots = np.array([(one.matches[0].east, one.matches[0].north) for one in lines])
    found: Bools = np.linalg.norm(spots - walk.positions, axis=1) <= RADIUS
    return found


def _tiers(places: Places, walk: Photos) -> NDArray[np.int64]:
    labels = places.locate(walk)
    return np.where(labels >= 0, places.tiers[labels], -1).astype(np.int64)


def town_walks(folder: Path, seed: int, taken: NDArray[np.float64]) -> list[Photos]:
    """Every street from one end to the other, where the database has photos near by."""
    renderer, days, walks = Renderer(seed, 224), query_days(), []
    for number, street in enumerate(plan_town(seed).streets):
        out, day = folder / f"{number:03d}", days[number % len(days)]
        heading = float(round(np.degrees(np.arctan2(*street.along)) % 360))
        for frame, at in enumerate(np.arange(4.0, street.length - 4.0, STEP)):
            east, north = street.start + at * street.along
            if np.hypot(*(taken - ORIGIN - (east, north)).T).min() > RADIUS:
                continue
            camera = Camera(round(east, 2), round(north, 2), heading, 1.8, 74.0, 10.0, 1.0)
            shot = Shot(camera, day, f"w{number:03d}n{frame:06d}")
            out.mkdir(exist_ok=True, parents=True)
            renderer.take(camera, day).save(out / photo_name(shot), quality=85)
        if out.exists() and len(list(out.iterdir())) >= 5:
            walk = read_photos(out, city="all")
            ahead = np.argsort((walk.positions - ORIGIN - street.start) @ street.along)
            walks.append(walk[ahead])
    return walks


def photographs(data: Path, name: str) -> tuple[Photos, Photos]:
    if name != "cambridge":
        queries = read_photos(data / name / "queries", city="all")
        if name == "halensee":
            queries = queries[nearest_walk(queries.positions)]
        return read_photos(data / name / "database", city="all"), queries
    photos = read_photos(data / name, city="all")
    single = photos[photos.table.column("duplicate_of").is_null().to_numpy()]
    location = single.column("location")
    asked = single[(location % 2 == 1) & (single.heading == 0)]
    return single[location % 2 == 0], asked[nearest_walk(asked.positions)]


def nearest_walk(spots: NDArray[np.float64]) -> NDArray[np.int64]:
    left, order = set(range(1, len(spots))), [0]
    while left:
        rest = np.array(sorted(left))
        order.append(int(rest[np.linalg.norm(spots[rest] - spots[order[-1]], axis=1).argmin()]))
        left.remove(order[-1])
    return np.array(order)


if __name__ == "__main__":
    main()
