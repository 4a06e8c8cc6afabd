"""What does the order of a walk add? Right answers won and lost, by tier, with paired intervals.

    python benchmarks/sequence.py town stlucia kudamm halensee cambridge [--looks 0 50] [--data …]

The recommended recipe is trained on each set's database, indexes it and is asked twice: with one
look at each photo, and with the second look that it has by default.  Walks of the town go along
its streets on another day, a frame every 6 m.  Queries of St Lucia and Kurfürstendamm are a drive
in the order of their names.  Both have a frame a second, and 15 m/s is the limit.  Of Cambridge
every second location is asked, as four walks that look north, east, south or west; these and
Halensee's, whose names are in no order, go from each location to the nearest not yet visited at
1.4 m/s, which tells the walk something of the truth, and 3 m/s is the limit.  Right is within
25 m.  Intervals are over streets (town) or stretches of ten frames.
"""

import argparse
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenplace.city import draw_city
from evenplace.city.camera import Camera
from evenplace.city.light import query_days
from evenplace.city.plan import plan_town
from evenplace.city.render import Renderer
from evenplace.city.survey import ORIGIN, Shot, photo_name
from evenplace.evaluation.intervals import Paired, pair
from evenplace.photos import Photos, read_photos
from evenplace.places import Places
from evenplace.places.tiers import TIERS
from evenplace.run.locate_many import Located
from evenplace.run.run import Run
from evenplace.run.sequence import CANDIDATES, follow
from evenplace.training.recipe import find_recipe

SETS = ("town", "stlucia", "kudamm", "halensee", "cambridge")
RADIUS, STEP = 25.0, 6.0
DRIVE, STROLL, HURRY = 15.0, 1.4, 3.0  # metres a second: of a drive at most; walked, at most
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Walk:
    """Photos in their order, with a clock that walks or drives."""

    photos: Photos
    clock: NDArray[np.float64]  # seconds
    limit: float  # metres a second
    parts: NDArray[np.int64]  # what is drawn together for an interval


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", choices=SETS)
    parser.add_argument("--seed", type=int, default=50, help="of the town")
    parser.add_argument("--photos", type=int, default=600, help="of the town")
    parser.add_argument("--looks", type=int, nargs="+", default=[0, 50], help="candidates each")
    parser.add_argument("--data", type=Path, default=os.environ.get("EVENPLACE_DATA"))
    parser.add_argument("--folder", type=Path, help="keep the runs here, and go on with them")
    asked = parser.parse_args()
    print("| set | looked at twice | frames | alone | in order | all", *TIERS, "", sep=" | ")
    print("|---" * (6 + len(TIERS)) + "|", flush=True)
    for name in asked.sets:
        with tempfile.TemporaryDirectory() as folder:
            for row in visit(name, (asked.folder or Path(folder)) / name, asked):
                print(row, flush=True)


def visit(name: str, folder: Path, asked: argparse.Namespace) -> Iterator[str]:
    """Rows of the table: one set, a row for each way of looking."""
    if name == "town":
        if not (folder / "town").exists():
            draw_city(folder / "town", photos=asked.photos, queries=1, seed=asked.seed)
        database = read_photos(folder / "town" / "database", city="all")
        walks = town_walks(folder / "walks", asked.seed, database.positions)
    else:
        database, walks = photographs(Path(asked.data), name)
    run = Run(folder / "run")
    recipe = find_recipe("dapr-m").changed([f"verify={max(asked.looks)}"])
    run.train(database, recipe=recipe)
    run.index(database)
    places = run.search().index.places
    tiers = np.concatenate([_tiers(places, walk.photos) for walk in walks])
    parts = np.concatenate([walk.parts for walk in walks])
    for look in asked.looks:
        found = [answer(run, walk, look) for walk in walks]
        before, after = (np.concatenate(some) for some in zip(*found, strict=True))
        rows = [tiers > -2, *(tiers == tier for tier in range(len(TIERS)))]
        gains = [tell(pair(after[some], before[some], parts[some])) for some in rows]
        share = [f"{100 * one.mean():.1f} %" for one in (before, after)]
        yield " | ".join([f"| {name}", str(look), f"{len(before):,}", *share, *gains, ""]).rstrip()


def answer(run: Run, walk: Walk, look: int) -> tuple[Bools, Bools]:
    """Whether each frame is right: alone, and with its neighbours heard."""
    blocks = run.locate_many(walk.photos.paths, CANDIDATES, verify=look)
    lines = [one for block in blocks for one in block]
    timed = [replace(one, taken="", second=at) for one, at in zip(lines, walk.clock, strict=True)]
    return right(lines, walk.photos), right(follow(timed, walk.limit)[0], walk.photos)


def tell(found: Paired) -> str:
    gain = found.gain
    return f"{gain.mean:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}], {found.won} / {found.lost}"


def right(lines: list[Located], walk: Photos) -> Bools:
    spots = np.array([(one.matches[0].east, one.matches[0].north) for one in lines])
    found: Bools = np.linalg.norm(spots - walk.positions, axis=1) <= RADIUS
    return found


def _tiers(places: Places, walk: Photos) -> NDArray[np.int64]:
    labels = places.locate(walk)
    return np.where(labels >= 0, places.tiers[labels], -1).astype(np.int64)


def town_walks(folder: Path, seed: int, taken: NDArray[np.float64]) -> list[Walk]:
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
            parts = np.full(len(walk), number)
            walks.append(Walk(walk[ahead], np.arange(len(walk), dtype=float), DRIVE, parts))
    return walks


def photographs(data: Path, name: str) -> tuple[Photos, list[Walk]]:
    if name != "cambridge":
        queries = read_photos(data / name / "queries", city="all")
        database, clock = read_photos(data / name / "database", city="all"), np.arange(len(queries))
        drive = Walk(queries, clock.astype(float), DRIVE, clock // 10)
        return database, [stroll(queries) if name == "halensee" else drive]
    photos = read_photos(data / name, city="all")
    single = photos[photos.table.column("duplicate_of").is_null().to_numpy()]
    asked = single.column("location") % 2 == 1
    views = [single[asked & (single.heading == side)] for side in (0, 90, 180, 270)]
    return single[~asked], [stroll(view) for view in views]


def stroll(photos: Photos) -> Walk:
    """To the nearest location not yet visited, in a straight line."""
    photos = photos[nearest_walk(photos.positions)]
    metres = np.linalg.norm(np.diff(photos.positions, axis=0), axis=1)
    clock = np.round(np.concatenate([[0.0], np.cumsum(metres)]) / STROLL)
    return Walk(photos, clock, HURRY, np.arange(len(photos)) // 10)


def nearest_walk(spots: NDArray[np.float64]) -> NDArray[np.int64]:
    left, order = set(range(1, len(spots))), [0]
    while left:
        rest = np.array(sorted(left))
        order.append(int(rest[np.linalg.norm(spots[rest] - spots[order[-1]], axis=1).argmin()]))
        left.remove(order[-1])
    return np.array(order)


if __name__ == "__main__":
    main()
