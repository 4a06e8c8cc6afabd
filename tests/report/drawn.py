"""Two systems evaluated on drawn photos, with run folders a page can look into; no model."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenplace.evaluation import Scores, Truth, score
from evenplace.photos import Photos, read_photos
from evenplace.places import Grid
from evenplace.retrieval import Search
from evenplace.retrieval.build import index_descriptors
from tests.drawn import draw_photos


def describe(photos: Photos, noise: float, seed: int) -> NDArray[np.float32]:
    """What a network might say: a direction a cell, neighbours alike, and noise."""
    cells = np.floor(photos.positions / 20).astype(np.int64)
    base = np.stack([np.random.default_rng(tuple(cell)).normal(size=24) for cell in cells])
    drawn = base + noise * np.random.default_rng(seed).normal(size=base.shape)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), np.float32)


def evaluated(
    folder: Path, photos: int = 160, queries: int = 60
) -> tuple[list[Scores], list[Path]]:
    """A noisy baseline and a better system, both on the same crowded little town."""
    rng = np.random.default_rng(0)
    crowd = rng.normal(60, 18, (photos * 2 // 3, 2))
    spots = np.concatenate([crowd, rng.uniform(0, 200, (photos - len(crowd), 2))]).clip(0, 199)
    draw_photos(folder / "database", spots)
    draw_photos(folder / "queries", rng.uniform(0, 200, (queries, 2)), seed=1)
    database, asked = read_photos(folder / "database"), read_photos(folder / "queries")
    places = Grid(20).partition(database)
    systems, runs = [], []
    for number, (name, noise) in enumerate((("base", 2.2), ("ours <new>", 1.4))):
        run = folder / f"run-{number}"
        described = describe(database, noise, number)
        index = index_descriptors(described, database, places, run / "index")
        lines = [{"epoch": epoch, "loss": 3.0 / (epoch + 1)} for epoch in range(4)]
        (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        engine = Search(index, shortlist=10)
        found = score(engine, asked, describe(asked, noise, 10 + number), Truth(25), name=name)
        systems.append(replace(found, name=name))
        runs.append(run)
    return systems, runs
