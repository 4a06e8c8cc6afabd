"""Descriptors in fewer bytes answer nearly as before, alone and in batches, after updates too."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evenplace.errors import SettingError
from evenplace.photos import Photos
from evenplace.places import Grid, Places
from evenplace.retrieval import Index, Search
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.codec import codec_for, fit_codec
from evenplace.retrieval.update import add_photos, remove_photos
from tests.drawn import EAST, NORTH, ZONE

Floats = NDArray[np.float32]
DIM = 192
KINDS = ["int8", "pca32", "pca48-int8", "pca24-int8-refined", "white48", "pq24"]


def looks(cells: NDArray[np.int64], seed: int) -> Floats:
    """Photos of cells: 24 ways to differ, and a little of everything else."""
    basis = np.random.default_rng(0).normal(size=(24, DIM))
    own = np.random.default_rng(1).normal(size=(400, 24))[cells]
    rng = np.random.default_rng(seed)
    rows = (own + 0.5 * rng.normal(size=own.shape)) @ basis + 0.5 * rng.normal(size=(len(own), DIM))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def photos_of(cells: NDArray[np.int64], stem: str) -> Photos:
    return Photos.from_arrays(
        east=EAST + cells % 20 * 20.0 + 10, north=NORTH + cells // 20 * 20.0 + 10, zone=ZONE,
        path=[f"{stem}-{number}.jpg" for number in range(len(cells))],
    )  # fmt: skip


def town() -> tuple[Floats, Photos, Places]:
    cells = np.repeat(np.arange(400), np.arange(400) % 5 + 1)
    photos = photos_of(cells, "old")
    return looks(cells, 2), photos, Grid(20).partition(photos)


def built(folder: Path, keep: str | int | None) -> Index:
    vectors, photos, places = town()
    return index_descriptors(vectors, photos, places, folder, keep=keep)


@pytest.mark.parametrize("keep", KINDS)
def test_answers_are_nearly_those_of_whole_descriptors(tmp_path: Path, keep: str) -> None:
    index, whole = built(tmp_path / "few", keep), built(tmp_path / "whole", None)
    assert index.photos.paths == whole.photos.paths
    queries = looks(np.arange(0, 400, 2), 5)
    few, many = (Search(one, rerank="l2").search(queries, 5) for one in (index, whole))
    place = [one.places_of(found.rows[:, 0]) for one, found in ((index, few), (whole, many))]
    assert np.mean(place[0] == place[1]) > 0.97
    scan = Search(index, exact=True).search(queries, 5)
    assert np.mean(scan.rows[:, 0] == few.rows[:, 0]) > 0.97
    assert index.columns["descriptors"].shape[1] * index.columns["descriptors"].dtype.itemsize < 200


@pytest.mark.parametrize("keep", [None, *KINDS])
def test_halves_are_kept_as_whole_numbers_are(tmp_path: Path, keep: str | None) -> None:
    vectors, photos, places = town()
    given = vectors.astype(np.float16)
    kept = [
        index_descriptors(rows, photos, places, tmp_path / str(rows.dtype), keep=keep)
        for rows in (given, given.astype(np.float32))
    ]
    np.testing.assert_array_equal(
        kept[0].columns["descriptors"][:], kept[1].columns["descriptors"][:]
    )


@pytest.mark.parametrize("keep", KINDS)
@pytest.mark.parametrize("rule", ["l2", "fused", "cfd"])
def test_a_batch_equals_its_queries_one_by_one(tmp_path: Path, keep: str, rule: str) -> None:
    index = built(tmp_path / "i", keep)
    engine, queries = Search(index, rerank=rule), looks(np.arange(0, 400, 40), 5)
    together = engine.search(queries, 5)
    for number, query in enumerate(queries):
        alone = engine.search(query[None], 5)
        np.testing.assert_array_equal(alone.rows[0], together.rows[number])
        np.testing.assert_allclose(alone.distances[0], together.distances[number], atol=1e-5)


@pytest.mark.parametrize("keep", KINDS)
def test_photos_come_and_go_in_the_same_codes(tmp_path: Path, keep: str) -> None:
    before = built(tmp_path / "i", keep)
    cells = np.array([3, 3, 900])
    vectors = looks(np.array([3, 3, 17]), 9)
    add_photos(tmp_path / "i", vectors, photos_of(cells, "new"))
    index = remove_photos(tmp_path / "i", ["old-0.jpg"])
    assert len(index) == len(before) + 2
    found = Search(index, shortlist=1000).search(vectors, 1)
    assert index.paths(found.rows[:, 0]) == ["new-0.jpg", "new-1.jpg", "new-2.jpg"]
    assert index.manifest.codec == keep


def test_the_loss_is_measured_in_the_tail_too(tmp_path: Path) -> None:
    loss = built(tmp_path / "i", "int8").manifest.loss
    assert loss["asked"] == 320  # the places of two photos and more
    assert 0 < loss["tail_asked"] < loss["asked"]
    assert abs(loss["exact"] - loss["kept"]) < 1
    assert loss["exact"] > 90
    crude = built(tmp_path / "crude", "pca2-int8").manifest.loss
    assert crude["kept"] < loss["kept"] - 30, "two numbers cannot tell 400 places apart"
    assert built(tmp_path / "whole", None).manifest.loss == {}


def test_bytes_that_lose_too_much_are_refined(tmp_path: Path) -> None:
    few = built(tmp_path / "few", 8)
    assert few.codec.name == "pq8"
    many = built(tmp_path / "many", 128)
    assert many.codec.name == "pca128-int8", "24 ways to differ fit into 128 numbers"
    rng = np.random.default_rng(3)
    rows = np.repeat(rng.normal(size=(400, DIM)), 2, axis=0) + 1.5 * rng.normal(size=(800, DIM))
    vectors = np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)
    photos = photos_of(np.repeat(np.arange(400), 2), "noise")
    places = Grid(20).partition(photos)
    index = index_descriptors(vectors, photos, places, tmp_path / "noise", keep=128)
    assert index.codec.name == "pca128-int8-refined"
    assert index.columns["exact"].shape == (800, DIM)
    assert index.manifest.loss["kept"] > index.manifest.loss["exact"] - 0.5


@pytest.mark.parametrize("keep", ["pca8-int8-refined", "pq8"])
def test_what_is_not_refined_comes_after_what_is(tmp_path: Path, keep: str) -> None:
    index = built(tmp_path / "i", keep)
    queries = looks(np.arange(0, 400, 7), 5)
    found = Search(index, shortlist=1000).search(queries, 150)
    exact = np.asarray(index.columns["exact"], np.float32)
    products = np.take_along_axis(queries @ exact.T, found.rows, axis=1)
    np.testing.assert_allclose(found.cosines[:, :100], products[:, :100], atol=2e-6)
    assert (np.diff(found.cosines, axis=1) <= 0).all()


def test_bytes_choose_what_keeps_most() -> None:
    assert [codec_for(8448, size) for size in (16_896, 9000, 8448, 512, 64)] == [
        "float16", "int8", "int8", "pca512-int8", "pq64",
    ]  # fmt: skip
    assert [codec_for(8448, size, 100) for size in (512, 64)] == ["pca100-int8", "pca64-int8"]
    with pytest.raises(SettingError, match="bytes=0"):
        codec_for(8448, 0)
    with pytest.raises(SettingError, match="known: float16"):
        fit_codec("zip", looks(np.arange(400), 0))
    with pytest.raises(SettingError, match="ask fewer"):
        fit_codec("pca500", looks(np.arange(400), 0))
    with pytest.raises(SettingError, match="256 photos"):
        fit_codec("pq8", looks(np.arange(100), 0))
