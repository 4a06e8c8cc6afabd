"""Two ways to the same answer: stores, precisions, shortlists, threads."""

import threading
from pathlib import Path

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from evenplace.errors import IndexFileError
from evenplace.photos import Photos
from evenplace.places import Grid
from evenplace.retrieval import Index, Search, open_index
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.confidence import mass
from evenplace.retrieval.descriptor_files import read_descriptor, read_descriptors
from evenplace.retrieval.stores import EmbeddedStore
from evenplace.retrieval.update import add_photos, remove_photos
from tests.drawn import photos_at, unit

Floats = NDArray[np.float32]


def street(count: int, dim: int = 32, seed: int = 0) -> tuple[Floats, NDArray[np.float64]]:
    """Photos along a street, alike when near."""
    rng = np.random.default_rng(seed)
    spots = np.stack([np.sort(rng.uniform(0, count * 2, count)), rng.uniform(0, 20, count)], axis=1)
    waves = rng.normal(0, 0.02, (dim, 1))
    rows = np.cos(spots[:, :1] @ waves.T + rng.uniform(0, 6, dim)) + 0.1 * rng.normal(
        size=(count, dim)
    )
    vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return vectors.astype(np.float32), spots


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    vectors, spots = street(400)
    photos = photos_at(spots)
    folder = tmp_path_factory.mktemp("street") / "index"
    return index_descriptors(vectors, photos, Grid(20).partition(photos), folder)


def queries(count: int = 40) -> Floats:
    vectors, _ = street(400)
    rows = vectors[:: 400 // count][:count] + 0.05 * np.random.default_rng(1).normal(
        size=(count, 32)
    )
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@pytest.mark.parametrize("rule", ["l2", "fused", "kde", "cfd"])
def test_all_places_equal_the_exact_search(index: Index, rule: str) -> None:
    mixed = Search(index, shortlist=10_000, rerank=rule).search(queries(), 10)
    exact = Search(index, exact=True, rerank=rule).search(queries(), 10)
    np.testing.assert_array_equal(mixed.rows, exact.rows)
    np.testing.assert_allclose(mixed.distances, exact.distances, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(mixed.confidence, exact.confidence, atol=1e-5)


def test_mass_of_a_batch_is_mass_of_each(index: Index) -> None:
    engine = Search(index, rerank="fused")
    plain = Search(index, rerank="fused", confidence=mass)
    np.testing.assert_allclose(
        engine.search(queries(), 3).confidence, plain.search(queries(), 3).confidence, atol=1e-5
    )


def test_half_precision_keeps_the_order(index: Index) -> None:
    vectors, _ = street(400)
    order = [int(path[6:10]) for path in index.photos.paths]
    whole = queries() @ vectors[order].T
    nearest = EmbeddedStore(index).nearest(queries(), 10)
    rows, cosines = nearest.rows, nearest.cosines
    np.testing.assert_allclose(cosines, np.take_along_axis(whole, rows, axis=1), atol=1e-3)
    best = -np.sort(-whole, axis=1)[:, :10]
    np.testing.assert_allclose(cosines, best, atol=1e-3)


def test_foreign_files_make_the_same_index(index: Index, tmp_path: Path) -> None:
    vectors, spots = street(400)
    photos = photos_at(spots)
    np.save(tmp_path / "d.npy", vectors)
    with h5py.File(tmp_path / "d.h5", "w") as file:
        for path, row in zip(photos.paths, vectors, strict=True):
            file.create_group(path).create_dataset("global_descriptor", data=row)
    for name in ("d.npy", "d.h5"):
        source = read_descriptors(tmp_path / name, photos)
        built = index_descriptors(source, photos, Grid(20).partition(photos), tmp_path / name[-2:])
        np.testing.assert_array_equal(built.descriptors, index.descriptors)
        np.testing.assert_array_equal(built.prototypes, index.prototypes)


def test_features_are_found_by_the_ends_of_a_path(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "d.h5", "w") as file:
        for number, name in enumerate(("town/a.jpg", "b.jpg")):
            file.create_group(name)["global_descriptor"] = np.full((1, 3), number, np.float64)
        file.create_group("data/b.jpg")  # of this path, but without a descriptor
    photos = Photos.from_arrays(
        east=[0.0] * 2, north=[0.0] * 2, path=["/data/b.jpg", "/data/town/a.jpg"]
    )
    found = read_descriptors(tmp_path / "d.h5", photos)
    assert found.shape == (2, 3)
    assert found[np.array([1, 0])].tolist() == [[0] * 3, [1] * 3]
    assert found[:1].dtype == np.float32


def test_one_descriptor_is_a_row_or_a_list_of_numbers(tmp_path: Path) -> None:
    for shape in ((8,), (1, 8), (8, 1)):
        np.save(tmp_path / "d.npy", np.arange(8.0).reshape(shape))
        assert read_descriptor(tmp_path / "d.npy").tolist() == list(range(8))
    np.save(tmp_path / "d.npy", np.zeros((2, 4)))
    with pytest.raises(IndexFileError, match=r"has shape \(2, 4\); give the descriptor of one"):
        read_descriptor(tmp_path / "d.npy")


def test_files_that_are_no_descriptors_are_refused(tmp_path: Path) -> None:
    _, spots = street(4)
    (tmp_path / "d.txt").write_text("1 2 3")
    (tmp_path / "d.npy").write_bytes(b"not an array")
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file.create_group("other.jpg")
    for name, words in (
        ("d.txt", "neither"), ("d.npy", "cannot be read"), ("none.npy", "does not exist"),
        ("d.h5", "no global_descriptor for"),
    ):  # fmt: skip
        with pytest.raises(IndexFileError, match=words):
            read_descriptors(tmp_path / name, photos_at(spots))


def test_threads_get_right_answers_while_the_index_changes(tmp_path: Path) -> None:
    """8 threads, a writer that adds and removes: nothing wrong, missing or double."""
    vectors, spots = street(300)
    photos = photos_at(spots)
    folder = tmp_path / "index"
    engines = [Search(index_descriptors(vectors, photos, Grid(20).partition(photos), folder))]
    names, wrong, done = photos.paths, [], []

    def ask(worker: int) -> None:
        for number in range(worker, 300, 8):
            engine = engines[-1]
            found = engine.hits(engine.search(vectors[number][None], 10), 0)
            paths = [hit.path for hit in found]
            if names[number] != paths[0] or len(set(paths)) != 10:
                wrong.append((names[number], paths))
            done.append(number)

    threads = [threading.Thread(target=ask, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    more, places = unit(20, 32, 5), photos_at(np.random.default_rng(2).uniform(0, 600, (20, 2)))
    renamed = places.table.set_column(0, "path", [[f"more-{i}.jpg" for i in range(20)]])
    extra = type(places)(renamed.cast(places.table.schema))
    for _ in range(3):
        add_photos(folder, more, extra)
        engines.append(engines[-1].reopen())
        remove_photos(folder, extra.paths)
        engines.append(engines[-1].reopen())
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(300))
    assert wrong == []
    assert open_index(folder).manifest.generation == 7
