"""Small things every test may need: unit vectors, photos of dots, a network without weights."""

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from evenplace.photos import Photos
from evenplace.retrieval.calibration import Way
from evenplace.retrieval.rehearsal import Rehearsal
from evenplace.retrieval.rerank import Reranker, build_reranker

EAST, NORTH, ZONE = 500_000.0, 4_000_000.0, 34


def unit(count: int, dim: int, seed: int) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).normal(size=(count, dim))
    lengths = np.linalg.norm(drawn, axis=1, keepdims=True)
    return np.asarray(drawn / lengths, np.float32)


def photos_at(offsets: NDArray[np.float64], heading: float = 0.0) -> Photos:
    """Photos without files, at metres from a corner of the map."""
    return Photos.from_arrays(
        east=EAST + offsets[:, 0],
        north=NORTH + offsets[:, 1],
        zone=ZONE,
        heading=np.full(len(offsets), heading, np.float32),
        path=[f"photo-{number:04d}.jpg" for number in range(len(offsets))],
    )


def draw_photos(folder: Path, spots: NDArray[np.float64], seed: int = 0, days: int = 1) -> None:
    """Write a JPEG for each spot, coloured by its 20 m cell, with an SF-XL name."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (x, y) in enumerate(spots):
        cell = np.random.default_rng((int(x // 20), int(y // 20)))
        colours = cell.integers(0, 255, (4, 4, 3)).astype(np.int64)
        noise = np.random.default_rng((seed, number)).integers(-20, 20, (4, 4, 3))
        pixels = np.clip(colours + noise, 0, 255).astype(np.uint8)
        image = Image.fromarray(pixels).resize((64, 64), Image.Resampling.BICUBIC)
        name = f"@{EAST + x:010.2f}@{NORTH + y:010.2f}@{ZONE}@T@036.00000@0021.00000"
        image.save(
            folder / f"{name}@{seed}x{number}@@000@@@@2020{1 + number % days:02d}@@.jpg", quality=90
        )


def draw_split(folder: Path, database: int, queries: int) -> Path:
    """Photos at random spots of a square of 100 m, in folder/database and folder/queries.

    The database shows two days, so that a run of it is calibrated.
    """
    dice = np.random.default_rng(0)
    draw_photos(folder / "database", dice.uniform(0, 100, (database, 2)), days=2)
    draw_photos(folder / "queries", dice.uniform(0, 100, (queries, 2)), seed=1)
    return folder


def rehearsed(
    confidence: ArrayLike, right: ArrayLike, rule: str | Reranker, source: str, shortlist: int = 20
) -> Rehearsal:
    """A rehearsal whose right answers are where the photo was and the others a kilometre off."""
    rule = build_reranker(rule) if isinstance(rule, str) else rule
    sure = np.asarray(confidence, float)
    metres = np.where(right, 0.0, 1000.0)
    flat = np.zeros(len(metres))
    columns = {"confidence": sure, "facing": sure, "metres": metres, "degrees": flat}
    columns |= {"likeness": flat, "tier": flat, "kind": flat}
    return Rehearsal.of(columns, Way(repr(rule), source, shortlist))
