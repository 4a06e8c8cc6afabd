"""The exact search: every photo is compared, and little of it is ever in memory."""

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evenplace.places import Grid
from evenplace.retrieval import Index, Search
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.stores import EmbeddedStore
from tests.drawn import photos_at, unit

Floats = NDArray[np.float32]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """900 photos of 100 m × 100 m, a third of them in no place."""
    monkeypatch.setattr("evenplace.retrieval.stores._CHUNK", 128)
    monkeypatch.setattr("evenplace.retrieval.search._ALIKE", 12)
    monkeypatch.setattr("evenplace.retrieval.search._SCAN", 100)
    photos = photos_at(np.random.default_rng(0).uniform(0, 100, (900, 2)))
    places = Grid(10, min_photos=9).partition(photos)
    index = index_descriptors(unit(900, 8, 1), photos, places, tmp_path / "index")
    assert 100 < (index.labels < 0).sum() < 800
    return index


@pytest.mark.parametrize("k", [1, 5, 40])
def test_it_finds_the_nearest_photos_of_all(index: Index, k: int) -> None:
    queries = unit(150, 8, 2)
    found = Search(index, exact=True).search(queries, k)
    cosines = queries @ np.asarray(index.descriptors, np.float32).T
    np.testing.assert_allclose(found.cosines, -np.sort(-cosines, axis=1)[:, :k], atol=1e-5)
    assert (np.sort(found.rows, axis=1)[:, 1:] > np.sort(found.rows, axis=1)[:, :-1]).all()


def test_photos_equally_alike_come_in_the_order_of_their_rows(tmp_path: Path) -> None:
    photos = photos_at(np.random.default_rng(0).uniform(0, 100, (300, 2)))
    vectors = np.repeat(unit(3, 8, 1), 100, axis=0)
    index = index_descriptors(vectors, photos, Grid(10).partition(photos), tmp_path / "i")
    nearest = EmbeddedStore(index).nearest(unit(4, 8, 2), 150)
    assert (np.diff(nearest.rows[:, :100]) > 0).all()
    assert (np.diff(nearest.cosines) <= 0).all()


def test_hidden_rows_are_not_compared(index: Index) -> None:
    queries = unit(120, 8, 2)
    cosines = queries @ np.asarray(index.descriptors, np.float32).T
    hidden = [np.argsort(-own)[: number % 30] for number, own in enumerate(cosines)]
    found = Search(index, exact=True).search(queries, 5, without=hidden)
    for number, (own, rows) in enumerate(zip(cosines, hidden, strict=True)):
        own[rows] = -np.inf
        np.testing.assert_allclose(found.cosines[number], -np.sort(-own)[:5], atol=1e-5)


def test_fewer_photos_than_asked_for(tmp_path: Path) -> None:
    photos = photos_at(np.zeros((3, 2)))
    index = index_descriptors(unit(3, 8, 1), photos, Grid(10).partition(photos), tmp_path / "i")
    found = Search(index, exact=True).search(unit(2, 8, 2), 5)
    assert (found.rows[:, :3] >= 0).all()
    assert (found.rows[:, 3:] == -1).all()


def test_evaluating_exactly_stays_within_memory(tmp_path: Path) -> None:
    """1,000 queries, 20,500 photos: the cosines alone would be 80 MB, all pools 160."""
    script = textwrap.dedent("""
        import resource, sys
        from pathlib import Path
        import numpy as np
        from evenplace.evaluation import Truth, score
        from evenplace.places import Grid
        from evenplace.retrieval import Search
        from evenplace.retrieval.build import index_descriptors
        from tests.drawn import photos_at, unit

        rng = np.random.default_rng(0)
        photos = photos_at(rng.uniform(0, 4000, (20_500, 2)))
        places = Grid(20).partition(photos)
        index = index_descriptors(unit(20_500, 16, 1), photos, places, sys.argv[1])
        engine, queries = Search(index, exact=True), photos_at(rng.uniform(0, 4000, (1000, 2)))
        asked = unit(1000, 16, 2)
        score(engine, queries[:70], asked[:70], Truth(25))  # whatever loads on first use
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 110 * 2**20,) * 2)
        found = score(engine, queries, asked, Truth(25))
        print(found.overall.queries, found.cost.pool_size)
    """)
    said = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "index")],
        capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False,
    )  # fmt: skip
    assert said.stdout.split() == ["1000", "20500.0"], said.stderr[-2000:]
