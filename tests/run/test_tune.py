"""What held-out photos teach a run, on a town of coloured cells."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from evenplace.errors import PhotoError, RunError, SettingError
from evenplace.photos import Photos, read_photos
from evenplace.places import Grid
from evenplace.retrieval import open_index
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.rehearsal import Rehearsal
from evenplace.retrieval.rerank import Fused
from evenplace.run.fold_answers import rehearsed
from evenplace.run.folds import Fold, deal, stored_folds
from evenplace.run.run import Run
from evenplace.run.scenarios import no_other_day, off_the_map, on_other_days, on_other_passes
from evenplace.run.tune import learn_search
from evenplace.run.tune_second_look import LookTuner
from evenplace.training.recipe import Recipe, read_recipe
from tests.drawn import draw_photos, photos_at

QUICK = ["epochs=2", "image_size=64", "batch=16", "dim=16"]


def recipe(**search: object) -> Recipe:
    small = read_recipe("dapr-m").changed([*QUICK, "verify=0"])
    return replace(small, search=replace(small.search, folds=3, **search))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Photos:
    folder = tmp_path_factory.mktemp("town")
    spots = np.random.default_rng(0).uniform(0, 100, (120, 2))
    draw_photos(folder, spots)
    return read_photos(folder)


@pytest.fixture(scope="module")
def run(town: Photos, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "tuned"
    Run(folder).train(town, recipe=recipe())
    Run(folder).index(town)
    return folder


def test_folds_hold_every_photo_out_once_and_spots_together() -> None:
    photos = photos_at(np.repeat(np.arange(14.0).reshape(7, 2), 2, axis=0))
    folds = list(deal(photos, 3, seed=0))
    assert sorted(np.concatenate(folds).tolist()) == list(range(14))
    assert all(len(rows) % 2 == 0 for rows in folds)


def test_a_run_that_starts_at_random_is_its_seed_s_alone(town: Photos, tmp_path: Path) -> None:
    base = read_recipe("cosface").changed(["epochs=1", "image_size=64", "batch=16", "dim=16"])
    logs = []
    for number, seed in enumerate((0, 0, 1)):
        torch.manual_seed(number)
        folder = tmp_path / str(number)
        Run(folder).train(
            town, recipe=base.changed([f"seed={seed}"]), cache_folder=tmp_path / "cache"
        )
        logs.append(json.loads((folder / "log.jsonl").read_text())["loss"])
    assert logs[0] == logs[1] != logs[2]


def test_training_leaves_a_learned_score_and_a_calibration_from_every_photo(
    run: Path, town: Photos
) -> None:
    answers = Rehearsal.read(run / "calibration.json")
    curve = answers.calibrate()
    assert len(curve.right) == 2 * len(town)  # as taken, and in another light
    assert len(curve.away) == len(town)
    assert 0 < sum(curve.right) <= 2 * len(town)
    assert sum(answers.calibrate(radius=5.0).right) < sum(curve.right)
    assert Fused.read(run / "fused.json").scale != Fused().scale
    assert not (run / "folds").exists()


def test_an_engine_uses_what_was_learned(run: Path) -> None:
    engine, learned = Run(run).search(), Fused.read(run / "fused.json")
    assert isinstance(engine.rule, Fused)
    assert engine.rule.scale == learned.scale
    answers = Rehearsal.read(run / "calibration.json")
    assert engine.calibration == answers.calibrate()
    assert not engine.facing
    strict = Run(run).search(radius=10.0, heading=30.0)
    assert strict.calibration == answers.calibrate(10.0, 30.0)
    assert strict.facing


@pytest.mark.parametrize(
    "change", [{"rerank": "l2"}, {"confidence": "mass"}, {"shortlist": 3}, {"exact": True}]
)
def test_a_calibration_is_left_out_where_it_does_not_hold(
    run: Path, change: dict[str, Any]
) -> None:
    assert Run(run).search(**change).calibration is None
    learned = Run(run).calibration()
    assert learned is not None
    assert str(learned) == "uncalibrated: all photos were taken on one day (2020-01-01)"
    assert "\n" not in str(learned)
    with pytest.raises(SettingError, match=r"this calibration is for Fused.* the answers are by"):
        Run(run).search(calibration=learned, **change)


def test_confidence_of_answers_is_a_probability(run: Path, town: Photos) -> None:
    scores = Run(run).evaluate(town[np.arange(20)], out=run.parent)
    sure = scores.predictions.confidence
    assert ((sure >= 0) & (sure <= 1)).all()
    assert len(np.unique(sure)) > 1


def test_training_again_does_not_tune_again(run: Path, town: Photos) -> None:
    before = (run / "calibration.json").stat().st_mtime_ns
    Run(run).train(town, recipe=recipe())
    assert (run / "calibration.json").stat().st_mtime_ns == before


def test_photos_of_the_training_are_indexed_without_reading_them_again(
    run: Path, town: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Run(run).search().index
    again = tmp_path / "run"
    shutil.copytree(run, again, ignore=shutil.ignore_patterns("cache", "index"))
    anew = Run(again).index(town)
    assert read.paths(np.arange(len(read))) == anew.paths(np.arange(len(anew)))
    np.testing.assert_allclose(read.descriptors, anew.descriptors, atol=3e-3)
    monkeypatch.setattr("evenplace.run.run_folder.Describer", None)
    Run(run).index(town[np.arange(30)])
    with pytest.raises(TypeError):
        Run(again).index(town)
    Run(run).index(town)


def test_a_damaged_score_is_named(tmp_path: Path) -> None:
    (tmp_path / "fused.json").write_text('{"scale": 3}')
    with pytest.raises(RunError, match=r"no fused score .*evenplace tune"):
        Fused.read(tmp_path / "fused.json")


def test_asking_for_precision_keeps_what_the_learned_threshold_lets_through(
    run: Path, town: Photos
) -> None:
    scores = Run(run).evaluate(town[np.arange(40)], out=run.parent)
    with pytest.raises(SettingError, match=r"cannot be promised: all photos were taken on one day"):
        Run(run).judge(scores, 0.6)
    judged = Run(run).judge(scores, 0.6, insist=True)
    least = Rehearsal.read(run / "calibration.json").calibrate().threshold(0.6)
    kept = scores.predictions.confidence >= least
    assert judged.overall.answered == int(kept.sum())
    assert judged.overall.right == int((scores.predictions.right & kept).sum())
    assert (run / "abstention.json").exists()


def test_a_precision_is_not_promised_for_a_ranking_that_was_not_rehearsed(
    run: Path, town: Photos
) -> None:
    scores = Run(run).evaluate(town[np.arange(20)], out=run.parent, rerank="l2")
    with pytest.raises(SettingError, match="needs a calibration"):
        Run(run).judge(scores, 0.6, rerank="l2")


def test_labelled_queries_calibrate_what_the_photos_could_not(
    run: Path, town: Photos, tmp_path: Path
) -> None:
    own = tmp_path / "run"
    shutil.copytree(run, own, ignore=shutil.ignore_patterns("cache"))
    before = (own / "fused.json").read_bytes()
    with pytest.raises(SettingError, match=r"cannot be promised.*tune RUN --queries"):
        Run(own).locate(town.paths[0], min_precision=0.6)
    assert Run(own).locate(town.paths[0]).doubt.startswith("all photos")
    with pytest.raises(PhotoError, match=r"100 of the 100 queries are photos of the database"):
        Run(own).tune(queries=town[np.arange(100)])
    draw_photos(tmp_path / "later", np.random.default_rng(1).uniform(0, 100, (100, 2)))
    Run(own).tune(queries=read_photos(tmp_path / "later"))
    answer = Run(own).locate(town.paths[0], min_precision=0.6)
    assert (answer.calibrated, answer.doubt) == (True, "")
    assert (own / "fused.json").read_bytes() == before


def fold_of(database: Photos, queries: Photos, folder: Path) -> Fold:
    """The database photos face one way each; queries look like all of them."""
    directions = np.eye(8, dtype=np.float32)[np.arange(len(database)) % 8]
    asked = np.full((len(queries), 8), 8**-0.5, np.float32)
    places = Grid(20.0).partition(database)
    index = index_descriptors(directions, database, places, folder)
    return Fold(index, queries, asked, np.arange(len(queries)))


def taken(days: list[str], spots: list[float], drives: list[str | None] | None = None) -> Photos:
    at, time = np.array(spots), np.array(days, "datetime64[s]")
    known: dict[str, Any] = {} if drives is None else {"sequence": drives}
    return Photos.from_arrays(east=at, north=at * 0, time=time, **known)


def test_photos_do_not_see_those_of_their_own_day(tmp_path: Path) -> None:
    monday, friday = "2024-05-06T09:00", "2024-05-10T09:00"
    database = taken([monday, friday, monday], [0.0, 1.0, 500.0])
    later = "2024-05-06T18:00"
    queries = taken([later, friday, later], [2.0, 3.0, 501.0])
    (fold,) = on_other_days([fold_of(database, queries, tmp_path / "index")])
    assert fold.queries.east.tolist() == [2.0, 3.0]  # 501 has no match but of its own day
    assert hidden_from(fold) == [[0.0, 500.0], [1.0]]


def test_a_drive_over_midnight_is_hidden_with_its_day(tmp_path: Path) -> None:
    late, early, friday = "2024-05-06T23:59", "2024-05-07T00:01", "2024-05-10T09:00"
    database = taken([late, early, friday, friday], [0.0, 10.0, 1.0, 400.0], ["a", "a", "b", None])
    queries = taken([late, friday], [2.0, 3.0], ["a", "b"])
    (fold,) = on_other_days([fold_of(database, queries, tmp_path / "index")])
    assert hidden_from(fold) == [[0.0, 10.0], [1.0, 400.0]]


def hidden_from(fold: Fold) -> list[list[float]]:
    """Where the photos lie that each query does not see."""
    east = fold.index.photos.east
    return [sorted(east[rows].tolist()) for rows in fold.hidden or ()]


def test_a_guessed_pass_is_hidden_where_another_leaves_a_match(tmp_path: Path) -> None:
    unknown = ["NaT"] * 4
    database = taken(unknown, [0.0, 5.0, 20.0, 300.0], ["a", "a", "b", "b"])
    queries = taken(unknown[:2], [2.0, 21.0], ["a", "b"])
    (fold,) = on_other_passes([fold_of(database, queries, tmp_path / "index")])
    assert hidden_from(fold) == [[0.0, 5.0], [20.0]]


def test_of_one_pass_the_next_frames_are_hidden_as_long_as_others_match(tmp_path: Path) -> None:
    unknown = ["NaT"] * 4
    database = taken(unknown, [0.0, 10.0, 30.0, 600.0], ["a"] * 4)
    queries = taken(unknown[:3], [8.0, 601.0, 900.0], ["a"] * 3)
    (fold,) = on_other_passes([fold_of(database, queries, tmp_path / "index")])
    assert hidden_from(fold) == [[0.0, 10.0], [], []], "601 has one match, and 900 none"
    assert len(fold.queries) == 3


def test_answers_are_forgiven_what_hiding_put_between_them(tmp_path: Path) -> None:
    unknown = ["NaT"] * 4
    database = taken(unknown, [0.0, 10.0, 30.0, 600.0], ["a"] * 4)
    queries = taken(unknown[:2], [8.0, 601.0], ["a"] * 2)
    (fold,) = on_other_passes([fold_of(database, queries, tmp_path / "index")])
    assert fold.gap is not None
    assert fold.gap.tolist() == [20.0, 0.0], "the nearest in sight is 22 m off, and was 2"
    assert fold.metres_off(np.arange(2), np.array([45.0, 45.0])).tolist() == [25.0, 45.0]
    assert fold.metres_off(0, np.array([10.0])).tolist() == [0.0]
    assert fold.only(np.array([1])).metres_off(0, np.array([45.0])).tolist() == [45.0]
    found = rehearsed(fold, recipe().search, "l2", 0)
    assert found["metres"][0] in (2.0, 572.0), "of those at 30 and 600 m, the rehearsal allows it"


def test_of_a_pass_a_photo_that_looks_the_same_way_stays_in_sight(tmp_path: Path) -> None:
    spots, heading = np.array([0.0, 5.0, 20.0]), np.array([10.0, 200.0, 190.0], np.float32)
    drive: dict[str, Any] = {"sequence": ["a", "a", "b"]}
    database = Photos.from_arrays(east=spots, north=spots * 0, heading=heading, **drive)
    asked: dict[str, Any] = {"east": np.array([2.0]), "north": np.zeros(1), "sequence": ["a"]}
    queries = Photos.from_arrays(**asked, heading=np.array([0.0], np.float32))
    (fold,) = on_other_passes([fold_of(database, queries, tmp_path / "index")])
    assert hidden_from(fold) == [[]], "of those in sight only its own pass shows the same wall"
    queries = Photos.from_arrays(**asked, heading=np.array([180.0], np.float32))
    (fold,) = on_other_passes([fold_of(database, queries, tmp_path / "other")])
    assert hidden_from(fold) == [[0.0, 5.0]]


def test_what_looks_like_the_next_frame_is_hidden_where_nothing_else_tells(tmp_path: Path) -> None:
    unknown = ["NaT"] * 3
    fold = fold_of(taken(unknown, [0.0, 5.0, 9.0]), taken(unknown[:1], [2.0]), tmp_path / "index")
    seen = fold.index.photos.east.tolist().index(5.0)
    alike = replace(fold, source=fold.index.vectors(np.array([seen])) * 0.9 + 0.03)
    (found,) = on_other_passes([alike])
    assert hidden_from(found) == [[5.0]]


def test_hidden_passes_lower_the_confidence_and_leave_the_weights(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folds = stored_folds(open_index(run / "index"), 3, 0, tmp_path)
    spec = recipe().search
    look = LookTuner(spec, tmp_path, {})
    hidden = [rows for fold in on_other_passes(folds) for rows in fold.hidden or ()]
    assert sum(map(len, hidden)) > 0
    harder = learn_search(folds, spec, 0, look, doubt="it rained")
    monkeypatch.setattr("evenplace.run.tune.on_other_passes", list)
    easier = learn_search(folds, spec, 0, look, doubt="it rained")
    assert harder is not None
    assert easier is not None
    assert repr(harder.fused) == repr(easier.fused)
    assert np.mean(harder.rehearsal.likeness) < np.mean(easier.rehearsal.likeness)


def test_photos_of_several_days_in_the_same_places_show_another_day() -> None:
    assert no_other_day(taken(["2024-05-06", "2024-05-10"] * 2, [0.0, 1.0, 90.0, 91.0])) == ""


@pytest.mark.parametrize(
    ("days", "spots", "why"),
    [
        (["NaT"] * 3, [0.0, 1.0, 2.0], "the photos carry no capture times"),
        (["2024-05-06", "NaT", "NaT"], [0.0, 1.0, 2.0], "only 33% of the photos carry a"),
        (["2024-05-06"] * 3, [0.0, 1.0, 2.0], "taken on one day (2024-05-06)"),
        (["2024-05-06"] * 3 + ["2024-05-10"], [0.0, 1.0, 90.0, 180.0], "only 0% of the photos"),
    ],
)
def test_what_shows_no_other_day_is_said(days: list[str], spots: list[float], why: str) -> None:
    assert why in no_other_day(taken(days, spots))


def test_off_the_map_nothing_within_100_metres_is_seen(tmp_path: Path) -> None:
    days = ["2024-05-06"] * 4
    fold = fold_of(taken(days, [0.0, 60.0, 140.0, 600.0]), taken(days[:1], [50.0]), tmp_path / "i")
    east, hidden = fold.index.photos.east, off_the_map(fold).hidden
    assert hidden is not None
    assert sorted(east[hidden[0]].tolist()) == [0.0, 60.0, 140.0]


def test_off_the_map_look_alikes_of_the_same_day_are_seen(tmp_path: Path) -> None:
    days = ["2024-05-06", "2024-05-07", "2024-05-06"]
    fold = fold_of(taken(days, [0.0, 20.0, 600.0]), taken(days[:1], [10.0]), tmp_path / "i")
    asked = off_the_map(on_other_days([fold])[0])
    assert asked.hidden is not None
    assert sorted(fold.index.photos.east[asked.hidden[0]].tolist()) == [0.0, 20.0]
