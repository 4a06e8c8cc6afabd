"""Does it help to photograph what `evenplace coverage` recommends, against random places?

    python benchmarks/coverage.py RUN TOWN [--keep 800] [--most 100] [--seeds 3]

RUN is of the town that `evenplace city TOWN` draws with seed 0.  A database of `keep` of its
photos is indexed; then `most` photos are taken where the list says, or at random photographed
places, as the town's survey takes them, and added.  Printed: R@1 of the town's queries, and the
gain of the advice over each draw with its paired interval.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

import numpy as np

from evenplace.city.light import survey_days
from evenplace.city.names import photo_name
from evenplace.city.plan import plan_town
from evenplace.city.render import Renderer
from evenplace.city.survey import CELL, Shot, _aim, _standpoints
from evenplace.evaluation import Scores
from evenplace.evaluation.evaluate import compare_pairs
from evenplace.photos import Photos, read_photos
from evenplace.places.wanted import find_wanted
from evenplace.run.held_out import hold_out
from evenplace.run.run import Run

Spot = tuple[float, float]  # east, north


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("town", type=Path)
    parser.add_argument("--keep", type=int, default=800)
    parser.add_argument("--most", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(asked.run, folder / "thin")
        thin = Run.open(folder / "thin")
        every = read_photos(asked.town / "database", city="all")
        chosen = np.random.default_rng(0).permutation(len(every))[: asked.keep]
        thin.index(every[np.sort(chosen)])
        queries = read_photos(asked.town / "queries", city="all")
        before = thin.evaluate(queries)
        engine = thin.search()
        index = engine.index
        wanted = find_wanted(index.photos, index.places, asked.most, hold_out(engine))
        advised = photographed(
            folder, "advised", [(one.east, one.north) for one in wanted for _ in range(one.photos)]
        )
        after = grown(folder, "advised", advised, queries)
        told = compare_pairs(after.predictions, before.predictions)
        print(f"{asked.keep} photos: {before.recall[1]:.1f}")
        print(f"{asked.most} more as advised: {after.recall[1]:.1f}, {told}")
        for seed in range(asked.seeds):
            rows = np.random.default_rng(seed).integers(len(index.places), size=asked.most)
            spots = [(float(e), float(n)) for e, n in index.places.centres[rows]]
            other = grown(
                folder, f"random{seed}", photographed(folder, f"random{seed}", spots), queries
            )
            told = compare_pairs(after.predictions, other.predictions)
            print(f"  at random ({seed}): {other.recall[1]:.1f}; advice against it {told}")


def photographed(folder: Path, name: str, spots: list[Spot]) -> Path:
    """Go to the surveyed cell nearest to each spot and take a photo there as the survey does."""
    town, renderer, days = plan_town(0), Renderer(0, 224), survey_days()
    dice = np.random.default_rng(7)
    stands = _standpoints(town, dice)
    cells = np.array(list(stands.cells))
    out = folder / name / "photos"
    out.mkdir(parents=True)
    for number, spot in enumerate(spots):
        away = np.linalg.norm((cells + 0.5) * CELL - spot, axis=1)
        camera = _aim(dice, stands, tuple(cells[int(away.argmin())].tolist()))
        shot = Shot(camera, days[int(dice.integers(len(days)))], f"{name}n{number:06d}")
        renderer.take(shot.camera, shot.day).save(out / photo_name(shot), quality=85)
    return out


def grown(folder: Path, name: str, added: Path, queries: Photos) -> Scores:
    shutil.copytree(folder / "thin", folder / name / "run")
    run = Run.open(folder / name / "run")
    run.add(read_photos(added, city="all"))
    return run.evaluate(queries)


if __name__ == "__main__":
    main()
