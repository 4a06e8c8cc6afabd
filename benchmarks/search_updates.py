"""16 threads ask 10,000 queries of an index that a writer keeps changing."""

import shutil
import threading
from pathlib import Path

import numpy as np

from benchmarks.search_table import Cell, most, plain
from benchmarks.search_town import Town, drawn, unit
from evenplace.photos import Photos
from evenplace.places import Grid
from evenplace.retrieval import Search, open_index
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.update import add_photos, remove_photos


def updates(folder: Path) -> list[Cell]:
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
            spots = town.cells[labels] * 20.0 + 10
            photos = Photos.from_arrays(
                east=500_000 + spots[:, 0], north=4_000_000 + spots[:, 1], zone=10,
                path=[f"more/{generations}-{i}.jpg" for i in range(50)],
            )  # fmt: skip
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
