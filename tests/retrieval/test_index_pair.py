"""Two indexes of one database: the first finds the places, the second ranks their photos."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from evenplace.errors import IndexFileError, SettingError
from evenplace.evaluation.confidence_curves import find_sources
from evenplace.photos import Photos
from evenplace.places import Grid
from evenplace.retrieval import Index, Search, open_index
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.index_pair import Pair
from evenplace.retrieval.update import add_photos, remove_photos
from tests.drawn import photos_at, unit

Floats = NDArray[np.float32]
PHOTOS, FIRST, SECOND = 90, 12, 20


def street(count: int = PHOTOS, seed: int = 0) -> Photos:
    """Photos of a street of 20 cells, in no order."""
    rng = np.random.default_rng(seed)
    return photos_at(np.stack([rng.uniform(0, 400, count), np.zeros(count)], axis=1))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Index, Index]:
    photos = street()
    places = Grid(20).partition(photos)
    spectra = ["paper"]
    return (
        index_descriptors(unit(PHOTOS, FIRST, 1), photos, places, tmp_path / "index"),
        index_descriptors(
            unit(PHOTOS, SECOND, 2), photos, places, tmp_path / "ranking", spectra=spectra
        ),
    )


def asked(count: int = 9) -> Floats:
    return np.concatenate([unit(count, FIRST, 3), unit(count, SECOND, 4)], axis=1)


def test_the_first_index_finds_places_and_the_second_ranks_their_photos(
    pair: tuple[Index, Index],
) -> None:
    index, ranking = pair
    queries = asked()
    found = Search(index, ranked_by=ranking, shortlist=4).search(queries, 5)
    for query, row in enumerate(queries):
        places = np.argsort(-(index.prototypes @ row[:FIRST]))[:4]
        pool = np.flatnonzero(np.isin(index.labels, places))
        cosines = ranking.descriptors[pool].astype(np.float32) @ row[FIRST:]
        best = np.argsort(-cosines)[:5]
        np.testing.assert_array_equal(found.shortlist[query], places)
        np.testing.assert_array_equal(found.rows[query], pool[best])
        np.testing.assert_allclose(found.cosines[query], cosines[best], atol=1e-3)
    alone = Search(index, shortlist=4).search(queries[:, :FIRST], 5)
    assert (alone.rows != found.rows).any(), "the first index alone would rank otherwise"


def test_the_exact_search_ranks_every_photo_by_the_second_index(pair: tuple[Index, Index]) -> None:
    index, ranking = pair
    queries = asked()
    found = Search(index, ranked_by=ranking, exact=True).search(queries, 10)
    brute = np.argsort(
        -(queries[:, FIRST:] @ np.asarray(ranking.descriptors, np.float32).T), axis=1
    )
    np.testing.assert_array_equal(found.rows, brute[:, :10])


@pytest.mark.parametrize("rule", ["cfd", "kde", "fused"])
def test_rules_look_at_the_index_that_ranks(pair: tuple[Index, Index], rule: str) -> None:
    """With every place kept, all but the fused score forget which index made the shortlist."""
    index, ranking = pair
    queries = asked()
    both = Search(index, ranked_by=ranking, shortlist=99, rerank=rule).search(queries, 8)
    alone = Search(ranking, shortlist=99, rerank=rule).search(queries[:, FIRST:], 8)
    if rule != "fused":
        np.testing.assert_array_equal(both.rows, alone.rows)
        np.testing.assert_allclose(both.distances, alone.distances, atol=1e-5)
        return
    logits = index.scale * (queries[:, :FIRST] @ index.prototypes.T)  # (Q, C)
    posterior = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    for query, rows in enumerate(both.rows):
        likeness = ranking.vectors(rows) @ queries[query, FIRST:] - 0.5 * ranking.impostors[rows]
        place = index.labels[rows]
        score = 30 * likeness + 0.5 * (posterior[query, place] - 0.5 * np.log(index.sizes[place]))
        np.testing.assert_allclose(both.distances[query], -score, atol=1e-2)


@pytest.mark.parametrize("rule", ["l2", "cfd", "fused"])
@pytest.mark.parametrize("exact", [False, True])
def test_a_batch_answers_as_one_by_one(pair: tuple[Index, Index], rule: str, exact: bool) -> None:
    index, ranking = pair
    engine = Search(index, ranked_by=ranking, shortlist=3, rerank=rule, exact=exact)
    queries = asked()
    together = engine.search(queries, 6)
    for query in range(len(queries)):
        one = engine.search(queries[query : query + 1], 6)
        for name in ("rows", "distances", "shortlist", "confidence", "posterior", "cosines"):
            np.testing.assert_array_equal(getattr(together, name)[query], getattr(one, name)[0])


def test_indexes_of_other_photos_are_refused(pair: tuple[Index, Index], tmp_path: Path) -> None:
    index, ranking = pair
    remove_photos(ranking.folder, ranking.photos.paths[:1])
    with pytest.raises(IndexFileError, match=r"\(89 photos\).*index the database again"):
        Search(index, ranked_by=open_index(ranking.folder))
    turned = index.photos[np.arange(PHOTOS)[::-1]]
    other = index_descriptors(
        unit(PHOTOS, SECOND, 2), turned, Grid(20).partition(turned), tmp_path / "turned"
    )
    with pytest.raises(IndexFileError, match="same order"):
        Search(index, ranked_by=other)


@pytest.mark.parametrize("part", [slice(0, FIRST), slice(FIRST, None)])
def test_each_half_of_a_query_has_unit_length(pair: tuple[Index, Index], part: slice) -> None:
    engine = Search(pair[0], ranked_by=pair[1])
    queries = asked()
    queries[3, part] *= 2
    with pytest.raises(SettingError, match="query 3 has length 2"):
        engine.search(queries)
    with pytest.raises(SettingError, match="12 and 20 numbers"):
        engine.search(unit(2, SECOND, 0))


def test_a_length_may_be_off_by_a_hundredth(pair: tuple[Index, Index]) -> None:
    one = Pair(pair[0], pair[0])
    queries = unit(3, FIRST, 0)
    for times in (0.991, 1.009):
        assert one.checked(queries * np.float32(times)).shape == (3, FIRST)
    for times in (0.989, 1.011, np.nan):
        wrong = queries.copy()
        wrong[1] *= np.float32(times)
        with pytest.raises(SettingError, match="query 1 has length"):
            one.checked(wrong)
    with pytest.raises(SettingError, match=r"shape \(12,\), the index holds 12 numbers"):
        one.checked(queries[0])


def test_indexes_are_asked_by_the_networks_that_wrote_them(pair: tuple[Index, Index]) -> None:
    index, ranking = pair
    alone, both = Pair(index, index), Pair(index, ranking)
    assert (alone.indexes, both.indexes) == ((index,), (index, ranking))
    models = (index.model, ranking.model)
    one: Any = SimpleNamespace(dims=(FIRST,), fingerprints=models[:1])
    two: Any = SimpleNamespace(dims=(FIRST, SECOND), fingerprints=models)
    alone.check_models(one)
    both.check_models(two)
    with pytest.raises(SettingError, match="of 1 networks cannot ask 2 indexes"):
        both.check_models(one)
    other: Any = SimpleNamespace(dims=(FIRST,), fingerprints=("another",))
    with pytest.raises(IndexFileError, match="this one is another; index the database again"):
        alone.check_models(other)


def test_updates_of_both_are_seen_after_reopening(pair: tuple[Index, Index]) -> None:
    index, ranking = pair
    engine = Search(index, ranked_by=ranking, shortlist=99)
    assert engine.reopen() is engine
    table = street(5, seed=8).table
    paths = table.column_names.index("path")
    fresh = Photos(table.set_column(paths, "path", [[f"new-{n}.jpg" for n in range(5)]]))
    wanted = unit(5, SECOND, 6)
    add_photos(ranking.folder, wanted, fresh)
    assert engine.reopen() is engine, "the first index is written last"
    add_photos(index.folder, unit(5, FIRST, 5), fresh)
    queries = np.concatenate([unit(5, FIRST, 5), wanted], axis=1)
    grown = engine.reopen()
    assert grown.index.paths(grown.search(queries, 1).rows[:, 0]) == fresh.paths
    assert len(grown.index) == PHOTOS + 5
    assert grown.index_bytes == grown.index.bytes + grown.ranking.bytes


def test_confidence_is_judged_by_the_index_that_ranks(pair: tuple[Index, Index]) -> None:
    engine = Search(pair[0], ranked_by=pair[1], shortlist=5)
    queries = asked()
    batch = next(engine.batches(queries, 20))
    hits, found = batch.hits, find_sources(engine, batch)
    np.testing.assert_allclose(found["mass"], hits.confidence, atol=1e-3)
    np.testing.assert_allclose(found["l2"], -hits.distances[:, 0], atol=1e-3)
