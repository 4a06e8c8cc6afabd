"""Draws a whole town to disk: plan, survey, photos, and a report of what came out."""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType

from evenplace.city.plan import plan_town
from evenplace.city.render import Renderer
from evenplace.city.survey import Shot, photo_name, plan_queries, plan_survey
from evenplace.errors import SettingError
from evenplace.photos.files import whole_folder

QUALITY = 85
CHUNK = 64  # neighbouring photos a process takes at once, so that it draws few walls twice


@dataclass(frozen=True)
class CityReport:
    """What was drawn; places are 20 m cells with at least one database photo."""

    photos: int
    queries: int
    places: int
    imbalance: float  # photos in the most photographed place over those in the least
    seconds: float


def draw_city(
    out: Path | str,
    *,
    photos: int = 6000,
    queries: int = 600,
    seed: int = 0,
    size: int = 224,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CityReport:
    """Draw the town of a seed into `out/database` and `out/queries`, named as SF-XL is.

    The database is a long-tailed survey: at 6000 photos the busiest 20 m cell has 300 times the
    photos of the quietest.  Queries are taken on other days and spread evenly over the surveyed
    cells (not over the photos), each within 25 m of a database photo.  The same seed gives the
    same bytes whatever the number of workers (None: one a core).  The folder appears when all
    of it is drawn, or not at all.
    """
    started = time.perf_counter()
    target = Path(out)
    _check(target, photos, queries, seed, size, workers)
    town = plan_town(seed)
    survey = plan_survey(town, photos, seed)
    asked = plan_queries(town, survey, queries, seed)
    with whole_folder(target) as folder:
        for part in ("database", "queries"):
            (folder / part).mkdir()
        jobs = [(str(folder / "database" / photo_name(shot)), shot) for shot in survey]
        jobs += [(str(folder / "queries" / photo_name(shot)), shot) for shot in asked]
        _draw_all(jobs, seed, size, workers or os.cpu_count() or 1, progress)
    seconds = time.perf_counter() - started
    counts = Counter(shot.cell for shot in survey)
    return CityReport(
        photos=len(survey),
        queries=len(asked),
        places=len(counts),
        imbalance=max(counts.values()) / min(counts.values()),
        seconds=seconds,
    )


def _check(out: Path, photos: int, queries: int, seed: int, size: int, workers: int | None) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SettingError(
            f"{out} is there already and not an empty folder; name another one or empty it"
        )
    for name, value, least in (
        ("photos", photos, 1),
        ("queries", queries, 1),
        ("seed", seed, 0),
        ("size", size, 32),
        ("workers", 1 if workers is None else workers, 1),
    ):
        if value < least:
            raise SettingError(f"{name} is {value}; it must be at least {least}")


Job = tuple[str, Shot]


def _draw_all(
    jobs: list[Job],
    seed: int,
    size: int,
    workers: int,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Draw all photos, neighbours together, in this process or in several."""
    ordered = sorted(jobs, key=lambda job: (job[1].cell[0] // 4, job[1].cell))
    chunks = [ordered[at : at + CHUNK] for at in range(0, len(ordered), CHUNK)]
    done = 0
    for count in _drawn(chunks, partial(_draw_chunk, seed, size), min(workers, len(chunks))):
        done += count
        if progress is not None:
            progress(done, len(jobs))
    _renderer.cache_clear()


def _drawn(
    chunks: list[list[Job]], draw: Callable[[list[Job]], int], workers: int
) -> Iterator[int]:
    if workers == 1:
        yield from map(draw, chunks)
        return
    # spawn, not fork: the caller may have threads (torch does), which a fork would freeze
    pool = ProcessPoolExecutor(workers, get_context("spawn"))
    try:
        with _no_script():
            drawn = pool.map(draw, chunks)
        yield from drawn
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _no_script() -> Iterator[None]:
    """Start workers without the caller's script, of which they need nothing.

    They would run it again from its first line, and a script without a `__main__` guard would
    draw again in each of them.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


_renderer = lru_cache(maxsize=1)(Renderer)  # one a process, for all its chunks


def _draw_chunk(seed: int, size: int, chunk: list[Job]) -> int:
    for path, shot in chunk:
        _renderer(seed, size).take(shot.camera, shot.day).save(path, quality=QUALITY)
    return len(chunk)
