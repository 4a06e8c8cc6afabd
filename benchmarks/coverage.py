"""Does it help to photograph what `evenplace coverage` recommends, against random places?

    python benchmarks/coverage.py RUN TOWN [--keep 800] [--most 100] [--seeds 3]

RUN is of the town that `evenplace city TOWN` draws with seed 0.  A database of `keep` of its
photos is indexed; then `most` photos are taken where the list says, or at random photographed
places, on the survey's days, and added.  Printed: R@1 of the town's queries, and the gain of the
advice over each draw with its paired interval.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenplace.city.camera import Camera
from evenplace.city.light import survey_days
from evenplace.city.names import photo_name
from evenplace.city.plan import plan_town
from evenplace.city.render import Renderer
from evenplace.city.survey import ORIGIN, Shot
from evenplace.evaluation import Scores
from evenplace.evaluation.evaluate import compare_pairs
from evenplace.photos import Photos, read_photos
from evenplace.places.wanted import SIDES, Wanted, find_wanted
from evenplace.run.held_out import hold_out
from evenplace.run.run import Run

Visit = tuple[float, float, float]  # east, north, heading


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
        advised = photographed(folder, "advised", advice(wanted))
        after = grown(folder, "advised", advised, queries)
        told = compare_pairs(after.predictions, before.predictions)
        print(f"{asked.keep} photos: {before.recall[1]:.1f}")
        print(f"{asked.most} more as advised: {after.recall[1]:.1f}, {told}")
        for seed in range(asked.seeds):
            spots = at_random(index.places.centres, asked.most, seed)
            other = grown(
                folder, f"random{seed}", photographed(folder, f"random{seed}", spots), queries
            )
            told = compare_pairs(after.predictions, other.predictions)
            print(f"  at random ({seed}): {other.recall[1]:.1f}; advice against it {told}")


def advice(wanted: list[Wanted]) -> list[Visit]:
    """What the list says, looking first where nobody looked."""
    visits = []
    for one in wanted:
        sides = [*one.sides, *SIDES]
        visits += [(one.east, one.north, 90.0 * SIDES.index(sides[n % len(sides)]))
                   for n in range(one.photos)]  # fmt: skip
    return visits


def at_random(centres: NDArray[np.float64], most: int, seed: int) -> list[Visit]:
    dice = np.random.default_rng(seed)
    rows = dice.integers(len(centres), size=most)
    return [(*centres[row], 90.0 * int(dice.integers(4))) for row in rows]


def photographed(folder: Path, name: str, visits: list[Visit]) -> Path:
    """Go to the street nearest to each spot and take the photo."""
    streets, renderer, days = plan_town(0).streets, Renderer(0, 224), survey_days()
    out = folder / name / "photos"
    out.mkdir(parents=True)
    for number, (east, north, heading) in enumerate(visits):
        spot = np.array([east, north]) - ORIGIN
        near = [
            s.start + np.clip((spot - s.start) @ s.along, 4, s.length - 4) * s.along
            for s in streets
        ]
        stand = min(near, key=lambda at: float(np.linalg.norm(at - spot)))
        camera = Camera(
            round(float(stand[0]), 2), round(float(stand[1]), 2), heading, 1.9, 75.0, 10.0
        )
        shot = Shot(camera, days[number % len(days)], f"{name}n{number:06d}")
        renderer.take(shot.camera, shot.day).save(out / photo_name(shot), quality=85)
    return out


def grown(folder: Path, name: str, added: Path, queries: Photos) -> Scores:
    shutil.copytree(folder / "thin", folder / name / "run")
    run = Run.open(folder / name / "run")
    run.add(read_photos(added, city="all"))
    return run.evaluate(queries)


if __name__ == "__main__":
    main()
