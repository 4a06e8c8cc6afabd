"""Writers among readers, and writers that are killed."""

import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.search_table import Cell, most, plain
from benchmarks.search_town import Town, drawn, unit
from evenplace.errors import EvenPlaceError
from evenplace.photos import Photos
from evenplace.places import Grid
from evenplace.retrieval import Search, open_index, verify_index
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.update import add_photos, remove_photos


def kills(folder: Path, count: int = 200) -> list[Cell]:
    """kill -9 at random moments of builds and updates: what is found is whole, nothing is left."""
    town, target = Town(3000, 32), folder / "kills"
    photos, vectors = town.photos(), drawn(town, folder / "3000x32")
    shutil.rmtree(target, ignore_errors=True)
    index_descriptors(vectors, photos, Grid(20).partition(photos), target)
    rng, context = np.random.default_rng(0), multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # whoever forks has no threads
    hurt, generations = 0, set()
    for _ in range(count):
        begun = context.Event()
        writer = context.Process(target=_write_for_ever, args=(target, town, vectors, begun))
        writer.start()
        begun.wait()
        time.sleep(rng.uniform(0, 1.0))
        os.kill(writer.pid or 0, signal.SIGKILL)
        writer.join()
        try:
            found = verify_index(target)
            generations.add(found.generation)
            index = open_index(target)
            extra = [path for path in index.photos.paths if path.startswith("more/")]
            whole = len(index) - len(extra) == 3000 and len(extra) in (0, 100)
            index = remove_photos(target, extra) if extra else index
            here = {f"{file.parent.name}/{file.name}" for file in target.glob("*/*")}
            hurt += not whole or (bool(extra) and here != set(index.manifest.files))
        except EvenPlaceError as error:
            hurt += 1
            print(error, file=sys.stderr)
    shutil.rmtree(target)
    return [
        plain("generations found after the kills", f"{len(generations)}"),
        most(f"damaged, incomplete or littered after {count} kills", hurt, 0),
    ]


def _write_for_ever(target: Path, town: Town, vectors: Any, begun: Any) -> None:
    """Build, add and remove until killed."""
    photos = town.photos()
    places = Grid(20).partition(photos)
    labels = np.random.default_rng(0).integers(town.count, size=100)
    more = _more(town, labels, 0)
    begun.set()
    while True:
        add_photos(target, town.looks(labels, 1), more)
        remove_photos(target, more.paths)
        index_descriptors(vectors, photos, places, target)


def _more(town: Town, labels: NDArray[np.int64], number: int) -> Photos:
    spots = town.cells[labels] * 20.0 + 10
    return Photos.from_arrays(
        east=500_000 + spots[:, 0], north=4_000_000 + spots[:, 1], zone=10,
        path=[f"more/{number}-{one}.jpg" for one in range(len(labels))],
    )  # fmt: skip


def updates(folder: Path) -> list[Cell]:
    """16 threads ask 10,000 queries of an index that a writer keeps changing."""
    town = Town(30_000, 96)
    photos = town.photos()
    target = folder / "updates"
    index_descriptors(drawn(town, folder / "30000x96"), photos, Grid(20).partition(photos), target)
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
            photos = _more(town, labels, generations)
            add_photos(target, more, photos)
            engines.append(engines[-1].reopen())
            remove_photos(target, photos.paths)
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
        plain("generations written meanwhile", f"{last - 1}"),
        most(f"wrong, missing or duplicate answers of {sum(answered):,}", len(wrong), 0),
    ]
