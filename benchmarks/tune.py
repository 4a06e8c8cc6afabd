"""Memory and time of tuning a run on fixed descriptors, at a long tail of 300 to 1.

    python benchmarks/tune.py --photos 100000 --dim 512
    python benchmarks/tune.py --photos 100000 --dim 8448 --prototypes low-visit-bias

Draws a database whose places hold 1 to 300 photos, indexes it and tunes; each step in a process
of its own, so that its peak is its own.  Results: benchmarks/results/tune.md.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import evenplace as ep

_CELL = 20.0
_RATIO = 300


def draw(folder: Path, photos: int, dim: int) -> None:
    """Places on a square map with 300 to 1 photos, and descriptors that resemble their place's."""
    dice = np.random.default_rng(0)
    counts = np.maximum(1, _RATIO / np.arange(1, photos + 1) ** 0.5).astype(np.int64)
    counts = counts[: int(np.searchsorted(np.cumsum(counts), photos)) + 1]
    place = np.repeat(dice.permutation(len(counts)), counts)[:photos]
    side = int(len(counts) ** 0.5) + 1
    corner = np.stack([place % side, place // side], axis=1) * _CELL
    spots = corner + dice.uniform(0, _CELL, (len(place), 2))
    rows = [f"{x + 5e5:.2f},{y + 4e6:.2f},34" for x, y in spots]
    (folder / "database.csv").write_text("\n".join(["east,north,zone", *rows]))
    centres = dice.normal(size=(len(counts), dim)).astype(np.float32)
    shape = (len(place), dim)
    out = np.lib.format.open_memmap(folder / "database.npy", "w+", np.float32, shape)
    for start in range(0, len(place), 4096):
        mine = centres[place[start : start + 4096]]
        mine = mine + dice.normal(size=mine.shape).astype(np.float32)
        out[start : start + 4096] = mine / np.linalg.norm(mine, axis=1, keepdims=True)


def tune(folder: Path, prototypes: str) -> None:
    """One process: tune, and say what it took."""
    began = time.monotonic()
    learned = ep.Run.open(folder / "run").tune([f"prototypes={prototypes}"])
    assert learned is not None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    seconds = time.monotonic() - began
    print(
        json.dumps(
            {"seconds": seconds, "GB": peak, "calibration": str(learned.rehearsal.calibrate())}
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--prototypes", default="means", help="or softmax, low-visit-bias, best")
    parser.add_argument("--folder", type=Path, help="where it is drawn; a temporary one")
    parser.add_argument("--step", choices=("tune",), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.step:
        tune(asked.folder, asked.prototypes)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        draw(folder, asked.photos, asked.dim)
        table, rows = (str(folder / f"database.{kind}") for kind in ("csv", "npy"))
        words = [sys.executable, "-m", "evenplace", "index", str(folder / "run")]
        words += ["--database", table, "--descriptors", rows]
        subprocess.run(words, check=True)
        step = [sys.executable, __file__, "--step", "tune", "--folder", str(folder)]
        step += ["--prototypes", asked.prototypes]
        said = json.loads(subprocess.run(step, check=True, capture_output=True).stdout)
        print(
            f"{asked.photos:,} photos of {asked.dim} numbers, 300:1, prototypes "
            f"{asked.prototypes}: {said['seconds']:.0f} s, "
            f"peak {said['GB']:.2f} GB; {said['calibration']}"
        )


if __name__ == "__main__":
    main()
