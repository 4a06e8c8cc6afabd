"""The verb `train`: rehearse, choose a loss, choose a device, look at the log."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenplace.cli import app
from tests.training.town import draw_town, quick_run

SMALL = ["--set", "image_size=64", "--set", "dim=32"]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("town")
    draw_town(folder, 60)
    return folder


def test_a_rehearsal_takes_two_steps_of_everything(town: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ["train", str(town), "--run", str(run), "--method", "gem-small", "--dev", *SMALL]
    words += ["--loss", "low-visit-bias", "--device", "cpu", "--set", "validation=0.2"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "held out: R@1" in done.output
    assert "gem-small+lb" in done.output
    lines = [json.loads(x) for x in (run / "validation/log.jsonl").read_text().splitlines()]
    assert len(lines) == 2
    assert {"loss", "lr", "recall", "weights", "offsets", "sampler"} <= lines[0].keys()
    assert (run / "model.safetensors").exists()


def test_correcting_twice_is_said_aloud(town: Path, tmp_path: Path) -> None:
    words = ["train", str(town), "--out", str(tmp_path / "run"), "--method", "cosface", *SMALL]
    words += ["--loss", "low-visit-bias", "--set", "sampler=place", "--set", "epochs=1"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "already evens out" in " ".join(done.output.split())


def test_curves_go_to_tensorboard_on_request(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    quick_run(draw_town(tmp_path / "p", 24, 60), tmp_path / "run", "tensorboard=true")
    assert list((tmp_path / "run/tensorboard").glob("events.*"))
