"""Two processes on one batch compute what one process computes, and can be killed too."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from evenplace.errors import RunError
from evenplace.photos import Photos
from evenplace.training.recipe import read_recipe
from tests.training.town import draw_town, quick_run
from tests.training.two_processes import PATIENCE, WORK

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SGD = ["optimiser=sgd", "lr=0.01", "lr_classifier=0.1"]
ACCUMULATED = ["start=principal", "accumulate=2", "average=0.9"]
# One process and two sum the same numbers in another order.  In float64 that is all there is
# between them (weights agreed to 2.3e-15 with SGD); whatever is beyond 1e-9 is a mistake in the
# gathering, the averaging, the accumulation or the order of batches.  Adam's step is
# g / (|g| + 1e-8) times the rate: a gradient that is zero but for rounding moves its weight by up
# to rate / 1e-8 = 1e5 times that rounding, 6.8e-9 of a weight here; in float32, where the rounding
# of a gradient exceeds 1e-8, by whole steps of the rate, so that nothing is to be compared there.
# SGD in float32 differed by 1.7e-5 of a loss here and by 4.4e-5 on a Xeon with AVX-512, and is
# allowed ten times that.
EXACT = {
    "accumulated": [*SGD, *ACCUMULATED],
    "groups": [
        *SGD, "places.groups=2", "places.cell=10", "start=random", "checkpoint=0", "batch=4",
    ],
    "levels": [*SGD, "places.rule=hierarchy", "places.max_photos=6", "start=random"],
    "pairs": [
        *SGD, "loss.name=multi-similarity", "sampler=photo", "photos_per_place=3", "batch=24",
    ],
    "triplets": [
        *SGD, "loss.name=triplet", "sampler=triplets", "batch=18", "negatives=4", "positive=15",
        "mining.queries=24", "mining.refresh=12",
    ],
    "files, held out": [*SGD, "cached=false", "augment=false", "start=random", "validation=0.2"],
    "Adam": ["optimiser=adam", *ACCUMULATED],
}  # fmt: skip
EXACT = {name: [*settings, "views=1", "precision=float64"] for name, settings in EXACT.items()}
SINGLE = {"single precision": [*SGD, *ACCUMULATED]}
FIRST = ("accumulated", "groups", "Adam")  # the others are for `make long`


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Photos]:
    folder = tmp_path_factory.mktemp("town")
    return folder, draw_town(folder)


@pytest.fixture(scope="module")
def together(town: tuple[Path, Photos], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that one pair of processes does."""
    out = tmp_path_factory.mktemp("together")
    run_two(town[0], out, {case: EXACT[case] for case in FIRST} | SINGLE)
    return out


@pytest.fixture(scope="module")
def others(town: tuple[Path, Photos], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What another pair fits."""
    out = tmp_path_factory.mktemp("others")
    run_two(town[0], out, {case: EXACT[case] for case in EXACT if case not in FIRST}, "fit")
    return out


def run_two(town: Path, out: Path, cases: dict[str, list[str]], *works: str) -> None:
    (out / "cases.json").write_text(json.dumps(cases))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, "-m", "tests.training.two_processes", str(town), str(out), *works]
    started = []
    for rank in range(2):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_PORT": port}
        env = {**os.environ, **{key: str(value) for key, value in place.items()}}
        env |= {"MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1"}
        started.append(subprocess.Popen(words, env=env, cwd=ROOT))
    for process in started:
        assert process.wait(timeout=900) == 0


def seen(out: Path, what: str) -> tuple[Any, Any]:
    """What each of the two saw."""
    first, second = (json.loads((out / f"{what}-{rank}.json").read_text()) for rank in range(2))
    return first, second


@pytest.mark.parametrize(
    ("case", "pair"),
    [
        (case, "together")
        if case in FIRST
        else pytest.param(case, "others", marks=pytest.mark.long)
        for case in EXACT
    ],
)
def test_two_processes_compute_what_one_does(
    town: tuple[Path, Photos],
    case: str,
    pair: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    together: Path = request.getfixturevalue(pair)
    first, second = seen(together, "fit")
    assert first == second
    alone = quick_run(town[1], tmp_path / "alone", *EXACT[case])
    np.testing.assert_allclose(first[case], alone.losses, atol=1e-9, rtol=1e-9)
    two, one = (
        load_file(run / "model.safetensors") for run in (together / case, tmp_path / "alone")
    )
    for name, tensor in one.items():
        room = 1e-6 if case == "Adam" else 1e-9
        np.testing.assert_allclose(two[name], tensor, atol=room, rtol=0, err_msg=name)


def test_in_single_precision_two_processes_differ_by_rounding_only(
    town: tuple[Path, Photos], together: Path, tmp_path: Path
) -> None:
    ((case, settings),) = SINGLE.items()
    alone = quick_run(town[1], tmp_path / "alone", *settings)
    np.testing.assert_allclose(seen(together, "fit")[0][case], alone.losses, atol=5e-4, rtol=5e-4)


def test_two_processes_go_on_where_they_were(town: tuple[Path, Photos], together: Path) -> None:
    whole = seen(together, "fit")[0]["groups"]
    assert seen(together, "stop") == (whole, whole)
    folder = together / "stopped"
    assert list(folder.glob("progress-1-*")), "rank 1 keeps its own shards"
    with pytest.raises(RunError, match=r"begun with 2 process\(es\)"):
        quick_run(town[1], folder, *EXACT["groups"])


def test_the_first_may_work_for_longer_than_the_others_would_wait(together: Path) -> None:
    assert WORK > PATIENCE
    assert all(one["seconds"] > PATIENCE for one in seen(together, "lead"))  # the second came later


def test_where_the_first_fails_every_process_fails(together: Path) -> None:
    first, second = seen(together, "lead")
    assert first["said"] == "ZeroDivisionError: the disk is full"
    assert second["said"].startswith("RunError: the first process has failed")


def test_several_processes_leave_the_folds_to_tune_and_say_so(together: Path) -> None:
    first, second = seen(together, "typed")
    folds = read_recipe("dapr-m").search.folds
    assert f"several processes leave the {folds} folds out" in first
    assert f"evenplace tune {together / 'typed'}" in first
    assert not second, "one process speaks for all"
    assert not (together / "typed/calibration.json").exists()
