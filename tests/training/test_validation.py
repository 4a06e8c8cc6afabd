"""The best epoch is chosen on photos that training has not seen, and never on the test set."""

import json
from pathlib import Path

import numpy as np
import pytest

from evenplace.photos import Photos
from evenplace.places import Grid
from evenplace.training.loop import Validated, train
from evenplace.training.recipe import Recipe
from evenplace.training.validation import HeldOut, hold_out, without
from tests.drawn import photos_at
from tests.training.town import QUICK, draw_town, quick_run, small_network


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Photos:
    return draw_town(tmp_path_factory.mktemp("town"))


def test_no_spot_is_on_both_sides() -> None:
    spots = np.repeat(np.random.default_rng(0).uniform(0, 100, (30, 2)), 3, axis=0)
    photos = photos_at(spots)
    rows = hold_out(photos, 0.2, seed=0)
    assert len(rows) == 18
    held = {tuple(one) for one in photos.positions[rows].round(2)}
    rest = np.delete(photos.positions, rows, axis=0).round(2)
    assert not held & {tuple(one) for one in rest}


def test_places_left_without_photos_are_gone_and_the_rest_keep_theirs() -> None:
    photos = photos_at(np.array([[1.0, 1], [2, 2], [30, 1], [50, 1]]))
    places = Grid(20).partition(photos)
    fewer = without(places, np.array([0, 2]))
    assert fewer.counts.tolist() == [1, 1]
    assert fewer.labels.tolist() == [-1, 0, -1, 1]
    np.testing.assert_array_equal(fewer.ids, places.ids[[0, 2]])


class Looks:
    """A source that has descriptors at hand."""

    def __init__(self, descriptors: np.ndarray) -> None:
        self.descriptors, self.readable = descriptors, np.ones(len(descriptors), bool)

    def look(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(self.descriptors[rows])


def test_recall_counts_neighbours_within_25_metres_and_skips_the_lonely() -> None:
    spots = np.array([[0.0, 0], [100, 0], [20, 0], [90, 0], [500, 0]])
    photos = photos_at(spots)
    rows = np.array([2, 3, 4])
    places = without(Grid(20).partition(photos), rows)
    east, north = np.eye(2)
    source = Looks(np.array([east, north, east, east, east], np.float32))
    recall = HeldOut(photos, places, rows).recall(source)  # type: ignore[arg-type]
    assert recall.queries == 2
    assert recall.overall == 0.5


def test_the_best_epoch_is_refitted_on_all_photos(town: Photos, tmp_path: Path) -> None:
    met: list[Validated] = []
    recipe = Recipe().changed([*QUICK, "epochs=3", "validation=0.25"])
    run = tmp_path / "run"
    places = Grid(20).partition(town)
    trained = train(small_network(), town, places, recipe, run, on_validated=met.append)
    (seen,) = met
    lines = [json.loads(x) for x in (run / "validation/log.jsonl").read_text().splitlines()]
    recalls = [line["recall"] for line in lines]
    assert len(recalls) == 3
    assert all("recall_tail" in line or line["queries"] for line in lines)
    assert len(trained.losses) == 1 + int(np.argmax(recalls))
    assert trained.recall == seen.recall
    assert 100 * seen.recall.overall == pytest.approx(max(recalls), abs=0.01)
    assert len(seen.photos) + len(seen.held_out) == len(town)
    assert seen.network.place_count == len(seen.places) <= len(places)
    assert len(seen.places.labels) == len(seen.photos)
    assert trained.network.place_count == len(places)
    others = Photos.read(run / "training.parquet")
    assert sorted(others.paths) == sorted(seen.photos.paths)
    held = Photos.read(run / "validation.parquet")
    assert sorted(held.paths) == sorted(seen.held_out.paths)


def test_without_a_refit_the_best_epoch_itself_is_kept(town: Photos, tmp_path: Path) -> None:
    trained = quick_run(town, tmp_path / "run", "validation=0.25", "refit=false", "epochs=3")
    assert len(trained.losses) == 3
    assert trained.recall is not None
    again = quick_run(town, tmp_path / "run", "validation=0.25", "refit=false", "epochs=3")
    assert again.recall == trained.recall
    for name, tensor in trained.network.state_dict().items():
        assert np.array_equal(again.network.state_dict()[name].numpy(), tensor.numpy()), name


def test_held_out_photos_teach_nothing(town: Photos, tmp_path: Path) -> None:
    """Their pixels may change and the fit does not."""
    rows = hold_out(town, 0.25, 0)
    first = quick_run(town, tmp_path / "one", "validation=0.25", "refit=false", "epochs=1")
    other = draw_town(tmp_path / "copy")
    for row in rows:
        Path(other.paths[row]).write_bytes(Path(other.paths[rows[0]]).read_bytes())
    second = quick_run(other, tmp_path / "two", "validation=0.25", "refit=false", "epochs=1")
    assert first.losses == second.losses
