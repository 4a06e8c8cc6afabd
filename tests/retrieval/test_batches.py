"""A query is answered the same to the last bit, whatever is asked beside it."""

from dataclasses import replace
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
from evenplace.retrieval.array_files import Column, compare_rows, dots
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.candidates import Pools, Rankings, rank_pools
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
        monkeypatch.setattr("evenplace.retrieval.shortlist_tuning.FEWEST", 64)
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
        "evenplace.retrieval.array_files._GATHERED", 30 * DIM
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
        monkeypatch.setattr("evenplace.retrieval.top_k._BITS", 40)
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


def some_pools(seed: int = 0) -> Pools:
    """Four queries, the second without candidates; photos of three places and of none."""
    rng = np.random.default_rng(seed)
    cuts = np.array([0, 4, 4, 9, 10])
    places = np.array([2, 2, 0, 0, 1, 1, 1, -1, -1, 2])
    cosines = rng.uniform(-0.9, -0.1, 10).astype(np.float32)
    return Pools(
        rng.permutation(10), places, cosines, rng.normal(size=10).astype(np.float32),
        np.eye(4, dtype=np.float32), cuts,
    )  # fmt: skip


def test_what_a_batch_says_of_its_queries_is_counted_one_by_one() -> None:
    pools = some_pools()
    own = [range(0, 4), range(4, 4), range(4, 9), range(9, 10)]
    assert pools.sizes.tolist() == [4, 0, 5, 1]
    assert pools.of.tolist() == [0] * 4 + [2] * 5 + [3]
    best = [max((float(pools.cosines[at]) for at in mine), default=0.0) for mine in own]
    assert pools.largest.tolist() == pytest.approx(best)
    for query, mine in enumerate(own):
        for at in mine:
            weight = np.exp(30 * (float(pools.cosines[at]) - best[query]))
            assert pools.weights[at] == pytest.approx(weight, rel=1e-5)
    sums = [sum(float(pools.cosines[at]) for at in mine) for mine in own]
    assert pools.sums(pools.cosines).tolist() == pytest.approx(sums)
    none, nothing = np.empty(0, np.int64), np.empty(0, np.float32)
    nobody = Pools(none, none, nothing, nothing, np.eye(2, dtype=np.float32), np.zeros(3, np.int64))
    assert nobody.sums(nobody.cosines).tolist() == [0, 0]
    assert [part.tolist() for part in nobody.segments()] == [[], [], []]


@pytest.mark.parametrize("mixed", [False, True])
def test_pairs_of_a_query_and_a_place_are_found_together_and_apart(mixed: bool) -> None:
    pools = some_pools()
    if mixed:
        pools = replace(pools, places=np.array([2, 0, 2, 0, 1, -1, 1, -1, 1, 2]))
    query, place, which = pools.segments()
    assert query[which].tolist() == pools.of.tolist()
    assert place[which].tolist() == pools.places.tolist()
    pairs = list(zip(query.tolist(), place.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs) == 5


def test_hidden_rows_leave_their_own_query_only() -> None:
    pools = some_pools()
    gone = [pools.rows[[1, 3, 5]], pools.rows, pools.rows[[0, 8]], np.empty(0, int)]
    left = pools.hiding(gone)
    kept = [0, 2, 4, 5, 6, 7, 9]
    assert left.cuts.tolist() == [0, 2, 2, 6, 7]
    for name in ("rows", "places", "cosines", "log_posterior"):
        np.testing.assert_array_equal(getattr(left, name), getattr(pools, name)[kept])


def test_photos_in_no_place_come_behind_the_candidates_of_their_queries() -> None:
    pools = some_pools()
    cosines, likely = np.array([0.1, 0.2, 0.3], np.float32), np.zeros(3, np.float32)
    both = pools.beside(np.array([1, 2, 2]), np.array([70, 71, 72]), cosines, likely)
    assert both.cuts.tolist() == [0, 4, 5, 12, 13]
    assert both[1].rows.tolist() == [70]
    assert both[2].rows.tolist() == [*pools[2].rows.tolist(), 71, 72]
    assert both[2].places.tolist() == [1, 1, 1, -1, -1, -1, -1]
    assert both[3].rows.tolist() == pools[3].rows.tolist()


def test_the_best_of_each_query_are_padded_where_there_are_fewer() -> None:
    pools = some_pools()
    ranked = rank_pools(pools, -pools.cosines, by_place=False)
    assert ranked.looked.tolist() == [0] * 4
    best = ranked.best(pools, 2)
    for query, mine in enumerate((range(0, 4), range(4, 4), range(4, 9), range(9, 10))):
        order = sorted(mine, key=lambda at: -float(pools.cosines[at]))[:2]
        short = 2 - len(order)
        assert best.rows[query].tolist() == [*pools.rows[order].tolist(), *[-1] * short]
        np.testing.assert_array_equal(
            best.distances[query], [*-pools.cosines[order], *[np.inf] * short]
        )
        np.testing.assert_array_equal(
            best.cosines[query], [*pools.cosines[order], *[np.nan] * short]
        )
    assert np.isnan(best.inliers).all()
    seen = np.where(np.arange(10) % 3 == 0, np.nan, np.arange(10)).astype(np.float32)
    looked = replace(ranked, inliers=seen)
    assert looked.looked.tolist() == [2, 0, 4, 0]
    np.testing.assert_array_equal(looked.best(pools, 2).inliers[0], seen[:2])
    np.testing.assert_array_equal(looked[2].inliers, seen[4:9])


def test_rankings_of_one_query_each_are_joined_as_they_are() -> None:
    pools = some_pools()
    ranked = replace(
        rank_pools(pools, -pools.cosines, by_place=False), inliers=np.arange(10, dtype=np.float32)
    )
    again = Rankings.join([ranked[query] for query in range(4)], pools.cuts)
    for name in ("order", "distances", "cuts", "inliers"):
        np.testing.assert_array_equal(getattr(again, name), getattr(ranked, name))
    some = [ranked[0], *(replace(ranked[query], inliers=None) for query in (1, 2, 3))]
    assert Rankings.join(some, pools.cuts).inliers is None
    assert Rankings.join([replace(one, inliers=None) for one in some], pools.cuts).inliers is None


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
