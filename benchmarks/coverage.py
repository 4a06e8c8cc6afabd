"""Does it help to photograph what `evenplace coverage` recommends, against random places?

    python benchmarks/coverage.py [--towns 0 1 2] [--photos 600] [--keep 300] [--most 80] [--draws 2]

The recommended recipe without its second look is trained on a town of its own (--network), for a
network answers worse from photos it was not trained on than from those it was: whatever is added
to the town it knows then costs recall, wherever it is taken.  `keep` photos of each judged town's
survey are indexed by it.  Then `most` photos are taken where the list says, looking the way it
says, or at random photographed places looking anywhere, each on a street as the survey takes
them, and added.  Printed: R@1 of the town's queries, which ask every place equally often, and
paired gains over all towns.
"""  # noqa: E501

import argparse
import shutil
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenplace.city import draw_city
from evenplace.city.light import survey_days
from evenplace.city.plan import plan_town
from evenplace.city.render import Renderer
from evenplace.city.survey import CELL, Shot, _aim, _standpoints, photo_name
from evenplace.evaluation.predictions import Predictions
from evenplace.evaluation.uncertainty import Paired, pair
from evenplace.photos import Photos, read_photos
from evenplace.photos.nearby import turn
from evenplace.places.wanted import SIDES, find_wanted
from evenplace.run.held_out import hold_out
from evenplace.run.run import Run
from evenplace.training.recipe import find_recipe

View = tuple[float, float, str]  # east, north, side; anywhere if empty
TRIES = 60  # shots until one looks as advised


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--towns", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--photos", type=int, default=600)
    parser.add_argument("--keep", type=int, default=300)
    parser.add_argument("--most", type=int, default=80)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--network", type=int, default=1000, help="the town it is trained on")
    asked = parser.parse_args()
    found: dict[str, list[Predictions]] = {}
    with tempfile.TemporaryDirectory() as name:
        network = train_elsewhere(Path(name), asked.network)
        for seed in asked.towns:
            for kind, one in visit(Path(name) / str(seed), seed, network, asked).items():
                found.setdefault(kind, []).append(one)
                print(f"town {seed}, {kind}: {100 * one.right.mean():.1f}", flush=True)
    before, advised, *draws = found
    told = compare(found[advised], found[before])
    print(f"{advised} over {before}: {told}")
    for draw in draws:
        print(f"{advised} over {draw}: {compare(found[advised], found[draw])}")
    every = [one for draw in draws for one in found[draw]]
    print(f"{advised} over all draws: {compare(found[advised] * len(draws), every)}")


def compare(ours: list[Predictions], theirs: list[Predictions]) -> Paired:
    """The paired gain over the queries of all towns; a query is drawn with its repeats."""
    number = {id(one): 100_000 * at for at, one in enumerate(ours)}
    clusters = np.concatenate([one.clusters + number[id(one)] for one in ours])
    first, second = (np.concatenate([one.right for one in part]) for part in (ours, theirs))
    return pair(first, second, clusters)


def train_elsewhere(folder: Path, seed: int) -> Path:
    draw_city(folder / "elsewhere", photos=600, queries=1, seed=seed)
    recipe = find_recipe("dapr-m").changed([f"seed={seed}", "verify=0", "folds=0"])
    run = Run(folder / "network")
    run.train(read_photos(folder / "elsewhere" / "database", city="all"), recipe=recipe)
    return run.folder


def visit(
    folder: Path, seed: int, network: Path, asked: argparse.Namespace
) -> dict[str, Predictions]:
    """The answers of one town: before, with the advice, with each random draw."""
    town = folder / "town"
    draw_city(town, photos=asked.photos, queries=300, seed=seed)
    every, queries = (read_photos(town / part, city="all") for part in ("database", "queries"))
    chosen = np.random.default_rng(0).permutation(len(every))[: asked.keep]
    thin = Run(Path(shutil.copytree(network, folder / "thin")))
    thin.index(every[np.sort(chosen)])
    engine = thin.search()
    index = engine.index
    wanted = find_wanted(index.photos, index.places, asked.most, hold_out(engine))
    views = {"as advised": [(one.east, one.north, side) for one in wanted for side in one.sides]}
    for draw in range(asked.draws):
        rows = np.random.default_rng(draw).integers(len(index.places), size=asked.most)
        views[f"at random {draw}"] = [
            (float(east), float(north), "") for east, north in index.places.centres[rows]
        ]
    answers = {"before": thin.evaluate(queries).predictions}
    for name, some in views.items():
        added = photographed(folder / name, seed, some)
        answers[name] = grown(thin.folder, folder / name / "run", added, queries)
    return answers


def photographed(folder: Path, seed: int, views: list[View]) -> Path:
    """Go to the street nearest to each spot and take a photo there as the survey does."""
    town, renderer, days = plan_town(seed), Renderer(seed, 224), survey_days()
    dice = np.random.default_rng(7)
    stands = _standpoints(town, dice)
    cells: NDArray[np.int64] = np.array(list(stands.cells))
    out = folder / "photos"
    out.mkdir(parents=True)
    for number, (east, north, side) in enumerate(views):
        away = np.linalg.norm((cells + 0.5) * CELL - (east, north), axis=1)
        cell = tuple(cells[int(away.argmin())].tolist())
        for _ in range(TRIES):
            camera = _aim(dice, stands, cell)
            if not side or turn(*np.array([[camera.heading], [SIDES[side]]]))[0] <= 45:
                break
        shot = Shot(camera, days[int(dice.integers(len(days)))], f"n{number:06d}")
        renderer.take(shot.camera, shot.day).save(out / photo_name(shot), quality=85)
    return out


def grown(thin: Path, folder: Path, added: Path, queries: Photos) -> Predictions:
    run = Run(Path(shutil.copytree(thin, folder)))
    run.add(read_photos(added, city="all"))
    return run.evaluate(queries).predictions


if __name__ == "__main__":
    main()
