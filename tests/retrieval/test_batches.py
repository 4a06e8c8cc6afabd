"""A query is answered the same to the last bit, whatever is asked beside it."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evenplace.errors import IndexFileError
from evenplace.photos import Photos
from evenplace.places import Grid
from evenplace.retrieval import Index, Search
from evenplace.retrieval.answers import Hits
from evenplace.retrieval.arrays import Column, compare_rows, dots
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.candidates import Pools, rank_pools
from evenplace.retrieval.update import add_photos, remove_photos
from tests.drawn import EAST, NORTH, ZONE

Floats = NDArray[np.float32]
DIM = 40


def drawn(count: int, seed: int) -> tuple[Floats, Photos]:
    """Photos of 700 cells along a street; every third looks exactly like another one."""
    rng = np.random.default_rng(seed)
    cells = rng.integers(700, size=count)
    rows = np.cos(cells[:, None] * np.random.default_rng(0).normal(0, 0.1, DIM))
    rows = rows + 0.2 * rng.normal(size=(count, DIM))
    rows[::3] = rows[np.arange(count)[::3] // 2]
    spots = np.stack([cells * 20 + rng.uniform(0, 20, count), rng.uniform(0, 20, count)], axis=1)
    photos = Photos.from_arrays(
        east=EAST + spots[:, 0], north=NORTH + spots[:, 1], zone=ZONE,
        path=[f"{seed}-{number}.jpg" for number in range(count)],
    )  # fmt: skip
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32), photos


def built(folder: Path, *, updated: bool) -> Index:
    vectors, photos = drawn(2400, 1)
    index = index_descriptors(
        vectors, photos, Grid(20).partition(photos), folder, spectra=["paper"]
    )
    if updated:
        add_photos(folder, *drawn(60, 2))
        index = remove_photos(folder, photos.paths[::11])
    return index


def assert_equal(batch: Hits, alone: list[Hits]) -> None:
    for field in ("rows", "distances", "shortlist", "confidence", "posterior", "cosines"):
        expected = np.concatenate([getattr(one, field) for one in alone])
        np.testing.assert_array_equal(getattr(batch, field), expected, err_msg=field)
    assert batch.positions == tuple(one.positions[0] for one in alone)


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("updated", [False, True])
def test_a_batch_equals_its_queries_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coded: bool, updated: bool
) -> None:
    if coded:
        monkeypatch.setattr("evenplace.retrieval.shortlist_effort.FEWEST", 64)
    index = built(tmp_path / "index", updated=updated)
    assert (index.coarse is not None) == coded
    queries, _ = drawn(70, 3)
    queries[:10] = index.vectors(np.arange(10))  # exactly alike photos tie for the first hit
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    for settings in (
        {"rerank": "l2"}, {"rerank": "cosine"}, {"rerank": "fused"}, {"rerank": "kde"},
        {"rerank": "cfd"}, {"confidence": "ratio"}, {"shortlist": 3},
    ):  # fmt: skip
        engine = Search(index, **settings)
        alone = [engine.search(query[None], 10) for query in queries]
        assert_equal(engine.search(queries, 10), alone)
        assert_equal(engine.search(queries[:5], 10), alone[:5])
    ties = np.diff(Search(index).search(queries, 10).distances, axis=1) == 0
    assert ties.any(), "the test needs photos that are equally far"


def test_products_do_not_depend_on_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "evenplace.retrieval.arrays._GATHERED", 30 * DIM
    )  # a query in several pieces
    index = built(tmp_path / "index", updated=True)
    queries, _ = drawn(40, 4)
    rows = np.random.default_rng(0).integers(len(index), size=4000)
    cuts = np.sort(np.append([0, 4000], np.random.default_rng(1).integers(4000, size=39)))
    found = compare_rows(index.vectors, queries, rows, cuts)
    np.testing.assert_allclose(
        found, np.vecdot(index.vectors(rows), np.repeat(queries, np.diff(cuts), axis=0)), atol=1e-6
    )
    for query, (first, last) in enumerate(pairwise(cuts)):
        own = compare_rows(
            index.vectors, queries[query, None], rows[first:last], np.array([0, last - first])
        )
        np.testing.assert_array_equal(found[first:last], own)
    whole = dots(queries, index.prototypes)
    np.testing.assert_allclose(whole, queries @ index.prototypes.T, atol=1e-5)
    np.testing.assert_array_equal(whole[7:8], dots(queries[7:8], index.prototypes))


@pytest.mark.parametrize("by_place", [False, True])
@pytest.mark.parametrize("many", [False, True])
def test_one_sort_ranks_as_three_do(
    monkeypatch: pytest.MonkeyPatch, by_place: bool, many: bool
) -> None:
    if many:  # more candidates than fit into an integer beside their distance
        monkeypatch.setattr("evenplace.retrieval.sorting._BITS", 40)
    rng = np.random.default_rng(0)
    cuts = np.array([0, 300, 300, 301, 900])
    distances = np.float32(0.25) * rng.integers(-4, 5, 900).astype(np.float32)
    distances[distances == 0] *= rng.choice([-1, 1], (distances == 0).sum())  # minus zero
    distances[::50] = np.inf
    cosines = rng.integers(0, 5, 900).astype(np.float32)
    nothing = np.zeros(900, np.int64)
    pools = Pools(nothing, nothing, cosines, cosines, np.zeros((4, 1), np.float32), cuts)
    found = rank_pools(pools, distances, by_place=by_place)
    keys = (-cosines, distances, pools.of) if by_place else (distances, pools.of)
    np.testing.assert_array_equal(found.order, np.lexsort(keys))
    np.testing.assert_array_equal(found.distances, distances[found.order])
    assert found[1].order.tolist() == []
    assert found[2].order.tolist() == [0]


def test_a_file_that_became_shorter_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(40, dtype=np.float16).reshape(10, 4))
    file = Column(path)
    with pytest.raises(IndexFileError, match="no row -1"):
        file.read(np.array([3, -1]), np.empty((2, 4), np.float16))
    rows, out = np.array([7, 2, 3, 4, 9]), np.empty((5, 4), np.float16)
    file.read(rows, out)
    np.testing.assert_array_equal(out, np.arange(40).reshape(10, 4)[rows])
    with path.open("r+b") as shorter:
        shorter.truncate(path.stat().st_size - 8)
    with pytest.raises(IndexFileError, match=r"rows\.npy ends before row 9"):
        file.read(rows, out)
