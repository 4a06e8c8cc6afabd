"""What training costs beside the network, and what the trunk's cache saves.

    python benchmarks/train.py [--photos 256] [--check]

1. Loss, sampler and prior against a whole step, for a classifier (dapr-m: 64 photos, 400 places)
   and for pairs (Multi-Similarity with low-visit bias, 16 places x 4 photos), on fresh photos:
   decoding, EfficientNet-Lite0's frozen blocks and its trained ones, backward, AdamW.
2. An epoch from the cache against an epoch from files, the same blocks frozen in both, the same
   batches, augmentation on.
Medians of alternating rounds in one process.  Writes benchmarks/results/train.md; with --check,
exits 1 unless the first is at most 5 % and the second at least 10 times.
"""

import argparse
import datetime
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from evenplace.networks.network import build_network
from evenplace.photos import Photos
from evenplace.training.augment import Augmentation
from evenplace.training.distributed import Ranks
from evenplace.training.fit import Session
from evenplace.training.objective import Setup
from evenplace.training.photo_source import PhotoSource
from evenplace.training.recipe import Recipe, cut_places, read_recipe
from evenplace.training.recipe_variants import with_loss
from evenplace.training.trunk_cache import ViewSettings, cache_trunk

RESULTS = Path(__file__).parent / "results" / "train.md"


def draw(folder: Path, count: int) -> Photos:
    """Photos of 640 x 480 on a map of 400 cells, most of them in a few."""
    dice = np.random.default_rng(0)
    spots = 400 * dice.beta(0.7, 1.5, (count, 2))
    paths = []
    for number in range(count):
        coarse = dice.integers(0, 255, (12, 16, 3)).astype(np.uint8)
        picture = Image.fromarray(coarse).resize((640, 480), Image.Resampling.BICUBIC)
        paths.append(str(folder / f"{number:05d}.jpg"))
        picture.save(paths[-1], quality=90)
    east, north = spots.T
    return Photos.from_arrays(east=east + 5e5, north=north + 4e6, zone=34, path=paths)


def session(recipe: Recipe, photos: Photos, folder: Path, cached: bool) -> Session:
    network = build_network(recipe.network)
    views = ViewSettings(recipe.training.views)
    cache = cache_trunk(network, photos.paths, views, folder / "cache") if cached else None
    source = PhotoSource(network, photos.paths, cache=cache, how=Augmentation(), ranks=Ranks())
    recipe = replace(recipe, training=replace(recipe.training, cached=cached, start="random"))
    places = cut_places(recipe.places, photos)
    run = folder / f"{recipe.name}-{cached}"
    setup = Setup(recipe, network, photos, places, source, Ranks(), run)
    return Session(setup, None, lambda done, total: None)


def share_of_step(recipe: Recipe, photos: Photos, folder: Path, rounds: int) -> tuple[float, float]:
    """Milliseconds of loss, sampler and prior, and of a whole step from files."""
    one = session(recipe, photos, folder, cached=False)
    objective, spent, whole = one.objective, [], []
    for number in range(rounds):
        began = time.perf_counter()
        objective.begin(number)
        steps = objective.plan(number, 0)
        planning = (time.perf_counter() - began) / len(steps)
        step = steps[0]
        began = time.perf_counter()
        ((step, maps),) = one.setup.source.batches([step], (0, number))
        one._learn(step, maps, 0, 1, (0, number, 0))
        whole.append(time.perf_counter() - began + planning)
        with torch.no_grad():
            described = one.network.describe(maps)
        described.requires_grad_(True)
        labels = torch.from_numpy(step.labels)
        began = time.perf_counter()
        objective(described, labels, step).backward()  # type: ignore[no-untyped-call]
        spent.append(time.perf_counter() - began + planning)
    return 1e3 * statistics.median(spent), 1e3 * statistics.median(whole)


def epochs(recipe: Recipe, photos: Photos, folder: Path, rounds: int) -> tuple[float, float]:
    """Seconds of an epoch from the cache, and from files."""
    pair = [session(recipe, photos, folder, cached) for cached in (True, False)]
    times: list[list[float]] = [[], []]
    for number in range(rounds):
        for at, one in enumerate(pair):
            one.position.epoch = number
            began = time.perf_counter()
            one._epoch(number, rounds)
            times[at].append(time.perf_counter() - began)
    return statistics.median(times[0]), statistics.median(times[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    wanted = parser.parse_args()
    recommended, usual = read_recipe("dapr-m"), read_recipe("cosface")
    dapr = replace(recommended, network=usual.network)  # a step that trains the last two stages
    pairs = with_loss(replace(read_recipe("salad-small"), network=usual.network), "low-visit-bias")
    lines = ["| | ms or s | beside | |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as name:
        photos = draw(Path(name), wanted.photos)
        shares = []
        for recipe in (dapr, pairs):
            spent, whole = share_of_step(recipe, photos, Path(name), wanted.rounds + 2)
            shares.append(spent / whole)
            lines.append(
                f"| {recipe.loss.name}, sampler, prior | {spent:.1f} ms | step of {whole:.0f} ms | "
                f"{spent / whole:.1%} |"
            )
        gains = []
        for recipe in (recommended, usual):
            cached, fresh = epochs(recipe, photos, Path(name), wanted.rounds)
            gains.append(fresh / cached)
            trains = "projection" if recipe is recommended else "last two stages and projection"
            lines.append(
                f"| cached epoch of {recipe.name}, {trains} train | {cached:.2f} s | "
                f"from files {fresh:.2f} s | {fresh / cached:.1f} times |"
            )
    asked = " ".join(["python -m benchmarks.train", *sys.argv[1:]])
    head = f"`{asked}`, {datetime.date.today()}, seed 0, "
    head += f"{torch.get_num_threads()} threads, torch {torch.__version__}, "
    head += f"{wanted.photos} photos of 640 x 480."
    text = "\n".join(["# Training", "", head, "", *lines]) + "\n"
    print(text)
    RESULTS.write_text(text)
    return int(wanted.check and (max(shares) > 0.05 or gains[0] < 10))


if __name__ == "__main__":
    sys.exit(main())
