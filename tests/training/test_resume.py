"""A run stopped within an epoch and taken up again is the unbroken one, to the last bit."""

from pathlib import Path

import pytest
import torch

from evenplace.photos import Photos
from evenplace.training.fit import Session
from tests.training.town import draw_town, quick_run

PAIRS = ["loss.name=multi-similarity", "photos_per_place=3", "batch=24"]
CASES = {
    "hard-class": ["loss.name=hard-class", "start=random"],
    "hard-class by groups": ["loss.name=hard-class", "places.groups=2", "start=random", "epochs=5"],
    "float16": ["precision=float16", "start=random", "lr_classifier=0.001"],
    "cliques": [*PAIRS, "sampler=cliques", "lr=0.01"],
    "averaged": ["average=0.9", "optimiser=sgd"],
}

FIRST = ("hard-class", "float16")  # what a checkpoint once forgot; the others are for `make long`


class StoppedError(Exception):
    """What stands for a kill."""


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Photos:
    return draw_town(tmp_path_factory.mktemp("town"))


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.long] * (case not in FIRST)) for case in CASES],
)
def test_a_run_taken_up_within_an_epoch_is_the_unbroken_one(
    town: Photos, tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ["batch=8", "checkpoint=0", *CASES[case]]
    whole = quick_run(town, tmp_path / "whole", *settings)
    learn, steps = Session._learn, [0]

    def until_the_third(self: Session, *args: object) -> None:
        steps[0] += 1
        if steps[0] == 4:
            raise StoppedError
        learn(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "_learn", until_the_third)
    with pytest.raises(StoppedError):
        quick_run(town, tmp_path / "run", *settings)
    resumed = quick_run(town, tmp_path / "run", *settings)
    assert steps[0] > 5, "it went on with steps of its own"
    assert resumed.losses == whole.losses
    for name, tensor in whole.network.state_dict().items():
        assert torch.equal(resumed.network.state_dict()[name], tensor), name


def test_a_run_of_no_epoch_is_taken_up_too(town: Photos, tmp_path: Path) -> None:
    """As one that was stopped while it was tuned: nothing is trained, and nothing is refused."""
    first = quick_run(town, tmp_path, "epochs=0", "start=random")
    again = quick_run(town, tmp_path, "epochs=0", "start=random")
    assert again.losses == first.losses == ()
    for name, tensor in first.network.state_dict().items():
        assert torch.equal(again.network.state_dict()[name], tensor), name
