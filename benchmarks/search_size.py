"""Search within limits: fewer bytes a photo, exact evaluation in little memory, quick updates."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.search_parts import ROOT, City
from benchmarks.search_table import Cell, most, plain
from benchmarks.search_town import FallingTown
from evenplace.photos import Photos
from evenplace.places import Grid
from evenplace.retrieval import Search, open_index
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.update import add_photos

_EXACT = """
import json, resource, sys, time
import numpy as np
from pathlib import Path
from benchmarks.search_town import unit
from evenplace.evaluation import Truth, score
from evenplace.retrieval import Search, open_index
resource.setrlimit(resource.RLIMIT_AS, (2 * 10**9,) * 2)
index = open_index(sys.argv[1])
rng = np.random.default_rng(0)
rows = np.sort(rng.permutation(len(index))[:int(sys.argv[2])])
asked = unit(index.vectors(rows) + 0.02 * rng.normal(size=(len(rows), index.dim)))
engine = Search(index, exact=True)
began = time.perf_counter()
engine.store.nearest(asked, 256)
scan = time.perf_counter() - began
found = score(engine, index.photos[rows], asked, Truth(25))
whole = time.perf_counter() - began - scan
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
print(json.dumps(dict(scan=scan, whole=whole, peak=peak, recall=found.recall[1])))
"""
_FLAT = """
import json, sys, time
import faiss, numpy as np
from benchmarks.search_town import unit
from evenplace.retrieval import open_index
index = open_index(sys.argv[1])
rng = np.random.default_rng(0)
rows = np.sort(rng.permutation(len(index))[:int(sys.argv[2])])
asked = unit(index.vectors(rows) + 0.02 * rng.normal(size=(len(rows), index.dim)))
flat = faiss.IndexFlatL2(index.dim)
for start in range(0, len(index), 65_536):
    flat.add(index.vectors(np.arange(start, min(start + 65_536, len(index)))))
began = time.perf_counter()
flat.search(asked, 256)
print(json.dumps(dict(scan=time.perf_counter() - began)))
"""


def fewer_bytes(folder: Path, dim: int = 8448, photos: int = 24_000) -> list[Cell]:
    """8,448 numbers in 512 bytes: R@1 of other photos of the places, overall and in the tail.

    Of a town where photos differ along all axes (`FallingTown`).  Up to 20,000 photos the impostor
    terms, which are not asked about here, take all pairs.
    """
    city = City(photos, dim, folder / "falling", FallingTown)
    vectors, table = city.draw(), city.town.photos()
    places = Grid(20).partition(table)
    labels = np.random.default_rng(5).integers(city.town.count, size=2000)
    queries = city.town.looks(labels, 78, far=1.5)
    spots = city.town.cells[labels] * 20.0 + 10 + [500_000, 4_000_000]
    own = places.locate(spots)
    tail = places.tiers[own] == 2
    cells, found = [], {}
    for keep in (None, "int8", "pca512-int8", 512, 64):
        index = index_descriptors(vectors, table, places, city.home / "few", keep=keep)
        rows = Search(index, exact=True).search(queries, 1).rows[:, 0]
        right = index.places_of(rows) == own
        found[keep] = 100 * right.mean(), 100 * right[tail].mean()
        sizes = " + ".join(f"{one.width:,}" for one in index.columns.values())
        cells.append(
            plain(f"{dim:,} numbers as {index.codec.name}, {sizes} bytes: R@1, in the tail",
                  f"{found[keep][0]:.2f}, {found[keep][1]:.2f}")
        )  # fmt: skip
    shutil.rmtree(city.home / "few")
    lost, tail_lost = (float(a - b) for a, b in zip(found[None], found[512], strict=True))
    cells.append(most("points of R@1 that 512 bytes lose of float16's", lost, 0.5))
    return [*cells, most("the same in the tail", tail_lost, 0.5)]


def exact(folder: Path, photos: int = 1_000_000, dim: int = 512, queries: int = 1000) -> list[Cell]:
    """Exact evaluation under a limit of 2 GB of addresses, beside faiss's flat search."""
    city = City(photos, dim, folder)
    city.index()
    ours, theirs = (_run(code, city.home / "index", queries) for code in (_EXACT, _FLAT))
    return [
        plain(f"{queries:,} queries × {photos:,} photos × {dim}, R@1", f"{ours['recall']:.1f}"),
        most("most resident under a limit of 2 GB of addresses, GB", ours["peak"], 2.0),
        plain("the scan, seconds; faiss IndexFlatL2", f"{ours['scan']:.1f}; {theirs['scan']:.1f}"),
        most("the scan over faiss's", ours["scan"] / theirs["scan"], 1.0),
        plain("evaluation whole, seconds", f"{ours['whole']:.1f}"),
    ]


def update(city: City) -> list[Cell]:
    """One photo in a hundred comes; then one photo."""
    city.index()
    folder = city.home / "updated"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(city.home / "index", folder, copy_function=os.link)
    cells = []
    for number, count in enumerate((city.photos // 100, 1)):
        labels = np.sort(np.random.default_rng(number).integers(city.town.count, size=count))
        spots = city.town.cells[labels] * 20.0 + 10
        photos = Photos.from_arrays(
            east=500_000 + spots[:, 0], north=4_000_000 + spots[:, 1], zone=10,
            path=[f"more-{number}/{one}.jpg" for one in range(count)],
        )  # fmt: skip
        vectors = city.town.looks(labels, 900 + number)
        began = time.perf_counter()
        add_photos(folder, vectors, photos)
        spent = time.perf_counter() - began
        cells.append(most(f"adding {count:,} photos to {city.photos:,}, seconds", spent, 20))
    grown = open_index(folder)
    hits = Search(grown).search(vectors, 1)
    cells.append(plain("the last is found", str(grown.paths(hits.rows[0]) == ["more-1/0.jpg"])))
    shutil.rmtree(folder)
    return cells


def _run(code: str, index: Path, queries: int) -> dict[str, float]:
    """What a process of its own prints.  Arrow's usual allocator reserves 1 GiB of addresses at its
    first byte, which a limit of addresses would count as memory: the system's does not."""
    said = subprocess.run(
        [sys.executable, "-c", code, str(index), str(queries)],
        capture_output=True, text=True, check=True, cwd=ROOT,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system",
             "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )  # fmt: skip
    found: dict[str, float] = json.loads(said.stdout)
    return found
