"""How fast and in how much memory a city becomes places.

    python benchmarks/partition.py --check                  # SF-XL's size: 41.2 million photos
    python benchmarks/partition.py --photos 2000000         # a quick look

Times are of the processor, so that a shared machine matters less, and the systems take turns, so
that what is left of it hits them alike.  The loop is what the field's repositories do: tuples as
keys of dictionaries, one photo after the other.
"""

import argparse
import datetime
import os
import platform
import resource
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from evenplace.photos import Photos
from evenplace.photos.layouts.sfxl import read_names
from evenplace.photos.scan import picture_paths
from evenplace.places import Grid, KdTree, Places, Quadtree

CROPS = 12  # of a panorama: SF-XL has 3.43 million panoramas
LOOPED = 1_000_000
TURNS = 3
RESULTS = Path(__file__).parent / "results" / "partition.md"
GRID = Grid(cell=10, min_photos=10, groups=5, heading_bins=12, heading_groups=2)  # CosPlace's


@dataclass
class Clock:
    """Seconds of the processor and of the wall, a turn each."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def time(self, work: Callable[[], object]) -> object:
        cpu, wall = time.process_time(), time.perf_counter()
        result = work()
        self.cpu.append(time.process_time() - cpu)
        self.wall.append(time.perf_counter() - wall)
        return result

    @property
    def seconds(self) -> float:
        return float(np.median(self.cpu))


@dataclass(frozen=True)
class Claim:
    """A figure that was asked for, and what was measured."""

    name: str
    measured: float
    wanted: float
    at_least: bool
    unit: str

    @property
    def holds(self) -> bool:
        return self.measured >= self.wanted if self.at_least else self.measured <= self.wanted

    def __str__(self) -> str:
        side = "at least" if self.at_least else "at most"
        verdict = "holds" if self.holds else "FAILS"
        return (
            f"{self.name}: {self.measured:,.2f} {self.unit}"
            f" ({side} {self.wanted:,.0f} {self.unit}): {verdict}"
        )


def draw_city(count: int, seed: int) -> Photos:
    """Panoramas along streets of very different fame, twelve crops each: about 300:1 on 20 m."""
    rng = np.random.default_rng(seed)
    streets = 6000
    length = rng.uniform(80, 600, streets)
    fame = length * np.clip(rng.lognormal(1.2, 1.1, streets), 0.2, 60)
    corner = rng.integers(0, 130, (streets, 2)) * 100.0
    along = rng.random(streets) < 0.5
    east, north = np.empty(count), np.empty(count)
    heading = np.empty(count, np.float32)
    step = 100_000 * CROPS
    for start in range(0, count, step):
        rows = min(step, count - start)
        panos = -(-rows // CROPS)
        street = rng.choice(streets, panos, p=fame / fame.sum())
        at = rng.random(panos) * length[street]
        offset = np.where(along[street], (at, np.zeros(panos)), (np.zeros(panos), at))
        place = corner[street].T + offset + rng.normal(0, 2.5, (2, panos)) + [[545e3], [4175e3]]
        east[start : start + rows] = np.repeat(place[0], CROPS)[:rows]
        north[start : start + rows] = np.repeat(place[1], CROPS)[:rows]
        turn = np.repeat(rng.uniform(0, 360, panos), CROPS) + np.tile(np.arange(CROPS) * 30, panos)
        heading[start : start + rows] = np.mod(turn, 360)[:rows]
    return Photos.from_arrays(east=east, north=north, zone=10, heading=heading)


def loop_over_photos(photos: Photos) -> tuple[int, int]:
    """Classes, groups, counts and tiers, the straightforward way."""
    M, alpha, N, L = 10, 30, 5, 2
    rows = zip(photos.east.tolist(), photos.north.tolist(), photos.heading.tolist(), strict=True)
    photos_of_class: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for row, (east, north, heading) in enumerate(rows):
        class_id = (int(east // M * M), int(north // M * M), int(heading // alpha * alpha))
        photos_of_class[class_id].append(row)
    kept = {key: found for key, found in photos_of_class.items() if len(found) >= 10}
    classes_of_group: dict[tuple[int, int, int], list[tuple[int, int, int]]] = defaultdict(list)
    for key in kept:
        group = (key[0] % (M * N) // M, key[1] % (M * N) // M, key[2] % (alpha * L) // alpha)
        classes_of_group[group].append(key)
    ranked = sorted(kept, key=lambda key: -len(kept[key]))
    edge = len(ranked) * 3 // 10
    tier = {key: 0 if rank < edge else 2 if rank >= len(ranked) - edge else 1
            for rank, key in enumerate(ranked)}  # fmt: skip
    return len(classes_of_group), len(tier)


def draw_names(count: int, seed: int) -> pa.Array:
    rng = np.random.default_rng(seed)
    east, north = rng.uniform(545e3, 558e3, count), rng.uniform(4175e3, 4188e3, count)
    heading = rng.integers(0, 360, count)
    return pa.array(
        [
            f"sf_xl/processed/test/database/@{e:010.2f}@{n:010.2f}@10@S@037.77000@-122.42000"
            f"@pano{row:08d}@@{h:03d}@@@@201409@@.jpg"
            for row, (e, n, h) in enumerate(zip(east, north, heading, strict=True))
        ],
        pa.large_string(),
    )


def scan_folder(files: int) -> tuple[Clock, int]:
    """Walk a folder of empty files with SF-XL names, twenty sub-folders."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(20):
            (Path(folder) / f"{number:02d}").mkdir()
        for number in range(files):
            name = f"{folder}/{number % 20:02d}/@{number:010.2f}@4184000.00@10@S@@@@@@@@@@@.jpg"
            os.close(os.open(name, os.O_CREAT))
        clock = Clock()
        found = clock.time(lambda: picture_paths(Path(folder)))
        assert isinstance(found, pa.Array)
        return clock, len(found)


def peak_gigabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e9


def measure(photos: Photos, turns: int) -> tuple[dict[str, Clock], dict[str, str], float]:
    """All partitions in turn; the loop on a million of the same photos, spread evenly."""
    few = photos[:: max(1, len(photos) // LOOPED)][:LOOPED]
    works: dict[str, Callable[[], object]] = {
        "grid, headings, groups": lambda: GRID.partition(photos),
        "kd-tree": lambda: KdTree(max_photos=320).partition(photos),
        "quadtree": lambda: Quadtree(max_photos=320).partition(photos),
        "D&C grid, no headings": lambda: Grid(min_photos=10, groups=2).partition(photos),
    }
    clocks = {name: Clock() for name in ("loop", *works)}
    made: dict[str, str] = {}
    clocks["grid, headings, groups"].time(works["grid, headings, groups"])
    peak = peak_gigabytes()  # of the grid alone, with the photos
    for _ in range(turns):
        clocks["loop"].time(lambda: loop_over_photos(few))
        for name, work in works.items():
            places = clocks[name].time(work)
            assert isinstance(places, Places)
            made[name] = (
                f"{len(places):,} places, {places.counts.max():,} to {places.counts.min():,} photos"
            )
    made["loop"] = f"{len(few):,} photos"
    return clocks, made, peak


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--photos", type=int, default=41_200_000)
    parser.add_argument("--names", type=int, default=2_800_000)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true", help="exit 0 only when every claim holds")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    asked = parser.parse_args()
    photos = draw_city(asked.photos, asked.seed)
    clocks, made, peak = measure(photos, asked.turns)
    names, written = Clock(), draw_names(asked.names, asked.seed)
    for _ in range(asked.turns):
        names.time(lambda: read_names(written))
    scan, files = scan_folder(asked.files)
    grid = clocks["grid, headings, groups"].seconds
    looped = min(LOOPED, len(photos))
    ratio = (clocks["loop"].seconds / looped) / (grid / len(photos))
    claims = [
        Claim("grid against the loop, per photo", ratio, 30, True, "times faster"),
        Claim("peak memory with the grid", peak, 4, False, "GB"),
        Claim("kd-tree against the grid", clocks["kd-tree"].seconds / grid, 4, False, "times"),
        Claim("quadtree against the grid", clocks["quadtree"].seconds / grid, 4, False, "times"),
        Claim("SF-XL names", asked.names / names.seconds, 500_000, True, "a second"),
    ]
    report = report_of(asked, clocks, made, claims, names, (files / scan.seconds, files))
    print(report)
    if asked.write:
        RESULTS.write_text(report, encoding="utf-8")
    return 0 if not asked.check or all(claim.holds for claim in claims) else 1


def report_of(
    asked: argparse.Namespace,
    clocks: dict[str, Clock],
    made: dict[str, str],
    claims: list[Claim],
    names: Clock,
    scan: tuple[float, int],
) -> str:
    command = f"python benchmarks/partition.py --photos {asked.photos} --seed {asked.seed}"
    lines = [
        "# From photos to places", "",
        f"{datetime.date.today()}, `{command} --turns {asked.turns} --check`, "
        f"Python {platform.python_version()}, numpy {np.__version__}, {os.cpu_count()} cores, "
        "shared. Seconds of the processor, median of the turns; the wall clock beside it.", "",
        "| | processor s | wall s | ns a photo | made |", "|---|---:|---:|---:|---|",
    ]  # fmt: skip
    for name, clock in clocks.items():
        count = min(LOOPED, asked.photos) if name == "loop" else asked.photos
        lines.append(
            f"| {name} | {clock.seconds:.2f} | {np.median(clock.wall):.2f} "
            f"| {clock.seconds / count * 1e9:.0f} | {made[name]} |"
        )
    lines += [
        f"| {asked.names:,} names | {names.seconds:.2f} | {np.median(names.wall):.2f} "
        f"| {names.seconds / asked.names * 1e9:.0f} | |",
        "", f"A walk over {scan[1]:,} files: {scan[0]:,.0f} a second.", "",
        *(f"- {claim}" for claim in claims), "",
    ]  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
