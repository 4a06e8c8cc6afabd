"""An index on disk: right rows in the right place, whole or not there at all."""

import json
import threading
from pathlib import Path

import numpy as np
import pytest

from evenplace.errors import IndexFileError
from evenplace.places import Grid
from evenplace.retrieval import open_index, verify_index
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.impostors import impostor_similarity
from evenplace.retrieval.prototypes import PlaceMeans
from tests import oracle_search as oracle
from tests.drawn import photos_at, unit

BASE = "000001"
SPOTS = np.random.default_rng(0).uniform(0, 200, (40, 2))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    photos = photos_at(SPOTS)
    index_descriptors(
        unit(40, 8, 0), photos, Grid(20, min_photos=2).partition(photos), tmp_path / "i"
    )
    return tmp_path / "i"


def test_photos_of_a_place_lie_side_by_side(folder: Path) -> None:
    index = open_index(folder)
    labels = index.places.locate(index.photos)
    np.testing.assert_array_equal(labels, index.labels)
    for place in range(len(index.places)):
        rows = slice(index.starts[place], index.starts[place + 1])
        assert (labels[rows] == place).all()
    assert (labels[index.starts[-1] :] == -1).all()
    assert (labels == -1).any(), "the test needs photos outside every place"


def test_rows_keep_their_descriptors(folder: Path) -> None:
    index, before = open_index(folder), unit(40, 8, 0)
    order = [int(path[6:10]) for path in index.photos.paths]
    np.testing.assert_allclose(index.descriptors, before[order], atol=1e-3)
    assert index.descriptors.dtype == np.float16


def test_prototypes_are_mean_directions() -> None:
    vectors = unit(5, 4, 0)
    means = PlaceMeans(3, 4)
    means.add(np.array([0, 0, 2]), vectors[:3])  # a place may go on in the next block
    means.add(np.array([2, 3]), vectors[3:])
    found = means.directions()
    mean = (vectors[0] + vectors[1]) / np.linalg.norm(vectors[0] + vectors[1])
    np.testing.assert_allclose(found[0], mean, rtol=1e-5)
    whole = (vectors[2] + vectors[3]) / np.linalg.norm(vectors[2] + vectors[3])
    np.testing.assert_allclose(found[2], whole, rtol=1e-5)
    assert not found[1].any()


@pytest.mark.parametrize("neighbours", [1, 3, 10])
def test_impostors_equal_the_loops(neighbours: int) -> None:
    vectors, spots = unit(12, 5, 0), np.random.default_rng(1).uniform(0, 120, (12, 2))
    found = impostor_similarity(vectors, spots, neighbours=neighbours, apart=50)
    for i in range(12):
        expected = oracle.impostor(i, vectors.tolist(), spots.tolist(), neighbours, 50)
        assert found[i] == pytest.approx(expected, abs=1e-5)


def test_a_photo_with_nobody_far_away_has_no_impostors() -> None:
    assert impostor_similarity(unit(3, 4, 0), np.zeros((3, 2))).tolist() == [0, 0, 0]


def test_a_flipped_bit_is_found(folder: Path) -> None:
    verify_index(folder)
    for file in sorted((folder / BASE).iterdir()):
        whole = file.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 1
        file.write_bytes(flipped)
        with pytest.raises(IndexFileError, match=rf"{file.name} does not match its checksum"):
            verify_index(folder)
        file.write_bytes(whole)
    verify_index(folder)


def test_a_flipped_bit_in_the_manifest_is_found(folder: Path) -> None:
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(text.replace('"scale": ', '"scale": 1'))
    with pytest.raises(IndexFileError, match="checksum"):
        open_index(folder)
    (folder / "manifest.json").write_text(text[:-9])
    with pytest.raises(IndexFileError, match="checksum"):
        open_index(folder)


def test_a_truncated_or_missing_file_is_refused_at_opening(folder: Path) -> None:
    for file in sorted((folder / BASE).iterdir()):
        data = file.read_bytes()
        file.write_bytes(data[:-8])
        with pytest.raises(IndexFileError, match=rf"{file.name} has \d+ bytes"):
            open_index(folder)
        file.unlink()
        with pytest.raises(IndexFileError, match=rf"{file.name} is missing"):
            open_index(folder)
        file.write_bytes(data)


def test_another_version_is_refused(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"version": 99}))
    with pytest.raises(IndexFileError, match=r"version 99.*build it again"):
        open_index(folder)


def test_a_folder_without_index_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(IndexFileError, match="evenplace index"):
        open_index(tmp_path)


@pytest.mark.parametrize(
    ("vectors", "words"),
    [
        (np.full((40, 8), np.nan, np.float32), "finite"),
        (np.zeros((40, 8), np.float32), "unit length"),
        (unit(39, 8, 0), "one row a photo"),
    ],
)
def test_bad_descriptors_are_refused_and_leave_nothing(
    vectors: np.ndarray, words: str, tmp_path: Path
) -> None:
    photos = photos_at(SPOTS)
    with pytest.raises(IndexFileError, match=words):
        index_descriptors(vectors, photos, Grid(20).partition(photos), tmp_path / "i")
    assert {path.name for path in (tmp_path / "i").glob("*")} <= {"lock"}
    with pytest.raises(IndexFileError, match="holds no index"):
        open_index(tmp_path / "i")


def test_a_failed_build_leaves_the_old_index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evenplace.retrieval.manifest.publish", full)
    photos = photos_at(SPOTS)
    with pytest.raises(
        IndexFileError, match=r"last good index is untouched: the disk is full; free some space"
    ):
        index_descriptors(unit(40, 8, 9), photos, Grid(20).partition(photos), folder)
    monkeypatch.undo()
    verify_index(folder)
    assert sorted(path.name for path in folder.iterdir()) == [BASE, "lock", "manifest.json"]


def test_a_disk_that_fails_meanwhile_publishes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("evenplace.retrieval.manifest._PAUSE", 0.0)
    monkeypatch.setattr("evenplace.retrieval.manifest.sync", broken)
    photos = photos_at(SPOTS)
    with pytest.raises(IndexFileError, match="last good index is untouched: the disk is full"):
        index_descriptors(unit(40, 8, 9), photos, Grid(20).partition(photos), folder)
    monkeypatch.undo()
    assert verify_index(folder).generation == 1
    assert sorted(path.name for path in folder.iterdir()) == [BASE, "lock", "manifest.json"]


def test_building_again_is_a_new_generation(folder: Path) -> None:
    before = open_index(folder)
    vectors = np.array(before.descriptors)
    photos = photos_at(SPOTS)
    index_descriptors(unit(40, 8, 9), photos, Grid(20).partition(photos), folder)
    assert open_index(folder).manifest.generation == 2
    np.testing.assert_array_equal(before.descriptors, vectors)  # the old reader keeps its own


def test_descriptors_may_come_in_blocks(folder: Path, tmp_path: Path) -> None:
    photos, vectors = photos_at(SPOTS), unit(40, 8, 0)
    blocks = (vectors[first : first + 7] for first in range(0, 40, 7))
    places = Grid(20, min_photos=2).partition(photos)
    built = index_descriptors(blocks, photos, places, tmp_path / "blocks")
    np.testing.assert_array_equal(built.descriptors, open_index(folder).descriptors)
    assert built.manifest.files.keys() == open_index(folder).manifest.files.keys()
    with pytest.raises(IndexFileError, match="39 rows came"):
        index_descriptors(iter([vectors[:39]]), photos, places, tmp_path / "short")


def test_photos_in_no_known_place_are_indexed_however_many(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenplace.retrieval.impostors.EXACT", 30)
    places = open_index(folder).places
    built = index_descriptors(unit(40, 8, 0), photos_at(SPOTS + 9_000), places, tmp_path / "far")
    assert (built.labels == -1).all()
    exact = impostor_similarity(built.descriptors, built.photos.positions)
    np.testing.assert_allclose(built.impostors, exact, atol=1e-3)  # a sample of all is all
