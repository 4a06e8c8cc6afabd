"""The memory of indexing: wide descriptors of many photos, described in parts and laid out.

    python -m benchmarks.index_memory [--photos 200000] [--dim 8448] [--check]

A stub in place of a network draws unit descriptors near the direction of each photo's place; all
else is what `evenplace index` does: `describe_parts` writes them a thousand photos a file, and the
index is laid out from those files.  Memory is the most that was resident, by the system's count
(VmHWM).  Writes benchmarks/results/index_memory.md; with --check, exits 1 above 2 GB.  Needs
6 bytes of disk for each number: 10 GB.
"""

import argparse
import datetime
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evenplace.describe.describer import Described
from evenplace.describe.descriptor_parts import describe_parts
from evenplace.photos.table import Photos
from evenplace.places import Grid
from evenplace.retrieval.build import index_descriptors

RESULTS = Path(__file__).parent / "results" / "index_memory.md"
MOST = 2.0  # GB
PER_PLACE = 25


class Stub:
    """Describes a photo by its number, which is its name."""

    batch, image_size, fingerprints = 64, (224, 224), ("stub",)

    def __init__(self, dim: int) -> None:
        self.dims = (dim,)

    def describe(self, paths: Sequence[str]) -> Described:
        found = np.empty((len(paths), self.dims[0]), np.float32)
        for row, path in enumerate(paths):
            place = np.random.default_rng(int(path) // PER_PLACE)
            own = np.random.default_rng((int(path), 1))
            drawn = place.standard_normal(self.dims[0], np.float32)
            drawn += own.standard_normal(self.dims[0], np.float32)
            found[row] = drawn / np.linalg.norm(drawn)
        return Described(found, np.arange(len(paths)), (), self.dims)


def index(folder: Path, photos: int, dim: int) -> tuple[float, float]:
    """Seconds of describing, and of laying out."""
    number = np.arange(photos)
    side = int((photos / PER_PLACE) ** 0.5) + 1
    place = number // PER_PLACE
    table = Photos.from_arrays(
        east=500_000.0 + 20 * (place % side) + 10,
        north=4_000_000.0 + 20 * (place // side) + 10,
        zone=34,
        path=[str(one) for one in number],
    )
    began = time.perf_counter()
    stub = Stub(dim)
    parts = describe_parts(stub, table.paths, folder / "parts")  # type: ignore[arg-type]
    described = time.perf_counter()
    places = Grid(20).partition(table)
    index_descriptors(parts.descriptors, table, places, folder / "index", model="stub")
    return described - began, time.perf_counter() - described


def resident() -> float:
    """The most memory of this process so far, GB."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 2**20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=int, default=200_000)
    parser.add_argument("--dim", type=int, default=8448)
    parser.add_argument("--scratch", type=Path, help="where there is room")
    parser.add_argument("--check", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=wanted.scratch) as folder:
        describing, laying = index(Path(folder), wanted.photos, wanted.dim)
    most, all_of_it = resident(), wanted.photos * wanted.dim * 4 / 2**30
    text = (
        "# Memory of indexing\n\n"
        f"`python -m benchmarks.index_memory`, {datetime.date.today()}: {wanted.photos:,} photos "
        f"of {wanted.dim:,} numbers ({all_of_it:.1f} GB as float32) in at most {most:.2f} GB of "
        f"memory; {describing:.0f} s to draw and write them, {laying:.0f} s to lay them out, on a "
        "machine with other work.\n"
    )
    print(text)
    RESULTS.write_text(text)
    return int(wanted.check and most > MOST)


if __name__ == "__main__":
    sys.exit(main())
