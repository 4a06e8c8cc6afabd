"""Memory and time of tuning a run on fixed descriptors, at a long tail of 300 to 1.

    python benchmarks/tune.py --photos 100000 --dim 512
    python benchmarks/tune.py --photos 100000 --dim 8448 --set axes=half-whitened

Draws a database whose places hold 1 to 300 photos, indexes it and tunes; each step in a process
of its own, so that its peak is its own.  Memory is what the process holds itself (RssAnon, looked
at 20 times a second), and beside it the most that was resident, the pages of files included
(VmHWM).  Results: benchmarks/results/tune.md.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import evenplace as ep
from evenplace.photos.read import read_rows

_CELL = 20.0
_RATIO = 300
_WAYS = 1024  # in which places differ


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
    basis = dice.normal(size=(_WAYS, dim)).astype(np.float32)
    basis /= np.arange(1, _WAYS + 1, dtype=np.float32)[:, None]  # as real ones fall
    centres = dice.normal(size=(len(counts), _WAYS)).astype(np.float32)
    shape = (len(place), dim)
    out = np.lib.format.open_memmap(folder / "database.npy", "w+", np.float32, shape)
    for start in range(0, len(place), 4096):
        mine = centres[place[start : start + 4096]]
        mine = (mine + dice.normal(size=mine.shape).astype(np.float32)) @ basis
        out[start : start + 4096] = mine / np.linalg.norm(mine, axis=1, keepdims=True)


def resident(name: str) -> float:
    """A line of what the system counts for this process, GB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 2**20


def step(folder: Path, settings: list[str]) -> None:
    """One process: index, or tune where there are settings, and say what it took."""
    most, over = [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            most[0] = max(most[0], resident("RssAnon"))

    threading.Thread(target=watch, daemon=True).start()
    began, run = (time.monotonic(), time.process_time()), ep.Run(folder / "run")
    if settings:
        learned = run.tune(settings)
        assert learned is not None
    else:
        photos = read_rows(folder / "database.csv")
        run.index_descriptors(np.load(folder / "database.npy", mmap_mode="r"), photos)
    over.set()
    print(
        f"{time.monotonic() - began[0]:.0f} s, {time.process_time() - began[1]:.0f} s of "
        f"processors, {most[0]:.2f} GB of its own, {resident('VmHWM'):.2f} GB with files' pages"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--set", action="append", help="of the recipe's [search], as `tune` takes")
    parser.add_argument("--folder", type=Path, help="where it is drawn; a temporary one")
    parser.add_argument("--step", choices=("index", "tune"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    settings = asked.set or ["axes=given"]
    if asked.step:
        step(asked.folder, settings if asked.step == "tune" else [])
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "database.npy").exists():
            draw(folder, asked.photos, asked.dim)
        print(f"{asked.photos:,} photos of {asked.dim:,} numbers, 300:1, {' '.join(settings)}")
        for name in ("index", "tune"):
            words = [sys.executable, __file__, "--step", name, "--folder", str(folder)]
            words += [word for one in settings for word in ("--set", one)]
            said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
            print(f"{name}: {said.strip()}", flush=True)


if __name__ == "__main__":
    main()
