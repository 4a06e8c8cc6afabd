"""What the tail layer adds to descriptors that come in a file: over the same under L2, by tier.

    python -m benchmarks.given timisoara D.npy --seeds 5

D.npy has a row for each photo of the set, in the order of their paths.  Every split by position
becomes a run like anybody's (`from_descriptors`); three ways of asking it are compared on its test
queries.  Results: benchmarks/results/given.md.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.axes import EXACT, LAYER
from evenplace.evaluation import Scores, join_scores
from evenplace.photos import read_photos
from evenplace.run.run import Run
from evenplace.study.data import Split, find_folder, read_splits
from evenplace.study.runs import Findings, Outcome
from evenplace.study.spec import System, find_study
from evenplace.study.write import about, table_text

PLAIN, LOOK = "given + L2", "given + tail layer, second look"
WAYS: dict[str, dict[str, Any]] = {PLAIN: EXACT, "given + tail layer": {"verify": 0}, LOOK: {}}


def ask(split: Split, rows: dict[str, int], given: Any, run: Run) -> list[Scores]:
    """The scores of each way on one split."""
    database, queries = (
        np.asarray(given[[rows[path] for path in photos.paths]])
        for photos in (split.database, split.queries)
    )
    run.index_descriptors(database, split.database, verify=50)
    run.tune([*LAYER, "verify=50"])
    how: dict[str, Any] = {"radius": split.truth.radius, "heading": split.truth.heading}
    return [run.evaluate(split.queries, queries, **how, **way) for way in WAYS.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("descriptors", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    paths = sorted(read_photos(find_folder(asked.data)).paths)
    rows = {path: row for row, path in enumerate(paths)}
    given = np.load(asked.descriptors, mmap_mode="r")
    with TemporaryDirectory() as folder:
        splits = read_splits(asked.data, asked.seeds, Path(folder))
        parts = [
            ask(split, rows, given, Run(Path(folder) / str(seed)))
            for seed, split in enumerate(splits)
        ]
    systems = tuple(System(name, "dapr-m", against=PLAIN) for name in WAYS)
    outcomes = []
    for at, system in enumerate(systems):
        seeds = [replace(part[at], name=system.name) for part in parts]
        joint = join_scores(seeds, one_map=len({one.map for one in splits}) == 1)
        outcomes.append(Outcome(system, tuple(seeds), (), joint))
    study = replace(find_study("layer"), systems=systems)
    found = Findings(study, tuple(splits), tuple(outcomes))
    print(about(found), *(table_text(found, name) for name in ("recall", "gains")), sep="\n\n")


if __name__ == "__main__":
    main()
