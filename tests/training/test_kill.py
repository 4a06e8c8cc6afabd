"""kill -9 at any moment costs at most the time since the last checkpoint, and changes no loss."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenplace.photos import Photos
from tests.training.town import draw_town, quick_run

SLOWLY = """
import sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
import torch
torch.set_num_threads(1)
from evenplace.photos import read_photos
from evenplace.training import fit
from tests.training.town import quick_run
learn = fit.Session._learn
def slowly(self, *args):
    learn(self, *args)
    time.sleep(0.05)
fit.Session._learn = slowly
quick_run(read_photos({town!r}), Path({run!r}), *{settings!r})
"""
ROOT = str(Path(__file__).parents[2])
CASES = {
    "cached": ["epochs=4", "batch=8", "checkpoint=0.1", "average=0.9"],
    "fresh crops": ["epochs=3", "batch=8", "checkpoint=0.1", "cached=false"],
    "mined": [
        "epochs=3", "batch=18", "checkpoint=0.1", "loss.name=sare", "sampler=generations",
        "generations=2", "negatives=4", "mining.queries=24", "mining.refresh=12", "positive=15",
        "mining.positives=2",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Photos]:
    folder = tmp_path_factory.mktemp("town")
    return folder, draw_town(folder)


def start(town: Path, run: Path, settings: list[str]) -> "subprocess.Popen[bytes]":
    code = SLOWLY.format(root=ROOT, town=str(town), run=str(run), settings=settings)
    return subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def kill_when(process: "subprocess.Popen[bytes]", run: Path, after: float) -> bool:
    """Wait for a checkpoint, then a little, and kill; False if the run had ended before."""
    while process.poll() is None and not (run / "progress.safetensors").exists():
        time.sleep(0.01)
    time.sleep(after)
    if process.poll() is not None:
        return False
    process.send_signal(signal.SIGKILL)
    process.wait()
    return True


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_a_killed_run_goes_on_as_if_unbroken(
    town: tuple[Path, Photos], tmp_path: Path, case: str
) -> None:
    folder, photos = town
    whole = quick_run(photos, tmp_path / "whole", *CASES[case])
    run, kills = tmp_path / "run", 0
    for after in (0.13, 0.31):
        kills += kill_when(start(folder, run, CASES[case]), run, after)
    assert kills, "the run was over before it could be killed"
    resumed = quick_run(photos, run, *CASES[case])
    assert resumed.losses == pytest.approx(whole.losses, rel=1e-6)
    for name, tensor in whole.network.state_dict().items():
        other = resumed.network.state_dict()[name]
        assert (tensor - other).abs().max() <= 1e-5, name
    lines = [json.loads(x) for x in (run / "log.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == list(range(len(whole.losses)))


def test_a_checkpoint_within_an_epoch_is_taken_up_there(
    town: tuple[Path, Photos], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenplace.training.fit import Session

    settings = ["epochs=2", "batch=6", "checkpoint=0", "accumulate=2", "optimiser=sgd"]
    whole = quick_run(town[1], tmp_path / "whole", *settings)
    learn = Session._learn
    steps: list[int] = []

    def five(self: Session, *args: object) -> None:
        if len(steps) == 5:
            raise KeyboardInterrupt
        steps.append(self.position.step)
        learn(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "_learn", five)
    with pytest.raises(KeyboardInterrupt):
        quick_run(town[1], tmp_path / "run", *settings)

    def on(self: Session, *args: object) -> None:
        steps.append(self.position.step)
        learn(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "_learn", on)
    resumed = quick_run(town[1], tmp_path / "run", *settings)
    assert steps[:7] == [0, 1, 2, 3, 4, 4, 5], "the fifth step was repeated, no other"
    assert resumed.losses == pytest.approx(whole.losses, rel=1e-6)


def test_a_photo_found_broken_while_training_is_listed_once_and_left_out(tmp_path: Path) -> None:
    photos = draw_town(tmp_path / "p", 24, 60)
    broken = Path(photos.paths[3])
    broken.write_bytes(broken.read_bytes()[:200])
    trained = quick_run(photos, tmp_path / "run", "cached=false", "start=random", "epochs=3")
    assert [one.path for one in trained.skipped] == [str(broken)]
    listed = json.loads((tmp_path / "run/skipped.json").read_text())
    assert [one["path"] for one in listed] == [str(broken)]
    lines = [json.loads(x) for x in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert lines[0]["skipped"] == 1
