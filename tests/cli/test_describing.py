"""Verbs that describe photos: split over processes, and what they say of an unreadable one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from evenplace.cli import app
from evenplace.photos import read_photos
from evenplace.retrieval import open_index
from evenplace.run.run import Run
from tests.drawn import draw_photos, draw_split

SMALL = ["--checkpoint", "imagenet", "--set", "image_size=32", "--set", "dim=16"]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_split(tmp_path_factory.mktemp("town"), database=30, queries=6)


@pytest.fixture(scope="module")
def made(town: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("made") / "run"
    said = say("index", run, "--database", town / "database", "--method", "dapr-m-bands", *SMALL)
    assert "what dapr-m-bands trains on top of them is at random" in said
    return run


def say(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output + str(done.exception)
    return done.output


@pytest.mark.long
def test_two_processes_index_what_one_does_to_the_last_bit(town: Path, tmp_path: Path) -> None:
    alone, shared = tmp_path / "one", tmp_path / "two"
    words = ["-m", "evenplace", "index", str(alone), "--database", str(town / "database")]
    words += ["--method", "dapr-m-bands", *SMALL]
    plain = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, *words], check=True, capture_output=True, env=plain)
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    words[3] = str(shared)
    done = subprocess.run([*start, *words], capture_output=True, text=True, env=plain)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("30 photos in") == 1, "one process speaks for all"
    assert not (shared / "descriptors").exists()
    ours, theirs = (open_index(run / "index") for run in (alone, shared))
    assert ours.paths(np.arange(30)) == theirs.paths(np.arange(30))
    for name in ("descriptors", "prototypes", "impostors"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def test_photos_kept_along_axes_of_other_streets_are_told(
    town: Path, made: Path, tmp_path: Path
) -> None:
    draw_photos(tmp_path / "more", np.random.default_rng(6).uniform(900, 999, (4, 2)), seed=6)
    run, added = tmp_path / "run", "note: 4 of 34 photos are kept along the axes of those indexed"
    words = ["--database", town / "database", "--method", "dapr-m-bands", *SMALL]
    say("index", run, *words, "--keep", "pca8")
    assert added in say("index", "add", run, "--database", tmp_path / "more")
    whole = Path(shutil.copytree(made, tmp_path / "whole"))
    assert "axes" not in say("index", "add", whole, "--database", tmp_path / "more")
    draw_photos(tmp_path / "few", np.random.default_rng(7).uniform(900, 999, (3, 2)), seed=7)
    assert "axes" not in say("index", "add", run, "--database", tmp_path / "few")


def test_an_unreadable_photo_is_named_in_the_same_words_by_every_verb(
    made: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(made, tmp_path / "run"))
    draw_photos(tmp_path / "more", np.random.default_rng(5).uniform(0, 100, (7, 2)), seed=5)
    victim = sorted((tmp_path / "more").iterdir())[3]
    victim.write_bytes(victim.read_bytes()[:90])
    assert len(read_photos(tmp_path / "more")) == 7, "its name tells where it was taken"
    said = [
        _left_out(say("evaluate", run, "--queries", tmp_path / "more")),
        _left_out(say("index", "add", run, "--database", tmp_path / "more")),
        _left_out(say("index", run, "--database", tmp_path / "more")),
    ]
    assert said[0][0] == "left out 1 photo:"
    assert str(victim) in said[0][1]
    assert "is no picture that can be decoded; replace it" in said[0][1]
    assert said[0] == said[1] == said[2]


def test_stopping_an_index_says_how_to_go_on(
    made: Path, town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "index", stop)
    monkeypatch.setattr(Run, "add", stop)
    build = ["index", str(made), "--database", str(town / "queries")]
    add = ["index", "add", str(made), "--database", str(town / "queries")]
    for words, again in ((build, "goes on"), (add, "begins again")):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 130
        assert f"stopped; the index is as it was, and the same command {again}" in done.output


def _left_out(output: str) -> list[str]:
    lines = output.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("left out"))
    return lines[at : at + 2]


def test_what_describes_is_chosen_by_the_same_options_and_said(made: Path, town: Path) -> None:
    photo = sorted((town / "queries").iterdir())[0]
    chosen = "describing with torch on cpu in float32, 3 photos at a time"
    options = ["--device", "cpu", "--engine", "torch", "--precision", "float32", "--batch", 3]
    for words in (
        ("locate", made, photo),
        ("evaluate", made, "--queries", town / "queries"),
        ("index", made, "--database", town / "database"),
        ("index", "add", made, "--replace", "--database", town / "database"),
    ):
        assert say(*words, *options).count(chosen) == 1, words
