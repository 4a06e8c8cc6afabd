"""Every trainable method on the town, with and without low-visit bias: recall, tail, seconds.

    python benchmarks/trainers.py [--photos 600] [--queries 300] [--only NAME …] [--check]

Each method's `-small` recipe is trained on a drawn town and asked its queries, once as it is and
once with --loss low-visit-bias; both search as the recipe says.  A query is right if the first
answer was taken within 25 m; its tier is that of its 20 m cell among all cells (30/40/30 % by
photos), the same for all methods.  One seed and a small town: differences of a few points are
noise, and no method is at its best in a minute.  What is trained already is used again (runs/).
Writes benchmarks/results/trainers.md; with --check, exits 1 unless every method was trained,
with finite losses, and finds more than one photo in ten.
"""

import argparse
import datetime
import json
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from evenplace.city import draw_city
from evenplace.photos import Photos, read_photos
from evenplace.photos.nearby import find_nearby
from evenplace.places import Grid
from evenplace.run.run import Run
from evenplace.training.recipe import Recipe, read_recipe, recipe_names
from evenplace.training.recipe_variants import with_loss
from evenplace.training.trunk_cache import ViewSettings, cache_trunk

RESULTS = Path(__file__).parent / "results" / "trainers.md"
LEFT_OUT = (
    "Not in the table: anyloc trains nothing; image needs DINOv2's weights, which pip does not "
    "bring; dc-cosplace, dapr-c-salad and dapr-c-boq are two networks trained as two."
)


@dataclass(frozen=True)
class Row:
    """One method, one loss."""

    name: str
    loss: str
    recall: float
    tail: float
    seconds: float
    last_loss: float


def town(folder: Path, photos: int, queries: int) -> tuple[Photos, Photos]:
    """The town of seed 0, drawn if need be."""
    if not folder.exists():
        draw_city(folder, photos=photos, queries=queries, seed=0)
    return read_photos(folder / "database"), read_photos(folder / "queries")


def measure(recipe: Recipe, database: Photos, queries: Photos, out: Path) -> Row:
    """Train, index, ask; or read what was found before."""
    run, cache, kept = out / "runs" / recipe.name, out / "cache", out / f"{recipe.name}.json"
    if kept.exists():
        return Row(**json.loads(kept.read_text()))
    began = time.process_time()
    trained = Run(run).train(database, recipe=recipe, cache_folder=cache)
    seconds = time.process_time() - began
    Run(run).index(database, cache_folder=cache)
    found = Run(run).search().search(describe(run, queries, cache), k=1).rows[:, 0]
    right = near(run, queries, found)
    grid = Grid(20).partition(database)
    place = grid.locate(queries)
    tail = right[(place >= 0) & (grid.tiers[place] == 2)]
    row = Row(
        recipe.name.removesuffix("+lb").removesuffix("-small"),
        recipe.loss.name,
        100 * float(right.mean()),
        100 * float(tail.mean()),
        seconds,
        trained.losses[-1],
    )
    kept.write_text(json.dumps(vars(row)))
    return row


def describe(run: Path, queries: Photos, cache: Path) -> NDArray[np.float32]:
    """The queries' descriptors, their trunk cached once for all methods that share one."""
    network = Run(run).files.network
    maps = cache_trunk(network, queries.paths, ViewSettings(), cache)
    rows = np.arange(len(queries))
    size = network.batch or 64
    with torch.inference_mode():
        parts = [
            network.describe(maps.plain(rows[i : i + size])).numpy()
            for i in range(0, len(rows), size)
        ]
    return np.concatenate(parts)


def near(run: Path, queries: Photos, found: NDArray[np.int64]) -> NDArray[np.bool_]:
    index = Run(run).search().index.photos
    truth = find_nearby(index, queries, 25.0)
    return np.array([row in truth.of(query) for query, row in enumerate(found)])


def table(rows: list[Row]) -> list[str]:
    lines = ["| method | loss | R@1 | with LB | tail | with LB | s | with LB |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for plain, biased in zip(rows[::2], rows[1::2], strict=True):
        lines.append(
            f"| {plain.name} | {plain.loss} | {plain.recall:.1f} | {biased.recall:.1f} | "
            f"{plain.tail:.1f} | {biased.tail:.1f} | {plain.seconds:.0f} | {biased.seconds:.0f} |"
        )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=int, default=600)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--only", nargs="*", default=None)
    parser.add_argument("--check", action="store_true")
    wanted = parser.parse_args()
    out = Path("runs/trainers")
    database, queries = town(
        out / f"town-{wanted.photos}-{wanted.queries}", wanted.photos, wanted.queries
    )
    names = [name for name in recipe_names() if name.endswith("-small")]
    rows: list[Row] = []
    for name in names:
        if wanted.only and name.removesuffix("-small") not in wanted.only:
            continue
        for recipe in (read_recipe(name), with_loss(read_recipe(name), "low-visit-bias")):
            rows.append(measure(recipe, database, queries, out))
            print(rows[-1], flush=True)
    grid = Grid(20).partition(database)
    place = grid.locate(queries)
    tail = int(np.sum((place >= 0) & (grid.tiers[place] == 2)))
    head = [
        f"`python benchmarks/trainers.py {' '.join(sys.argv[1:])}`, {datetime.date.today()}, "
        "seed 0, "
        f"{torch.get_num_threads()} thread(s), processor seconds of `train` (with the trunk's "
        f"cache where it was not there yet); {len(database)} photos, {len(queries)} queries, "
        f"{tail} of them in the tail.",
        "",
    ]
    text = "\n".join(["# Trainers", "", *head, *table(rows), "", LEFT_OUT]) + "\n"
    print(text)
    if not wanted.only:
        RESULTS.write_text(text)
    fine = all(math.isfinite(row.last_loss) and row.recall > 10 for row in rows)
    return int(wanted.check and not fine)


if __name__ == "__main__":
    sys.exit(main())
