"""Two processes on one batch compute what one process computes, to 1e-5, and can be killed too."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evenplace.photos import Photos
from tests.training.town import draw_town, quick_run

CODE = """
import json, sys
from pathlib import Path
sys.path.insert(0, {root!r})
import torch
torch.set_num_threads(1)
from evenplace.photos import read_photos
from evenplace.training.distributed import leave_ranks, rank_of_process
from tests.training.town import quick_run
trained = quick_run(read_photos({town!r}), Path({run!r}), *{settings!r})
rank = rank_of_process()
Path({run!r}, f"losses-{{rank}}.json").write_text(json.dumps(trained.losses))
leave_ranks()
"""
ROOT = str(Path(__file__).parents[2])
PAIRS = ["loss.name=multi-similarity", "sampler=photo", "photos_per_place=3", "batch=24"]
# Adam divides by the size of a gradient, so where a gradient is zero but for rounding its steps
# are the rounding's, and two orders of summation soon differ by 1e-4.  SGD shows what is ours.
SGD = ["optimiser=sgd", "lr=0.01", "lr_classifier=0.1"]
CASES = {
    "sharded classifiers": ["start=principal"],
    "groups": ["places.groups=2", "places.cell=10", "start=random", "epochs=4"],
    "levels": ["places.rule=hierarchy", "places.max_photos=6", "start=random"],
    "gathered pairs": PAIRS,
    "accumulated": ["accumulate=2", "average=0.9"],
    "triplets": [
        "loss.name=triplet", "sampler=triplets", "batch=18", "negatives=4", "positive=15",
        "mining.queries=24", "mining.refresh=12",
    ],
    "files": ["cached=false", "augment=false", "start=random"],
    "held out": ["validation=0.2", "start=random"],
}  # fmt: skip


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Photos]:
    folder = tmp_path_factory.mktemp("town")
    return folder, draw_town(folder)


def run_two(town: Path, run: Path, settings: list[str]) -> list[float]:
    """The losses of two processes, the same in both."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    run.mkdir(parents=True, exist_ok=True)
    code = CODE.format(root=ROOT, town=str(town), run=str(run), settings=settings)
    started = []
    for rank in range(2):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_PORT": port}
        env = {**os.environ, **{key: str(value) for key, value in place.items()}}
        env |= {"MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1"}
        started.append(subprocess.Popen([sys.executable, "-c", code], env=env))
    for process in started:
        assert process.wait(timeout=120) == 0
    first, second = (json.loads((run / f"losses-{rank}.json").read_text()) for rank in range(2))
    assert first == second
    return list(first)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_two_processes_compute_what_one_does(
    town: tuple[Path, Photos], tmp_path: Path, case: str
) -> None:
    settings = [*SGD, *CASES[case]]
    alone = quick_run(town[1], tmp_path / "alone", *settings)
    together = run_two(town[0], tmp_path / "together", settings)
    np.testing.assert_allclose(together, alone.losses, atol=1e-5, rtol=1e-5)
    from evenplace.models.checkpoints import load_checkpoint

    loaded = load_checkpoint(tmp_path / "together/model.safetensors").network.state_dict()
    for name, tensor in alone.network.state_dict().items():
        np.testing.assert_allclose(loaded[name], tensor, atol=2e-4, err_msg=name)


@pytest.mark.slow
def test_two_processes_go_on_where_they_were(town: tuple[Path, Photos], tmp_path: Path) -> None:
    whole = run_two(town[0], tmp_path / "whole", ["epochs=3"])
    half = run_two(town[0], tmp_path / "run", ["epochs=3", "checkpoint=0"])
    assert half == pytest.approx(whole, rel=1e-6)
    again = run_two(town[0], tmp_path / "run", ["epochs=3", "checkpoint=0"])
    assert again == half
