"""The engine on an index small enough to check by brute force."""

from pathlib import Path

import numpy as np
import pytest

from evenplace.errors import IndexFileError, SettingError
from evenplace.places import Grid
from evenplace.retrieval import Index, Search
from evenplace.retrieval.build import index_descriptors
from tests.drawn import photos_at, unit


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """60 photos in a street of 20 cells of 20 m, neighbours alike."""
    rng = np.random.default_rng(0)
    spots = np.stack([np.sort(rng.uniform(0, 400, 60)), np.zeros(60)], axis=1)
    photos = photos_at(spots)
    vectors = unit(60, 16, 1) + 3 * unit(20, 16, 2)[(spots[:, 0] // 20).astype(int)]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return index_descriptors(
        vectors.astype(np.float32), photos, Grid(20).partition(photos), tmp_path / "index"
    )


def test_a_shortlist_of_all_places_equals_the_exact_search(index: Index) -> None:
    queries = unit(12, 16, 5)
    mixed = Search(index, shortlist=10_000).search(queries, 10)
    exact = Search(index, exact=True).search(queries, 10)
    np.testing.assert_array_equal(mixed.rows, exact.rows)
    brute = np.argsort(-(np.asarray(index.descriptors, np.float32) @ queries.T), axis=0)[:10].T
    np.testing.assert_array_equal(exact.rows, brute)


def test_the_pool_is_the_photos_of_the_best_places(index: Index) -> None:
    query = unit(1, 16, 5)
    found = next(Search(index, shortlist=3).batches(query, 5))
    best = np.argsort(-(index.prototypes @ query[0]))[:3]
    assert found.hits.shortlist[0].tolist() == best.tolist()
    assert set(found.pools.rows) == set(np.flatnonzero(np.isin(index.labels, best)))


def test_a_photo_finds_itself(index: Index) -> None:
    queries = np.asarray(index.descriptors, np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    found = Search(index, shortlist=20).search(queries, 1)
    np.testing.assert_array_equal(found.rows[:, 0], np.arange(60))
    assert (found.distances[:, 0] < 0.05).all()


def test_fewer_photos_than_asked_for_leave_empty_hits(index: Index) -> None:
    engine = Search(index, shortlist=1)
    found = engine.search(unit(1, 16, 5), 50)
    many = int(index.sizes[found.shortlist[0, 0]])
    assert (found.rows[0, :many] >= 0).all()
    assert (found.rows[0, many:] == -1).all()
    assert np.isnan(found.cosines[0, many:]).all()
    assert len(engine.hits(found, 0)) == many


def test_hits_say_what_a_person_asks(index: Index) -> None:
    engine = Search(index)
    hit = engine.hits(engine.search(unit(1, 16, 5), 1), 0)[0]
    row = int(engine.search(unit(1, 16, 5), 1).rows[0, 0])
    assert hit.path == index.photos[np.array([row])].paths[0]
    assert hit.position == tuple(index.photos.positions[row])
    assert hit.place == index.labels[row]
    assert 0 <= hit.confidence <= 1


@pytest.mark.parametrize("rule", ["l2", "cosine", "cfd", "cfd-multiscale", "kde", "fused"])
def test_every_rule_answers(index: Index, rule: str) -> None:
    queries = unit(3, 16, 5)
    found = Search(index, rerank=rule).search(queries, 5)
    assert (found.rows >= 0).all()
    assert np.isfinite(found.distances).all()
    assert (np.diff(found.distances, axis=1) >= 0).all()
    alike = np.einsum("qkd,qd->qk", index.vectors(found.rows.ravel()).reshape(3, 5, 16), queries)
    np.testing.assert_allclose(found.cosines, alike, atol=1e-3)


def test_places_without_database_photos_are_skipped(index: Index, tmp_path: Path) -> None:
    keep = index.labels % 2 == 0
    vectors = index.descriptors[keep].astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    half = index_descriptors(
        vectors, index.photos[keep], index.places, tmp_path / "half",
        prototypes=np.asarray(index.prototypes),
    )  # fmt: skip
    found = Search(half, shortlist=4).search(unit(5, 16, 3), 5)
    assert (half.sizes[found.shortlist] > 0).all()


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        (np.ones((1, 16), np.float32), "length 4"),
        (unit(1, 8, 0), "holds 16 numbers"),
        (np.full((1, 16), np.nan, np.float32), "unit length"),
    ],
)
def test_bad_queries_are_refused(index: Index, queries: np.ndarray, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        Search(index).search(queries)


def test_settings_that_answer_nothing_are_refused(index: Index) -> None:
    with pytest.raises(SettingError, match="shortlist=0"):
        Search(index, shortlist=0)
    with pytest.raises(SettingError, match="k=0"):
        Search(index).search(unit(1, 16, 0), 0)
    for wrong in (2.5, "3", None):
        with pytest.raises(SettingError, match="use a whole number"):
            Search(index).search(unit(1, 16, 0), wrong)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="no describer"):
        Search(index).answer("photo.jpg")


def test_a_database_of_another_city_is_refused(index: Index, tmp_path: Path) -> None:
    far = photos_at(np.full((3, 2), 90_000.0))
    other = index_descriptors(unit(3, 16, 0), far, index.places, tmp_path / "far")
    with pytest.raises(IndexFileError, match="one city"):
        Search(other)
    assert (Search(other, exact=True).search(unit(1, 16, 1), 3).rows[0] >= 0).all()


def test_asking_for_more_hits_than_there_are_photos_costs_no_memory(index: Index) -> None:
    answer = Search(index).answers(unit(1, 16, 5), 10**15)[0]
    assert 0 < len(answer.hits) <= len(index)
