"""The parts of the search benchmark: each measures one thing and can be run alone."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks.search_table import Cell, Watched, least, most, plain, timed
from benchmarks.search_town import Town, asked, drawn
from evenplace.places import Grid
from evenplace.retrieval import Index, Search, open_index
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.impostors import impostor_similarity
from evenplace.retrieval.shortlist_codes import exact_pass

Floats = NDArray[np.float32]
QUERIES = 200
ROOT = Path(__file__).parents[1]
_USE = """
import json, time
import faiss, numpy as np, torch
from benchmarks.search_table import resident
from evenplace.retrieval import open_index
from evenplace.retrieval import Search
bare = resident()
began = time.perf_counter()
engine = Search(open_index({folder!r}), rerank="fused")
seconds = time.perf_counter() - began
ready, used, own = resident(), 0.0, 0.0
rng = np.random.default_rng(0)
for _ in range(150):
    queries = engine.index.vectors(np.sort(rng.integers(len(engine.index), size=16)))
    engine.search(queries / np.linalg.norm(queries, axis=1, keepdims=True), 5)
    used, own = max(used, resident()), max(own, resident("RssAnon"))
print(json.dumps(dict(seconds=seconds, bare=bare, open=ready, used=used, own=own)))
"""


@dataclass
class City:
    """One town on disk: its descriptors and its index, made when they are not there yet."""

    photos: int
    dim: int
    folder: Path
    kind: type[Town] = Town
    processor: float = 0.0  # seconds that the last build took of all cores

    @property
    def home(self) -> Path:
        return self.folder / f"{self.photos}x{self.dim}"

    @cached_property
    def town(self) -> Town:
        return self.kind(self.photos, self.dim)

    @cached_property
    def queries(self) -> Floats:
        return asked(self.town)

    def draw(self) -> NDArray[np.float16]:
        return drawn(self.town, self.home)

    def build(self, spectra: Sequence[str] = ()) -> float:
        """Index the file of descriptors; seconds, and those of all processors in `processor`."""
        vectors, photos = self.draw(), self.town.photos()
        places = Grid(20).partition(photos)
        began, worked = time.perf_counter(), time.process_time()
        index_descriptors(vectors, photos, places, self.home / "index", spectra=spectra)
        self.processor = time.process_time() - worked
        return time.perf_counter() - began

    def index(self, *spectra: str) -> Index:
        folder = self.home / "index"
        there = (folder / "manifest.json").exists()
        if not there or not set(spectra) <= set(open_index(folder).manifest.spectra):
            self.build(spectra)
        return open_index(folder)


def build(city: City) -> list[Cell]:
    """From a file of descriptors to an index."""
    city.draw()
    sizes = city.town.sizes
    with Watched() as memory:
        seconds = city.build()
    return [
        plain("photos, dimensions, places", f"{city.photos:,}, {city.dim}, {len(sizes):,}"),
        plain("photos in a place", f"{sizes.min()} to {sizes.max()}"),
        least("build from descriptors, photos a second", city.photos / seconds, 50_000),
        plain("processor seconds of a build, all cores", f"{city.processor:.0f}"),
        most("memory a build takes, without pages of files, GB", memory.most, 1.5),
    ]


def spectra(city: City) -> list[Cell]:
    """The same with the characteristic functions of all places, which CFD reads."""
    city.draw()
    return [
        plain(
            "build with spectra for CFD, photos a second",
            f"{city.photos / city.build(['paper']):,.0f}",
        )
    ]


def opening(city: City) -> list[Cell]:
    """Open the index in a process of its own."""
    city.index()
    code = _USE.format(folder=str(city.home / "index"))
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )  # fmt: skip
    use = json.loads(said.stdout)
    return [
        most("open, seconds", use["seconds"], 1.0),
        plain("resident before, GB (interpreter, torch, faiss)", f"{use['bare']:.2f}"),
        most("resident with the index open, GB", use["open"], 1.5),
        most("while answering 2,400 queries, without pages of files, GB", use["own"], 1.5),
        plain("the same with the pages of files it has mapped, GB", f"{use['used']:.2f}"),
    ]


def query(city: City) -> list[Cell]:
    """One query at a time by every rule, and 64 at once."""
    index, queries = city.index(), city.queries
    engines = {rule: Search(index, rerank=rule) for rule in ("l2", "fused", "cosine", "kde")}
    found = _in_turns(engines, queries)
    median = {rule: float(np.median(spent)) for rule, spent in found.items()}
    pool = np.mean([batch.pools.sizes.mean() for batch in engines["l2"].batches(queries)])
    cells = [
        *shortlist(index, queries),
        plain("candidates a query", f"{pool:.0f}"),
        most("p99 over median, one query", float(np.percentile(found["l2"], 99)) / median["l2"], 3),
        *batches(engines["l2"], queries),
        most("cost of fused over l2", median["fused"] / median["l2"], 1.2),
    ]
    return [*cells, *(plain(f"one query, {r}, median ms", f"{m:.2f}") for r, m in median.items())]


def cfd(city: City) -> list[Cell]:
    """CFD against L2 where the spectra of all places are kept: the cost is that of a pool."""
    index = city.index("paper")
    found = _in_turns({rule: Search(index, rerank=rule) for rule in ("l2", "cfd")}, city.queries)
    l2, own = (float(np.median(found[rule])) for rule in ("l2", "cfd"))
    return [
        plain("photos, dimensions", f"{city.photos:,}, {city.dim}"),
        plain("one query, l2 and cfd, median ms", f"{l2:.2f}, {own:.2f}"),
        most("cost of cfd over l2", own / l2, 1.4),
    ]


def _in_turns(engines: dict[str, Search], queries: Floats) -> dict[str, NDArray[np.float64]]:
    """Milliseconds of single queries by each engine: what slows the machine slows all of them."""
    found = {rule: np.empty(0) for rule in engines}
    for _ in range(5):
        for rule, engine in engines.items():
            found[rule] = np.append(found[rule], singles(engine, queries))
    return found


def flat(city: City) -> list[Cell]:
    """The engine against faiss IndexFlatL2 on the same vectors, in turns, one query at a time."""
    index, queries = city.index(), city.queries
    exhaustive = faiss.IndexFlatL2(city.dim)
    for start in range(0, len(index), 65_536):
        exhaustive.add(index.vectors(np.arange(start, min(start + 65_536, len(index)))))
    engine = Search(index)
    ours, theirs = np.empty(0), np.empty(0)
    for turn in range(4):
        ours = np.append(ours, singles(engine, queries[64 * turn :], QUERIES // 4))
        theirs = np.append(
            theirs, timed(lambda i: exhaustive.search(queries[i % 64][None], 20), 5, warm=1)
        )
    exact = exhaustive.search(queries[:64], 20)[1]
    agree = float((engine.search(queries[:64], 20).rows[:, 0] == exact[:, 0]).mean())
    gain = float(np.median(theirs) / np.median(ours))
    return [
        plain("faiss IndexFlatL2, one query, median ms", f"{np.median(theirs):.0f}"),
        plain("ours, one query, median ms", f"{np.median(ours):.2f}"),
        least("times faster than the flat search", gain, 500),
        plain("same first photo as the flat search", f"{agree:.1%}"),
    ]


def growth(small: City, large: City) -> list[Cell]:
    """The same density, a hundred times the photos; asked in turns."""
    found: dict[int, NDArray[np.float64]] = {}
    pairs = [(city, Search(city.index())) for city in (small, large)]
    for _ in range(5):
        for city, engine in pairs:
            spent = singles(engine, city.queries)
            found[city.photos] = np.append(found.get(city.photos, np.empty(0)), spent)
    median = {photos: float(np.median(spent)) for photos, spent in found.items()}
    ratio = median[large.photos] / median[small.photos]
    return [
        *(plain(f"{photos:,} photos × {small.dim}, one query, median ms", f"{spent:.2f}")
          for photos, spent in median.items()),
        most(f"cost at {large.photos:,} photos over {small.photos:,}", ratio, 2.0),
    ]  # fmt: skip


def impostors(folder: Path) -> list[Cell]:
    """The impostor term of a large index against all pairs."""
    city = City(30_000, 256, folder)
    city.build()
    index = open_index(city.home / "index")
    exact = impostor_similarity(index.descriptors, index.photos.positions)
    gap = exact - index.impostors
    shutil.rmtree(city.home)
    return [
        plain("impostor term, mean of exact and of the approximation",
              f"{exact.mean():.3f}, {index.impostors.mean():.3f}"),
        plain("correlation over photos", f"{np.corrcoef(exact, index.impostors)[0, 1]:.3f}"),
        most("impostor terms: exact less approximate, mean", abs(float(gap.mean())), 0.02),
        plain("of one photo, mean of the absolute gap", f"{np.abs(gap).mean():.3f}"),
    ]  # fmt: skip


def singles(engine: Search, queries: Floats, count: int = QUERIES) -> NDArray[np.float64]:
    return timed(lambda i: engine.search(queries[i % len(queries)][None], 20), count)


def batches(engine: Search, queries: Floats) -> list[Cell]:
    """Throughput of 64 at once over one by one, in turns."""
    single, whole = np.empty(0), np.empty(0)
    for _ in range(4):
        single = np.append(single, singles(engine, queries, 128))
        whole = np.append(
            whole, timed(lambda i: engine.search(queries[64 * (i % 8) :][:64], 20), 16, warm=4)
        )
    each = float(np.median(whole)) / 64
    gain = float(np.median(single)) / each
    return [
        plain("64 queries at once, ms a query", f"{each:.2f}"),
        least("throughput of 64 queries over one by one", gain, 5),
        plain("shortlist, photos, ranking: ms of one query", _stages(engine, queries, 1)),
        plain("shortlist, photos, ranking: ms a query of 64", _stages(engine, queries, 64)),
    ]


def _stages(engine: Search, queries: Floats, size: int) -> str:
    """What each stage takes of a query, medians over eight batches."""
    found = [engine.search(queries[64 * at :][:size], 20).elapsed_ms for at in range(8)]
    stages = ("classify", "gather", "rank")
    return ", ".join(f"{np.median([one[stage][0] for one in found]):.2f}" for stage in stages)


def shortlist(index: Index, queries: Floats) -> list[Cell]:
    """What the approximate shortlist loses, and how far off its posterior is."""
    if index.coarse is None:
        return [plain("shortlist", "exact: too few places for codes")]
    exact = exact_pass(index.prototypes, index.coarse.members, queries, index.scale)
    found = index.coarse.search(queries, index.prototypes, 20, index.scale)
    kept = [np.isin(a, b).mean() for a, b in zip(exact.places, found.places, strict=True)]
    off = np.abs(found.log_total - exact.log_total)
    return [
        most("share of the exact shortlist lost, %", 100 * (1 - float(np.mean(kept))), 0.1),
        plain("log of the posterior's sum, error, median and 95th percentile, nats",
              f"{np.median(off):.3f}, {np.percentile(off, 95):.3f}"),
        plain("axes, places refined",
              f"{index.coarse.axes.shape[1]}, {index.coarse.tuning.refine}"),
    ]  # fmt: skip
