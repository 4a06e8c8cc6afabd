"""Does it help to photograph what `evenplace coverage` recommends, against random places?

    python benchmarks/coverage.py [--towns 0 1 2] [--most 30 60] [--draws 20] [--run RUN]

The recommended recipe without its second look is trained on a town of its own (or --run brings a
network), for a network answers worse from photos it was not trained on than from those it was:
whatever is added to the town it knows then costs recall, wherever it is taken.  `keep` photos of
each judged town's survey are its database.  Then `most` photos are taken where the list says,
looking the way it says, or at random photographed places looking any way, each on a street as the
survey takes them, and added.  Printed: R@1 of the nearest descriptor for the town's queries, which
ask every surveyed place equally often, and what the advice gains over no photos and over the mean
of all random draws, paired, with intervals over places.
"""

import argparse
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenplace.city import draw_city
from evenplace.city.camera import Camera
from evenplace.city.light import survey_days
from evenplace.city.plan import plan_town
from evenplace.city.render import Renderer
from evenplace.city.survey import (
    CELL,
    ZONE,
    Shot,
    _aim,
    _standpoints,
    photo_name,
    plan_queries,
    plan_survey,
)
from evenplace.describe.describer import Describer
from evenplace.evaluation.intervals import Interval, interval
from evenplace.photos import Photos, read_photos
from evenplace.photos.nearby import turn
from evenplace.places.wanted import SIDES, find_wanted
from evenplace.run.leave_one_out import hold_out
from evenplace.run.run import Run
from evenplace.training.recipe import find_recipe

RADIUS = 25.0
TRIES = 60  # shots until one looks as advised
View = tuple[tuple[int, int], str, int]  # cell, side, and the how many-th photo of both
Plan = list[tuple[float, float, str]]  # east, north, side of each photo to take
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Judged:
    """Whether the queries of one town are right: before, and by plan and number of photos."""

    clusters: NDArray[np.int64]  # (Q,) the place of each
    before: Values  # (Q,)
    advised: dict[int, Values]
    random: dict[int, Values]  # the mean of all draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--towns", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--photos", type=int, default=300, help="of the survey")
    parser.add_argument("--keep", type=int, default=150, help="of them, the database")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--most", type=int, nargs="+", default=[30, 60])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--run", type=Path, help="a network trained elsewhere")
    asked = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as name:
        network = asked.run or train_elsewhere(Path(name))
        for seed in asked.towns:
            found.append(visit(Path(name) / str(seed), seed, network, asked))
            print(f"town {seed}: {100 * found[-1].before.mean():.1f} before", flush=True)
    print("| added | before | at random | as advised | over before | over random |")
    print("|---" * 6 + "|")
    for most in asked.most:
        print(row(found, most))


def row(found: list[Judged], most: int) -> str:
    """A line of the table, over the queries of all towns."""
    before = np.concatenate([one.before for one in found])
    advised, random = (
        np.concatenate([getattr(one, kind)[most] for one in found])
        for kind in ("advised", "random")
    )
    towns = np.concatenate([one.clusters + 10_000 * at for at, one in enumerate(found)])
    clusters = np.unique(towns, return_inverse=True)[1]
    shares = [f"{100 * one.mean():.1f}" for one in (before, random, advised)]
    gains = [tell(interval(advised - other, clusters)) for other in (before, random)]
    return " | ".join([f"| {most}", *shares, *gains]) + " |"


def tell(gain: Interval) -> str:
    return f"{gain.mean:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}]"


def train_elsewhere(folder: Path, seed: int = 1000) -> Path:
    draw_city(folder / "elsewhere", photos=500, queries=1, seed=seed)
    recipe = find_recipe("dapr-m").changed([f"seed={seed}", "verify=0", "folds=0"])
    run = Run(folder / "network")
    run.train(read_photos(folder / "elsewhere" / "database", city="all"), recipe=recipe)
    return run.folder


def visit(folder: Path, seed: int, network: Path, asked: argparse.Namespace) -> Judged:
    """Draw a town, plan photos for it in both ways, take them all, and ask."""
    town = plan_town(seed)
    survey = plan_survey(town, asked.photos, seed)
    kept = np.sort(np.random.default_rng(0).permutation(len(survey))[: asked.keep])
    database = take(folder / "database", seed, [survey[row] for row in kept])
    queries = take(folder / "queries", seed, plan_queries(town, survey, asked.queries, seed))
    run = Run(Path(shutil.copytree(network, folder / "run")))
    run.index(abroad(database))
    engine = run.search()
    assert engine.describer is not None
    index, held = engine.index, hold_out(engine)
    plans: dict[tuple[str, int, int], Plan] = {}
    for most in asked.most:
        wanted = find_wanted(index.photos, index.places, most, held)
        plans["advised", most, 0] = [
            (one.east, one.north, side) for one in wanted for side in one.sides
        ]
        for draw in range(asked.draws):
            plans["random", most, draw] = at_random(index.places.centres, most, draw)
    asking = Asking(engine.describer, queries)
    asking.know(index.vectors(np.arange(len(index))), index.photos)
    return asking.judge(folder / "added", seed, plans)


def abroad(photos: Photos) -> Photos:
    """The same photos in the next zone: a drawn town lies where the network's own town lies."""
    return Photos.from_arrays(
        path=photos.paths, east=photos.east, north=photos.north, heading=photos.heading,
        time=photos.time, zone=ZONE + 1,
    )  # fmt: skip


def at_random(centres: Values, most: int, draw: int) -> Plan:
    dice = np.random.default_rng(draw)
    sides = list(SIDES)
    rows = dice.integers(len(centres), size=most)
    ways = dice.integers(len(sides), size=most)
    return [(*map(float, centres[at]), sides[way]) for at, way in zip(rows, ways, strict=True)]


class Asking:
    """The queries of a town, asked of its database with photos added."""

    def __init__(self, describer: Describer, queries: Photos) -> None:
        self.describer, self.queries = describer, queries
        self.asked = describer.describe(queries.paths).descriptors  # (Q, D)

    def know(self, descriptors: NDArray[np.float32], database: Photos) -> None:
        self.best, self.hit = self._compare(descriptors, database)

    def _compare(
        self, descriptors: NDArray[np.float32], photos: Photos
    ) -> tuple[Values, NDArray[np.bool_]]:
        """How alike each photo is to each query, and whether it is near enough: (Q, N) both."""
        alike = self.asked @ descriptors.T
        away = np.linalg.norm(self.queries.positions[:, None] - photos.positions[None], axis=2)
        return alike.astype(np.float64), away <= RADIUS

    def judge(self, folder: Path, seed: int, plans: dict[tuple[str, int, int], Plan]) -> Judged:
        """Take every view of every plan once, and ask with those of each plan added."""
        guide = Guide(seed)
        views = {name: guide.views(plan) for name, plan in plans.items()}
        every = sorted({view for some in views.values() for view in some})
        shots = [guide.shot(view) for view in every]
        added = take(folder, seed, shots)
        row_of = {Path(path).name: row for row, path in enumerate(added.paths)}
        rows = {view: row_of[photo_name(shot)] for view, shot in zip(every, shots, strict=True)}
        alike, hit = self._compare(self.describer.describe(added.paths).descriptors, added)
        found: dict[tuple[str, int], list[Values]] = {}
        for (kind, most, _), some in views.items():
            mine = [rows[view] for view in some]
            right = self._right(alike[:, mine], hit[:, mine])
            found.setdefault((kind, most), []).append(right)
        mean = {name: np.mean(some, axis=0) for name, some in found.items()}
        advised, random = (
            {most: one for (name, most), one in mean.items() if name == kind}
            for kind in ("advised", "random")
        )
        cells = np.floor(self.queries.positions / CELL).astype(np.int64)
        places = np.unique(cells, axis=0, return_inverse=True)[1].ravel()
        return Judged(places, self._right(alike[:, :0], hit[:, :0]), advised, random)

    def _right(self, alike: Values, hit: NDArray[np.bool_]) -> Values:
        alike, hit = np.hstack([self.best, alike]), np.hstack([self.hit, hit])
        right: Values = hit[np.arange(len(hit)), alike.argmax(axis=1)].astype(np.float64)
        return right


class Guide:
    """Knows the streets of a town, and from where a view of them is taken."""

    def __init__(self, seed: int) -> None:
        self.stands = _standpoints(plan_town(seed), np.random.default_rng(7))
        self.cells: NDArray[np.int64] = np.array(list(self.stands.cells))
        self.days = survey_days()

    def views(self, plan: Plan) -> list[View]:
        """The street nearest to each spot; the second photo of one view is another photo."""
        views: list[View] = []
        count: Counter[tuple[tuple[int, int], str]] = Counter()
        for east, north, side in plan:
            away = np.linalg.norm((self.cells + 0.5) * CELL - (east, north), axis=1)
            first, second = self.cells[int(away.argmin())].tolist()
            key = (first, second), side
            views.append((*key, count[key]))
            count[key] += 1
        return views

    def shot(self, view: View) -> Shot:
        """A photo as the survey takes it there, looking to that side: the same in every plan."""
        cell, side, number = view
        dice = np.random.default_rng([*cell, list(SIDES).index(side), number])
        camera: Camera
        for _ in range(TRIES):
            camera = _aim(dice, self.stands, cell)
            if turn(*np.array([[camera.heading], [SIDES[side]]]))[0] <= 45:
                break
        name = f"a{cell[0]}x{cell[1]}{side}{number}"
        return Shot(camera, self.days[int(dice.integers(len(self.days)))], name)


def take(folder: Path, seed: int, shots: list[Shot]) -> Photos:
    renderer = Renderer(seed, 224)
    folder.mkdir(parents=True)
    for shot in shots:
        renderer.take(shot.camera, shot.day).save(folder / photo_name(shot), quality=85)
    return read_photos(folder, city="all")


if __name__ == "__main__":
    main()
