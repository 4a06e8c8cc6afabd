"""Does the recommended preset find the tail on real photographs?  And the paper's?

    python benchmarks/photographs.py [timisoara cambridge] [--seeds 1] [--check]

Photos come from EVENPLACE_DATA (default ../shared/data) and are split by position: 30 % of the
positions ask, the others are database and training set.  A seed is another split and another
training.  Timisoara's answers must also look the same way within 45 degrees.  Writes
benchmarks/results/photographs.md; with --check, exits 1 unless, on every set, the recommended
preset is above CosFace + L2 and cross-entropy + L2 in R@1 overall and in the tail.
"""

import argparse
import datetime
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from evenplace.cli.console import bars
from evenplace.cli.memory import keep_freed_memory
from evenplace.evaluation import Scores, compare, join_scores
from evenplace.photos import Photos, read_photos
from evenplace.photos.nearby import find_nearby
from evenplace.report.tables import COLUMNS, GAIN_COLUMNS, gain_rows, markdown, score_rows
from evenplace.run import evaluate_run, index_run, train_run
from evenplace.training import read_recipe

SYSTEMS = ("cosface", "cross-entropy", "dapr-m-paper", "dapr-m")
HEADINGS = {"timisoara": 45.0}
DATA = Path(os.environ.get("EVENPLACE_DATA", Path(__file__).parents[2] / "shared" / "data"))
RESULTS = Path(__file__).parent / "results" / "photographs.md"


def split(photos: Photos, seed: int) -> tuple[Photos, Photos]:
    """Database and queries with no position in common; queries have a photo within 25 m."""
    spots, which = np.unique(photos.positions.round(2), axis=0, return_inverse=True)
    asks = (np.random.default_rng(seed).random(len(spots)) < 0.3)[which.ravel()]
    database, queries = photos[~asks], photos[asks]
    return database, queries[find_nearby(database, queries, 25.0).counts > 0]


def score_set(name: str, seed: int, cache: Path, settings: list[str]) -> Iterator[Scores]:
    """Train, index and evaluate each system on one split."""
    database, queries = split(read_photos(DATA / name / "images"), seed)
    for system in SYSTEMS:
        recipe = read_recipe(system).changed([f"seed={seed}", *settings])
        with tempfile.TemporaryDirectory() as folder, bars() as announce:
            run = Path(folder)
            train_run(run, database, recipe, cache_folder=cache, announce=announce)
            index_run(run, database, cache_folder=cache)
            yield evaluate_run(run, queries, heading=HEADINGS.get(name), announce=announce)


def main() -> int:
    keep_freed_memory()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=["timisoara", "cambridge"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="key=value for all systems")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    if not DATA.is_dir():
        print(f"skipped: no photographs in {DATA}; set EVENPLACE_DATA")
        return 0
    command = " ".join(["python benchmarks/photographs.py", *sys.argv[1:]])
    parts, good = [f"# Real photographs\n\n{datetime.date.today()}, `{command}`"], True
    for name in asked.sets:
        with tempfile.TemporaryDirectory() as cache:
            runs = [list(score_set(name, s, Path(cache), asked.set)) for s in range(asked.seeds)]
        systems = [join_scores(found) for found in zip(*runs, strict=True)]
        counts = ", ".join(f"{t} {systems[0].tier(t).queries}" for t in ("head", "middle", "tail"))
        parts += [
            f"## {name}, {asked.seeds} split(s), {systems[0].overall.queries} queries ({counts})",
            markdown(COLUMNS, score_rows(systems)),
            markdown(GAIN_COLUMNS, gain_rows(systems)),
            markdown(GAIN_COLUMNS, gain_rows([systems[1], systems[-1]])),
        ]
        best = systems[-1].predictions
        gains = [compare(best, s.predictions, t).mean for s in systems[:2] for t in (None, 2)]
        good &= min(gains) > 0
    text = "\n\n".join(parts)
    RESULTS.write_text(text + "\n")
    print(text)
    return 0 if good or not asked.check else 1


if __name__ == "__main__":
    sys.exit(main())
