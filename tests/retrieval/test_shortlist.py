"""The approximate shortlist inside the engine, before and after updates."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evenplace.photos import Photos
from evenplace.places import Grid
from evenplace.retrieval import Index, Search
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.impostors import Impostors, impostor_similarity
from evenplace.retrieval.update import add_photos, remove_photos
from tests.drawn import EAST, NORTH, ZONE

Floats = NDArray[np.float32]
PLACES, DIM = 900, 48


def looks(cells: NDArray[np.int64], seed: int) -> Floats:
    """Cells of a square of 30 × 30, alike when near; every photo differs a little."""
    waves = np.random.default_rng(0).normal(0, 0.25, (2, DIM))
    turn = np.random.default_rng(1).uniform(0, 6, DIM)
    rows = np.cos(cells @ waves + turn) + 0.15 * np.random.default_rng(seed).normal(
        size=(len(cells), DIM)
    )
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def photos_in(cells: NDArray[np.int64], stem: str) -> Photos:
    spots = cells * 20.0 + 10
    return Photos.from_arrays(
        east=EAST + spots[:, 0], north=NORTH + spots[:, 1], zone=ZONE,
        path=[f"{stem}-{number}.jpg" for number in range(len(cells))],
    )  # fmt: skip


def town() -> NDArray[np.int64]:
    cells = np.stack(np.divmod(np.arange(PLACES), 30), axis=1)
    return np.repeat(cells, np.arange(PLACES) % 4 + 1, axis=0)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    monkeypatch.setattr("evenplace.retrieval.shortlist_tuning.FEWEST", 64)
    cells = town()
    photos = photos_in(cells, "old")
    places = Grid(20).partition(photos)
    return index_descriptors(looks(cells, 2), photos, places, tmp_path / "index")


def agree(index: Index) -> None:
    """The codes and the exact pass give the same shortlists, posteriors and answers."""
    assert index.coarse is not None
    queries = looks(town()[::7], 5)
    codes = Search(index).search(queries, 5)
    exact = Search(replace(index, coarse=None)).search(queries, 5)
    kept = [np.isin(a, b).mean() for a, b in zip(exact.shortlist, codes.shortlist, strict=True)]
    assert np.mean(kept) > 0.995
    np.testing.assert_array_equal(codes.rows[:, 0], exact.rows[:, 0])
    np.testing.assert_allclose(codes.posterior[:, 0], exact.posterior[:, 0], atol=0.05)


def test_codes_and_the_exact_pass_agree(index: Index) -> None:
    agree(index)


def test_they_agree_after_updates(index: Index) -> None:
    more = np.concatenate([town()[::50], np.array([[40, 40], [60, 5], [-3, 2]])])
    add_photos(index.folder, looks(more, 8), photos_in(more, "new"))
    updated = remove_photos(index.folder, index.photos.paths[:40])
    assert len(updated.places) == PLACES + 3
    assert (updated.sizes == 0).any()
    agree(updated)
    engine = Search(updated)
    found = engine.search(looks(np.array([[40, 40]]), 9), 1)
    assert engine.hits(found, 0)[0].path == f"new-{len(more) - 3}.jpg"
    assert not set(found.shortlist[0]) & set(np.flatnonzero(updated.sizes == 0))


def test_the_impostor_term_at_scale_is_close_to_all_pairs(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only look-alike places are compared; what that misses is corrected by a few photos."""
    exact = impostor_similarity(index.descriptors, index.photos.positions)
    monkeypatch.setattr("evenplace.retrieval.impostors.EXACT", 100)
    approximate = Impostors(
        index.descriptors, index.photos.positions, index.starts, index.prototypes, index.coarse
    )
    blocks = approximate.terms(np.arange(len(index.places)), np.empty(0, np.int64))
    found = np.concatenate(list(blocks))
    assert len(found) == len(index)
    assert abs(float((exact - found).mean())) < 0.005
    assert np.abs(exact - found).mean() < 0.02
    assert np.corrcoef(found, exact)[0, 1] > 0.7


def test_large_indexes_take_the_impostor_term_at_scale(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenplace.retrieval.impostors.EXACT", 100)
    again = index_descriptors(
        index.vectors(np.arange(len(index))), index.photos, index.places, tmp_path / "again"
    )
    assert 0 < np.abs(again.impostors - index.impostors).mean() < 0.12
