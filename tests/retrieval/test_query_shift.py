"""A set of another day is moved to where the database is; a street of this day stays."""

from pathlib import Path

import numpy as np
import pytest

from evenplace.arrays import Floats, unit
from evenplace.places import Grid
from evenplace.retrieval import Search
from evenplace.retrieval.array_files import Rows
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.query_shift import LEAST, shift_of
from tests.retrieval.test_codec import DIM, KINDS, built, looks, photos_of

EVERYWHERE = np.arange(0, 400, 2)
STREET = np.arange(140, 180)  # two rows of cells
NIGHT = np.random.default_rng(9).normal(size=DIM) * 0.25  # three times as long as a descriptor


def at_night(rows: Floats) -> Floats:
    return unit((rows + NIGHT).astype(np.float32))


def found(engine: Search, queries: Floats, cells: Rows) -> float:
    """The share of queries whose first answer is of their own cell."""
    rows = engine.search(queries, 1).rows[:, 0]
    names = photos_of(cells, "asked").positions
    return float((engine.index.positions[rows] == names).all(axis=1).mean())


@pytest.mark.parametrize("keep", [None, *KINDS])
def test_another_day_finds_what_this_one_finds(tmp_path: Path, keep: str | None) -> None:
    engine = Search(built(tmp_path / "i", keep), shortlist=5, centre=True)
    day = looks(EVERYWHERE, 5)
    night = at_night(day)
    alone, together = (found(one, night, EVERYWHERE) for one in (engine, engine.together(night)))
    assert together > alone + 0.15
    assert together > found(engine, day, EVERYWHERE) - 0.1
    assert engine.moved == 0
    assert engine.together(night).moved > 0.5


@pytest.mark.parametrize("cells", [EVERYWHERE, STREET, STREET[:LEAST]], ids=["all", "part", "few"])
def test_photos_of_the_same_day_stay_where_they_are(tmp_path: Path, cells: Rows) -> None:
    index = built(tmp_path / "i", None)
    assert not shift_of(index, looks(cells, 5)).any()
    engine = Search(index, centre=True)
    assert engine.together(looks(cells, 5)).moved == 0


def test_streets_that_look_their_own_way_are_no_other_day(tmp_path: Path) -> None:
    """Parts of a town differ: a set of one part differs from the whole as that part does."""
    cells = np.repeat(np.arange(400), 3)
    quarter = np.random.default_rng(3).normal(size=(4, DIM)) * 0.1

    def seen(some: Rows, seed: int) -> Floats:
        return unit((looks(some, seed) + quarter[some // 100]).astype(np.float32))

    photos, vectors = photos_of(cells, "old"), seen(cells, 2)
    index = index_descriptors(vectors, photos, Grid(20).partition(photos), tmp_path / "i")
    one_quarter = np.arange(100, 200)
    plain, moved = seen(one_quarter, 5), shift_of(index, seen(one_quarter, 5))
    apart = vectors.mean(axis=0) - plain.mean(axis=0)
    assert np.linalg.norm(apart) > 0.3
    assert np.linalg.norm(moved) < 0.05 * np.linalg.norm(apart)


def test_fewer_than_twenty_are_no_set(tmp_path: Path) -> None:
    index, night = built(tmp_path / "i", None), at_night(looks(EVERYWHERE, 5))
    assert not shift_of(index, night[: LEAST - 1]).any()
    assert shift_of(index, night[::4]).any()


def test_only_an_engine_that_is_told_to_moves_queries(tmp_path: Path) -> None:
    engine, night = Search(built(tmp_path / "i", None)), at_night(looks(EVERYWHERE, 5))
    assert engine.together(night) is engine


def test_the_database_itself_is_where_it_is(tmp_path: Path) -> None:
    index = built(tmp_path / "i", None)
    assert not shift_of(index, index.descriptors[:].astype(np.float32)).any()
