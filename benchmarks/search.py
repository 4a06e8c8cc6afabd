"""Search at a city's size: speed, memory, growth, updates; the claims of docs/deploy.md.

    python benchmarks/search.py [--photos 2800000] [--growth 10000000] [--check]

Vectors are drawn with structure: places lie on a 20 m grid with SF-XL's long-tailed counts, their
looks follow smooth fields over the map (districts and streets, so neighbours are alike), each
place has its own spread, and a query is another photo of a place, half again as far off.  Files go
to --folder and are removed at the end.  Ratios are against faiss IndexFlatL2 on the same vectors
in the same run.  Writes benchmarks/results/search.md; with --check, exits 1 unless the figures of
the issue are reached.
"""

import argparse
import datetime
import gc
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from evenplace.index import index_descriptors, open_index
from evenplace.index.impostors import impostor_similarity
from evenplace.index.tuning import exact_pass
from evenplace.photos import Photos
from evenplace.places import Grid
from evenplace.search import Search

Floats = NDArray[np.float32]
RESULTS = Path(__file__).parent / "results" / "search.md"
DENSITY = 2_800_000 / 110_000  # photos a place
FIELDS = 48  # independent ways in which places differ
QUERIES = 200
SEED = 0


class Town:
    """Places on a grid, and photos of them on demand: nothing is kept but the places."""

    def __init__(self, photos: int, dim: int) -> None:
        rng = np.random.default_rng(SEED)
        self.count, self.dim = max(1, round(photos / DENSITY)), dim
        side = int(np.ceil(self.count**0.5))
        looks = 0.55 * field(rng, side, 12, 2) + 0.8 * field(rng, side, 1, 4)
        looks += 0.35 * field(rng, side, 1, 0) + 0.5 * rng.normal(size=FIELDS)
        self.basis = unit(rng.normal(size=(FIELDS, dim)))
        self.centres = unit(looks.reshape(-1, FIELDS)[: self.count] @ self.basis)  # (C, D)
        self.cells = np.stack(np.divmod(np.arange(self.count), side), axis=1)
        self.spread = rng.uniform(0.5, 1.3, self.count).astype(np.float32)
        weights = rng.pareto(1.2, self.count) + 0.15
        self.sizes = np.maximum(1, np.minimum(weights / weights.mean(), 40) * DENSITY).astype(int)
        self.sizes = rescaled(self.sizes, photos)
        self.labels = np.repeat(np.arange(self.count), self.sizes)

    def photos(self) -> Photos:
        rng = np.random.default_rng(SEED + 1)
        spots = self.cells[self.labels] * 20.0 + rng.uniform(0, 20, (len(self.labels), 2))
        names = [f"town/{number:08d}.jpg" for number in range(len(spots))]
        return Photos.from_arrays(
            east=500_000 + spots[:, 0], north=4_000_000 + spots[:, 1], zone=10, path=names
        )

    def looks(self, labels: NDArray[np.int64], seed: int, far: float = 1.0) -> Floats:
        """A photo of each of the places.  far: 1 as in the database, more for queries."""
        draw = torch.Generator().manual_seed(seed)
        shared = torch.randn(len(labels), FIELDS, generator=draw) @ torch.from_numpy(self.basis)
        own = torch.randn(len(labels), self.dim, generator=draw)
        spread = torch.from_numpy(far * self.spread[labels])[:, None]
        rows = torch.from_numpy(self.centres[labels])
        rows = rows + spread * (0.35 * shared / FIELDS**0.5 + 0.55 * own / self.dim**0.5)
        looks: Floats = (rows / rows.norm(dim=1, keepdim=True)).numpy()
        return looks


class Drawn:
    """The descriptors of a town's photos, drawn as they are read; always the same."""

    def __init__(self, town: Town) -> None:
        self.town, self.shape = town, (len(town.labels), town.dim)

    def __getitem__(self, rows: slice) -> Floats:
        return self.town.looks(self.town.labels[rows], SEED + 2 + rows.start)


def unit(rows: NDArray[np.floating]) -> Floats:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def field(rng: np.random.Generator, side: int, step: int, smooth: int) -> NDArray[np.float32]:
    """Numbers over the map that change every `step` cells, blurred.  (side, side, FIELDS)."""
    cells = -(-side // step)
    values: NDArray[np.floating] = rng.standard_normal((cells, cells, FIELDS), np.float32)
    for _ in range(smooth):
        for axis in (0, 1):
            values = (np.roll(values, 1, axis) + 2 * values + np.roll(values, -1, axis)) / 4
    values /= values.std()
    return np.asarray(np.repeat(np.repeat(values, step, 0), step, 1)[:side, :side], np.float32)


def rescaled(sizes: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Sizes of the same shape that add up to the total, one at least."""
    scaled = np.maximum(1, np.floor(sizes * (total / sizes.sum()))).astype(np.int64)
    largest = np.argsort(-scaled)
    off = total - int(scaled.sum())
    for at in range(abs(off)):
        scaled[largest[at % max(1, len(largest) // 10)]] += 1 if off > 0 else -1
    return np.asarray(scaled, np.int64)


def resident() -> float:
    """This process's resident memory in GB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e9


def timed(call: Callable[[int], object], count: int = QUERIES) -> NDArray[np.float64]:
    """Milliseconds of each call, after a few to warm up."""
    for number in range(20):
        call(number)
    spent = []
    for number in range(count):
        began = time.perf_counter()
        call(number)
        spent.append((time.perf_counter() - began) * 1e3)
    return np.array(spent)


def build(town: Town, folder: Path) -> float:
    """Write the descriptors as a user has them, index that file, and say how long that took."""
    photos = town.photos()
    places = Grid(20).partition(photos)
    drawn = Drawn(town)
    source = folder / "descriptors.npy"
    with source.open("wb") as file:
        header = {"descr": "<f2", "fortran_order": False, "shape": drawn.shape}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, len(photos), 8192):
            block = drawn[slice(start, min(start + 8192, len(photos)))]
            file.write(torch.from_numpy(block).half().numpy().tobytes())
    vectors = np.load(source, mmap_mode="r")
    began = time.perf_counter()
    index_descriptors(vectors, photos, places, folder / "index")
    spent = time.perf_counter() - began
    source.unlink()
    return spent


def opened(folder: Path) -> dict[str, float]:
    """Open the index in a process of its own: seconds, and resident GB before and after use."""
    code = (
        "import sys,time,json;sys.path.insert(0,'.');import numpy as np,torch,faiss\n"
        "from benchmarks.search import resident\n"
        "from evenplace.index import open_index\nfrom evenplace.search import Search\n"
        f"torch.set_num_threads(2)\nwarm=Search\nbare=resident();t=time.perf_counter()\n"
        f"engine=Search(open_index({str(folder / 'index')!r}),rerank='fused')\n"
        "spent=time.perf_counter()-t\nopen_=resident()\n"
        "rng=np.random.default_rng(0);most=open_\n"
        "for i in range(150):\n"
        " rows=np.sort(rng.integers(len(engine.index),size=16));q=engine.index.vectors(rows)\n"
        " engine.search(q/np.linalg.norm(q,axis=1,keepdims=True),5);most=max(most,resident())\n"
        "print(json.dumps(dict(seconds=spent,bare=bare,open=open_,used=most)))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        cwd=Path(__file__).parents[1],
    )  # fmt: skip
    found: dict[str, float] = json.loads(said.stdout)
    return found


def flat_baseline(folder: Path, queries: Floats) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """faiss IndexFlatL2 on the same vectors, one query at a time."""
    import faiss

    index = open_index(folder / "index")
    flat = faiss.IndexFlatL2(index.dim)
    for start in range(0, len(index), 65_536):
        rows = np.arange(start, min(start + 65_536, len(index)))
        flat.add(index.vectors(rows))
    found = flat.search(queries[:64], 20)[1]
    spent = timed(lambda i: flat.search(queries[i % 64][None], 20), count=20)
    return spent, found


def rows_of(title: str, cells: list[tuple[str, str, str, bool | None]]) -> list[str]:
    lines = [f"## {title}", "", "| figure | measured | asked | |", "|---|---|---|---|"]
    marks = {True: "holds", False: "FAILS", None: ""}
    lines += [f"| {name} | {value} | {asked} | {marks[ok]} |" for name, value, asked, ok in cells]
    return [*lines, ""]


Cells = list[tuple[str, str, str, bool | None]]


def city(photos: int, dim: int, folder: Path) -> Cells:
    """One town at full size."""
    town = Town(photos, dim)
    seconds = build(town, folder)
    cells: Cells = [
        ("photos, places", f"{photos:,}, {town.count:,}", "", None),
        ("photos in a place", f"{town.sizes.min()} to {town.sizes.max()}", "", None),
        rate("build from descriptors, photos a second", photos / seconds, 50_000),
    ]
    queries = town.looks(np.random.default_rng(5).integers(town.count, size=512), 77, far=1.5)
    use = opened(folder)
    cells += [
        most("open, seconds", use["seconds"], 1.0),
        most(
            "resident with the index open, GB (interpreter, torch and faiss included)",
            use["open"],
            1.5,
        ),
        most("resident while answering 2,400 queries, most, GB", use["used"], 1.5),
    ]
    index = open_index(folder / "index")
    cells += shortlist(index, queries)
    median = {}
    for rule in ("l2", "fused", "cosine", "kde"):
        engine = Search(index, rerank=rule)
        spent = timed(lambda i, e=engine: e.search(queries[i % 512][None], 20))  # type: ignore[misc]
        median[rule] = float(np.median(spent))
        if rule == "l2":
            pool = np.mean([len(p) for p in engine.search(queries, 20).pools])
            cells.append(("candidates a query", f"{pool:.0f}", "about 450", None))
            p99 = float(np.percentile(spent, 99))
            cells.append(most("p99 over median, one query", p99 / median["l2"], 3.0))
            cells.append(batches(engine, queries))
            mixed = engine.search(queries[:64], 20).rows
    spent, exact = flat_baseline(folder, queries)
    gc.collect()
    flat = float(np.median(spent))
    cells.append(("faiss IndexFlatL2, one query, median ms", f"{flat:.0f}", "", None))
    cells.append(rate("times faster than the flat search", flat / median["l2"], 300))
    agree = float((mixed[:, 0] == exact[:, 0]).mean())
    cells.append(("same first photo as the flat search", f"{agree:.1%}", "", None))
    spectra_seconds, median["cfd"] = with_spectra(folder, queries)
    cells.append(("spectra of all places, once, seconds", f"{spectra_seconds:.0f}", "", None))
    cells += [
        most(f"cost of {rule} over l2", median[rule] / median["l2"], 1.5)
        for rule in ("fused", "cfd")
    ]
    cells += [(f"one query, {r}, median ms", f"{m:.2f}", "", None) for r, m in median.items()]
    return cells


def with_spectra(folder: Path, queries: Floats) -> tuple[float, float]:
    """Seconds to measure the spectra, and median milliseconds of a query with CFD on them."""
    from evenplace.index.manifest import Manifest, entries, writing
    from evenplace.index.polar import COUNT, draw_points, write_spectra

    index = open_index(folder / "index")
    began = time.perf_counter()
    with writing(index.folder):
        points = draw_points("paper", index.dim, count=COUNT, seed=0, spread=1.0)
        base = index.folder / index.manifest.base
        write_spectra(base, "paper", index.base.descriptors, index.base.starts, points)
        plain = dict(index.manifest.__dict__) | {
            "generation": index.manifest.generation + 1,
            "spectra": ("paper",),
            "files": entries(index.folder, index.manifest.base),
        }
        Manifest(**plain).write(index.folder)
    seconds = time.perf_counter() - began
    engine = Search(open_index(index.folder), rerank="cfd")
    return seconds, float(np.median(timed(lambda i: engine.search(queries[i % 512][None], 20))))


def shortlist(index: object, queries: Floats) -> Cells:
    """What the approximate shortlist loses, and how far off its posterior is."""
    from evenplace.index import Index

    assert isinstance(index, Index)
    if index.coarse is None:
        return [("shortlist", "exact: too few places for codes", "", None)]
    exact = exact_pass(index.prototypes, index.coarse.members, queries, index.scale)
    found = index.coarse.search(queries, index.base_prototypes, 20, index.scale)
    kept = [np.isin(a, b).mean() for a, b in zip(exact.places, found.places, strict=True)]
    off = np.abs(found.log_total - exact.log_total)
    tuning = index.coarse.tuning
    return [
        most("share of the exact shortlist lost, %", 100 * (1 - float(np.mean(kept))), 0.1),
        ("log of the posterior's sum, error, median and 95th percentile, nats",
         f"{np.median(off):.3f}, {np.percentile(off, 95):.3f}", "", None),
        ("axes, places refined", f"{index.coarse.axes.shape[1]}, {tuning.refine}", "", None),
    ]  # fmt: skip


def batches(engine: Search, queries: Floats) -> tuple[str, str, str, bool | None]:
    """Throughput of 64 at once over one by one."""
    single = timed(lambda i: engine.search(queries[i % 512][None], 20), count=128)
    whole = timed(lambda i: engine.search(queries[64 * (i % 8) : 64 * (i % 8) + 64], 20), count=24)
    gain = 64 * float(np.median(single)) / float(np.median(whole))
    return rate("throughput of 64 queries over one by one", gain, 5)


def growth(sizes: tuple[int, ...], dim: int, folder: Path) -> Cells:
    """The same density, more and more photos."""
    found, cells = {}, []
    for photos in sizes:
        town = Town(photos, dim)
        seconds = build(town, folder)
        queries = town.looks(np.random.default_rng(5).integers(town.count, size=512), 77, far=1.5)
        engine = Search(open_index(folder / "index"))
        spent = timed(lambda i, e=engine, q=queries: e.search(q[i % 512][None], 20))  # type: ignore[misc]
        found[photos] = float(np.median(spent))
        cells.append((f"{photos:,} photos, {dim} dimensions, one query, ms; build, photos a second",
                      f"{found[photos]:.2f}; {photos / seconds:,.0f}", "", None))  # fmt: skip
        shutil.rmtree(folder / "index")
    ratio = found[sizes[-1]] / found[sizes[0]]
    return [*cells, most(f"cost at {sizes[-1]:,} over {sizes[0]:,}", ratio, 2.0)]


def updates(folder: Path) -> Cells:
    """16 threads ask 10,000 queries of an index that a writer keeps changing."""
    from evenplace.index import add_photos, compact_index, remove_photos

    town = Town(30_000, 96)
    build(town, folder)
    target = folder / "index"
    true = np.random.default_rng(3).choice(np.arange(len(town.labels)), 10_000)
    index = open_index(target)
    queries = unit(index.vectors(true))
    names = index.paths(true)
    engines = [Search(index)]
    wrong: list[str] = []
    answered = [0] * 16

    def ask(worker: int) -> None:
        for number in range(worker, 10_000, 16):
            engine = engines[-1]
            hits = engine.hits(engine.search(queries[number][None], 10), 0)
            paths = [hit.path for hit in hits]
            answered[worker] += 1
            if len(paths) != 10 or len(set(paths)) != 10 or names[number] not in paths[:3]:
                wrong.append(f"{names[number]}: {paths[:3]}")

    def change(stop: threading.Event) -> int:
        generations = 0
        while not stop.is_set():
            labels = np.random.default_rng(generations).integers(town.count, size=50)
            more = town.looks(labels, 10_000 + generations, far=3.0)
            spots = town.cells[labels] * 20.0 + 10
            photos = Photos.from_arrays(
                east=500_000 + spots[:, 0], north=4_000_000 + spots[:, 1], zone=10,
                path=[f"more/{generations}-{i}.jpg" for i in range(50)],
            )  # fmt: skip
            add_photos(target, more, photos)
            engines.append(engines[-1].reopen())
            remove_photos(target, photos.paths)
            engines.append(engines[-1].reopen())
            if generations % 5 == 4:
                compact_index(target)
                engines.append(engines[-1].reopen())
            generations += 1
        return generations

    stop = threading.Event()
    writer = threading.Thread(target=change, args=(stop,))
    writer.start()
    askers = [threading.Thread(target=ask, args=(worker,)) for worker in range(16)]
    for thread in askers:
        thread.start()
    for thread in askers:
        thread.join()
    stop.set()
    writer.join()
    last = open_index(target).manifest.generation
    shutil.rmtree(target)
    return [
        ("generations written meanwhile", f"{last - 1}", "", None),
        most(f"wrong, missing or duplicate answers of {sum(answered):,}", len(wrong), 0),
    ]


def impostors(folder: Path) -> Cells:
    """The impostor term of a large index against all pairs."""
    town = Town(30_000, 256)
    build(town, folder)
    index = open_index(folder / "index")
    exact = impostor_similarity(index.descriptors, index.photos.positions)
    gap = exact - index.impostors
    shutil.rmtree(folder / "index")
    return [
        ("impostor term, mean of exact and of the approximation",
         f"{exact.mean():.3f}, {index.impostors.mean():.3f}", "", None),
        ("correlation over photos", f"{np.corrcoef(exact, index.impostors)[0, 1]:.3f}", "", None),
        ("too small by, mean", f"{gap.mean():.4f}", "", None),
    ]  # fmt: skip


def most(name: str, value: float, limit: float) -> tuple[str, str, str, bool | None]:
    return told((name, f"{value:.3g}", f"at most {limit:g}", bool(value <= limit)))


def rate(name: str, value: float, limit: float) -> tuple[str, str, str, bool | None]:
    shown = f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"
    return told((name, shown, f"at least {limit:,g}", bool(value >= limit)))


def told(cell: tuple[str, str, str, bool | None]) -> tuple[str, str, str, bool | None]:
    """Say a figure as soon as it is known: the whole takes minutes."""
    print(*cell, sep=" | ", file=sys.stderr, flush=True)
    return cell


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", type=int, default=2_800_000)
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--growth", type=int, default=10_000_000, help="0 to leave it out")
    parser.add_argument("--growth-dim", type=int, default=256)
    parser.add_argument("--only", choices=("city", "growth", "updates", "impostors"))
    parser.add_argument("--folder", type=Path, help="where files go; a temporary folder")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=asked.folder))
    parts: dict[str, Callable[[], Cells]] = {
        "city": lambda: city(asked.photos, asked.dim, folder),
        "updates": lambda: updates(folder),
        "impostors": lambda: impostors(folder),
    }
    if asked.growth:
        sizes = (100_000, asked.growth)
        parts["growth"] = lambda: growth(sizes, asked.growth_dim, folder)
    lines: list[str] = []
    failed = False
    try:
        for name, part in parts.items():
            if asked.only in (None, name):
                cells = part()
                failed |= any(ok is False for *_, ok in cells)
                lines += rows_of(name, cells)
                print("\n".join(rows_of(name, cells)), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    command = " ".join(["python", "benchmarks/search.py", *sys.argv[1:]])
    head = [
        "# Search",
        "",
        f"{datetime.date.today()}, `{command}`, seed {SEED}, {os.cpu_count()} cores "
        f"({platform.machine()}), torch {torch.__version__}, numpy {np.__version__}.",
        "",
    ]
    target = RESULTS if asked.only is None else RESULTS.with_name(f"search-{asked.only}.md")
    target.write_text("\n".join([*head, *lines]))
    return 1 if failed and asked.check else 0


if __name__ == "__main__":
    sys.exit(main())
