"""A run that looks twice, as it is typed: learned on its folds, kept in its index, asked by all."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evenplace.cli import main
from evenplace.errors import RunError, SettingError
from evenplace.photos import read_photos
from evenplace.retrieval import open_index, packed_features
from evenplace.retrieval.array_files import Rows
from evenplace.retrieval.local_features import (
    LOCAL_FEATURES,
    Features,
    LocalFeatures,
    build_local_features,
    features_of,
)
from evenplace.retrieval.rehearsal import KINDS
from evenplace.retrieval.rerank import L2
from evenplace.retrieval.second_look import LookWeights
from evenplace.run.folds import stored_folds
from evenplace.run.point_cache import cached_points, indexed_points
from evenplace.run.run import Run
from evenplace.run.search_settings import LearnedLook
from evenplace.run.tune_second_look import LookTuner, rank
from evenplace.training.recipe import read_recipe
from tests.standins import Standins

SMALL = [
    word
    for setting in ("verify=8", "folds=2", "epochs=1", "image_size=64", "dim=16")
    for word in ("--set", setting)
]
Type = Callable[..., str]


@pytest.fixture
def evenplace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Type:
    """Type a command and get what it prints; one that fails fails the test."""

    def typed(*words: object) -> str:
        monkeypatch.setattr(sys, "argv", ["evenplace", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        assert not stopped.value.code, said.err
        return said.out

    return typed


@pytest.fixture(scope="module")
def photos(standins: Standins, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every second photo of the town."""
    folder = tmp_path_factory.mktemp("photos")
    for path in sorted(standins.photos.rglob("*.jpg"))[::2]:
        shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="module")
def run(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("look") / "run"
    with pytest.MonkeyPatch.context() as patch:
        for words in (
            ["train", photos, "--run", folder, *SMALL],
            ["index", folder, "--database", photos],
        ):
            patch.setattr(sys, "argv", ["evenplace", *map(str, words)])
            with pytest.raises(SystemExit) as stopped:
                main()
            assert not stopped.value.code
    return folder


def test_the_index_keeps_points_and_the_run_what_they_are_worth(run: Path) -> None:
    index = open_index(run / "index")
    assert index.columns["xfeat"].shape[0] == len(index)
    assert index.columns["xfeat"].shape[1] <= 16_384
    engine, learned = Run.open(run).search(), LearnedLook.read(run / "look.json")
    assert engine.look is not None
    assert engine.look.weights == learned.weights
    assert engine.confidence == learned.confidence
    assert engine.calibration is not None
    assert engine.calibration.way is not None
    assert engine.calibration.way.look == str(engine.look)
    assert not (run / "folds").exists()


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Photos in which points are looked for."""
    found: list[str] = []

    def watched(kind: LocalFeatures, path: str) -> Features:
        found.append(path)
        return features_of(kind, path)

    monkeypatch.setattr(packed_features, "features_of", watched)
    return found


def test_points_that_tuning_found_are_not_looked_for_again(
    run: Path, photos: Path, seen: list[str], tmp_path: Path
) -> None:
    known = cached_points(run / "cache", "xfeat")
    again = Run.open(shutil.copytree(run, tmp_path / "run")).index(read_photos(photos))
    assert known
    assert set(seen) == set(read_photos(photos).paths) - set(known)
    np.testing.assert_array_equal(
        again.columns["xfeat"], open_index(run / "index").columns["xfeat"]
    )
    one = next(iter(known))
    os.utime(one, (0, 0))
    assert set(known) - set(cached_points(run / "cache", "xfeat")) == {one}


def test_a_photo_of_the_database_is_found_by_its_own_points(
    run: Path, photos: Path, evenplace: Type
) -> None:
    photo = read_photos(photos).paths[0]
    said = json.loads(evenplace("locate", run, photo, "--json"))
    assert said["hits"][0]["path"] == photo
    assert said["hits"][0]["inliers"] > 50
    assert said["doubt"]  # drawn on one day: matches there are, and no promise
    assert 5 <= said["looked"] <= 8
    assert said["elapsed_ms"]["verify"] > 0
    told = evenplace("locate", run, photo)
    assert "matches" in told
    assert f"looked at a second time: {said['looked']}\n" in told
    answer = Run.open(run).locate(photo)
    assert answer.hits[0].inliers == said["hits"][0]["inliers"]
    assert answer.confidence == pytest.approx(said["confidence"], abs=1e-4)


def test_a_query_without_points_has_no_matches_rather_than_none_of_many(
    run: Path, standins: Standins, tmp_path: Path
) -> None:
    queries = read_photos(shutil.copytree(standins.queries, tmp_path / "asked"))
    Image.new("RGB", (64, 64)).save(queries.paths[0])
    seen = Run.open(run).evaluate(queries).predictions.sources["inliers"]
    assert seen[0] == -1
    assert (seen[1:] >= 0).all()


def test_verify_0_looks_at_nothing(run: Path, standins: Standins, evenplace: Type) -> None:
    photo = read_photos(standins.queries).paths[0]
    said = json.loads(evenplace("locate", run, photo, "--json", "--verify", 0))
    assert said["looked"] == 0
    assert said["hits"][0]["inliers"] is None
    assert "second time" not in evenplace("locate", run, photo, "--verify", 0)
    opened = Run.open(run)
    assert opened.locate(photo, verify=0).looked == 0
    assert opened.locate(photo).looked >= 5
    assert opened.locate(opened.search().describe(photo).descriptors).looked == 0


def test_no_precision_is_promised_of_another_number_than_was_rehearsed(
    run: Path, photos: Path
) -> None:
    photo, opened = read_photos(photos).paths[0], Run.open(run)
    with pytest.raises(SettingError, match=r"ask as the run was tuned \(--verify too\)"):
        opened.locate(photo, verify=3, min_precision=0.9, insist=True)
    assert not opened.locate(photo, verify=3).calibrated
    assert opened.locate(photo, verify=8, min_precision=0.9, insist=True).hits


def test_labelled_queries_calibrate_answers_that_were_looked_at_twice(
    run: Path, standins: Standins, tmp_path: Path, evenplace: Type
) -> None:
    own = Path(shutil.copytree(run, tmp_path / "run"))
    photo, before = read_photos(standins.queries).paths[0], LearnedLook.read(run / "look.json")
    assert Run.open(own).locate(photo).doubt == before.rehearsal.doubt != ""
    said = evenplace("tune", own, "--queries", standins.queries)
    learned, asked = LearnedLook.read(own / "look.json"), len(read_photos(standins.queries))
    assert (learned.weights, learned.confidence) == (before.weights, before.confidence)
    assert learned.rehearsal.kind.count(KINDS.index("taken")) == asked
    assert said.startswith(f"calibrated on {asked} answers")
    assert learned.weights.inliers > 0
    answer = Run.open(own).locate(photo, min_precision=0.6)
    assert (answer.calibrated, answer.doubt, answer.looked >= 5) == (True, "", True)


def test_a_rehearsal_looks_no_further_than_the_run_will(run: Path, tmp_path: Path) -> None:
    index = open_index(run / "index")
    folds, spec = stored_folds(index, 2, 0, tmp_path / "folds"), Run.open(run).recipe.search
    weights, known = LookWeights(settled=12), indexed_points(index, "xfeat")
    tuner, asked = LookTuner(spec, tmp_path, known), (folds, L2(), [np.arange(15)] * 2)
    whole, short = tuner.look(*asked), tuner.look(*asked, weights)
    assert all(np.isfinite(inliers).all() for _, inliers in whole)
    assert sum(np.isnan(inliers).any() for _, inliers in short) > 5
    answers = [[ranking for _, ranking in rank(one, weights)] for one in (whole, short)]
    for all_of_them, as_asked in zip(*answers, strict=True):
        np.testing.assert_array_equal(all_of_them.order, as_asked.order)
        np.testing.assert_array_equal(all_of_them.inliers, as_asked.inliers)


def test_a_look_is_forgiven_what_hiding_put_between(run: Path, tmp_path: Path) -> None:
    index = open_index(run / "index")
    folds = stored_folds(index, 2, 0, tmp_path / "folds")
    tuner = LookTuner(Run.open(run).recipe.search, tmp_path, indexed_points(index, "xfeat"))
    forgiven = [replace(fold, gap=np.full(len(fold.queries), 30.0)) for fold in folds]
    asked = L2(), [np.arange(6)] * 2
    for (as_is, _), (case, _) in zip(
        tuner.look(folds, *asked), tuner.look(forgiven, *asked), strict=True
    ):
        expected = as_is.metres if case.kind == "away" else np.maximum(as_is.metres - 30, 0)
        np.testing.assert_array_equal(case.metres, expected)


def test_train_says_why_it_promises_nothing(
    run: Path, photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["evenplace", "train", str(photos), "--run", str(run), *SMALL]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit):
        main()
    doubt = LearnedLook.read(run / "look.json").rehearsal.doubt
    said = f"note: uncalibrated: {doubt}, so no other day could be rehearsed and no precision is"
    assert said in capsys.readouterr().err


def test_evaluate_looks_as_locate_does(
    run: Path, standins: Standins, tmp_path: Path, evenplace: Type
) -> None:
    asked = read_photos(standins.queries)
    opened = Run.open(run)
    found = opened.evaluate(asked, out=tmp_path)
    said = [opened.locate(path, k=20) for path in asked.paths]
    assert [one.hits[0].path for one in said] == found.predictions.hit_paths[:, 0].tolist()
    # a batch and a photo alone round differently: 5.7e-7 with SSE4.1's kernels, in float32
    assert [one.confidence for one in said] == pytest.approx(found.predictions.confidence, abs=1e-5)
    assert "not calibrated" not in evenplace("evaluate", run, "--queries", standins.queries)
    evenplace("evaluate", run, "--queries", standins.queries, "--verify", 0)
    assert "verify" in found.cost.latency
    assert "verify" not in opened.scores().cost.latency


def test_the_report_draws_what_matches_and_counts_what_was_refuted(
    run: Path, standins: Standins, tmp_path: Path, evenplace: Type
) -> None:
    evenplace("evaluate", run, "--queries", standins.queries, "--radius", 1)  # most are wrong
    evenplace("report", run, "--out", tmp_path)
    text = (tmp_path / "index.html").read_text()
    assert "points match the first answer</summary>" in text
    assert "<line x1=" in text
    assert "refuted</th>" in text
    assert "points match</small>" in text


def test_photos_added_later_are_looked_at_too(
    run: Path, standins: Standins, tmp_path: Path, evenplace: Type
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    evenplace("index", "add", copy, "--database", standins.queries)
    photo = read_photos(standins.queries).paths[1]
    answer = Run.open(copy).locate(photo)
    assert answer.hits[0].path == photo
    assert (answer.hits[0].inliers or 0) > 50


def test_the_service_tells_what_matches_and_on_request_where(run: Path, photos: Path) -> None:
    client = pytest.importorskip("fastapi.testclient")
    from evenplace.serve.app import create_app
    from evenplace.serve.settings import Settings

    photo = Path(read_photos(photos).paths[0]).read_bytes()
    with client.TestClient(create_app(Settings(run)), base_url="http://127.0.0.1") as ask:
        plain, told = (
            ask.post(f"/locate?k=3{more}", files={"photo": photo}).json()["answers"][0]
            for more in ("", "&matches=2")
        )
    assert plain["looked"] >= 5
    assert plain["hits"][0]["inliers"] > 50
    assert [hit["pairs"] for hit in plain["hits"]] == [None] * 3
    first, second, third = (hit["pairs"] for hit in told["hits"])
    assert len(first) == told["hits"][0]["inliers"]
    assert len(second) == told["hits"][1]["inliers"]
    assert third is None
    shares = np.array(first)
    assert ((shares >= 0) & (shares <= 1)).all()
    np.testing.assert_allclose(shares[:, :2], shares[:, 2:], atol=0.02)  # it is the same picture


@pytest.mark.slow
def test_descriptors_that_come_with_photos_are_looked_at(
    photos: Path, tmp_path: Path, seen: list[str], evenplace: Type
) -> None:
    many, run = len(read_photos(photos)), tmp_path / "run"
    noise = np.random.default_rng(0).normal(size=(many, 16)).astype(np.float32)
    np.save(tmp_path / "own.npy", noise / np.linalg.norm(noise, axis=1, keepdims=True))
    given = ("--descriptors", tmp_path / "own.npy")
    evenplace("index", run, "--database", photos, *given, "--verify", 8)
    assert len(seen) == many
    evenplace("tune", run, "--set", "folds=2")
    assert len(seen) == many  # the index has them
    assert LearnedLook.read(run / "look.json").weights.inliers > 0
    evenplace("evaluate", run, "--queries", photos, *given)
    assert Run.open(run).scores().recall[1] == 100
    evenplace("tune", run, "--set", "verify=0")
    assert not (run / "look.json").exists()


def test_photos_that_are_gone_have_no_points_and_tune_goes_on(
    photos: Path, tmp_path: Path, evenplace: Type
) -> None:
    run, few = tmp_path / "run", tmp_path / "few"
    few.mkdir()
    for path in sorted(photos.iterdir())[::3]:
        shutil.copy(path, few)
    paths = read_photos(few).paths
    noise = np.random.default_rng(0).normal(size=(len(paths), 16)).astype(np.float32)
    np.save(tmp_path / "own.npy", noise / np.linalg.norm(noise, axis=1, keepdims=True))
    evenplace("index", run, "--database", few, "--descriptors", tmp_path / "own.npy")
    for gone in paths[::2]:
        Path(gone).unlink()
    evenplace("tune", run, "--set", "folds=2", "--set", "verify=4")
    assert (run / "look.json").exists()


@dataclass(frozen=True)
class Spots:
    """SIFT's points, all described alike: only their own matcher knows which are the same."""

    name: str = "spots"
    dim: int = 2

    def extract(self, picture: Image.Image) -> Features:
        found = build_local_features("sift", count=200).extract(picture)
        alike = np.ones((len(found), 2), np.float32) / np.sqrt(np.float32(2))
        return Features(found.points, alike, found.width, found.height)

    def match(self, query: Features, candidate: Features) -> tuple[Rows, Rows]:
        apart = np.linalg.norm(query.points[:, None] - candidate.points, axis=2)
        mine, other = np.nonzero(apart < 1e-3)
        return mine, other


def test_a_kind_that_brings_its_own_matcher_is_asked_by_tune_and_locate(
    photos: Path, tmp_path: Path, evenplace: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LOCAL_FEATURES.own, "spots", Spots)
    run, few = tmp_path / "run", tmp_path / "few"
    few.mkdir()
    for path in sorted(photos.iterdir())[::3]:
        shutil.copy(path, few)
    evenplace("train", few, "--run", run, *SMALL, "--set", "features=spots")
    evenplace("index", run, "--database", few)
    assert open_index(run / "index").columns["spots"].shape[1] <= 16_384
    photo = read_photos(few).paths[0]
    said = json.loads(evenplace("locate", run, photo, "--json"))
    assert said["hits"][0]["path"] == photo
    assert said["hits"][0]["inliers"] > 50
    opened = Run.open(run).search()
    assert opened.look is not None
    row = opened.index.paths(np.arange(len(opened.index))).index(photo)
    assert len(opened.look.pairs(photo, row)) == said["hits"][0]["inliers"]


def test_what_cannot_be_looked_with_is_said_before_training(photos: Path, tmp_path: Path) -> None:
    unknown = read_recipe("dapr-m").changed(["verify=5", "features=siftt"])
    with pytest.raises(SettingError, match=r"siftt.*sift"):
        Run(tmp_path / "run").train(read_photos(photos), recipe=unknown)
    (tmp_path / "look.json").write_text('{"weights": {"scale": 1}}')
    with pytest.raises(RunError, match="evenplace tune"):
        LearnedLook.read(tmp_path / "look.json")
