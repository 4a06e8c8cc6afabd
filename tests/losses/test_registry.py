"""Losses by name, and the public surface."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

from evenplace import losses as ev
from evenplace.errors import SettingError

PUBLISHED: dict[str, dict[str, Any]] = {  # what a loss does unless told otherwise
    "cross-entropy": {"scale": 30.0},
    "cosface": {"scale": 30.0, "margin": 0.4},
    "arcface": {"scale": 64.0, "margin": 0.5, "easy": False},
    "aamc": {"scale": 100.0, "margin": 0.2, "easy": True},
    "low-visit-bias": {"scale": 30.0, "margin": 0.4, "beta": 0.01, "kappa": 0.05},
    "logit-adjustment": {"scale": 30.0, "tau": 1.0},
    "balanced-softmax": {"scale": 30.0},
    "focal": {"scale": 30.0, "gamma": 2.0},
    "class-balanced": {"scale": 30.0, "base": 0.9999, "gamma": 0.0},
    "hard-class": {"scale": 30.0, "tau": 1.0, "memory": 0.9},
    "ldam": {"scale": 30.0, "max_margin": 0.5, "base": 0.9999, "reweight_from": 160},
    "adaptive-logit-adjustment": {"scale": 30.0},
    "distribution-balanced": {
        "scale": 30.0, "lift": 0.1, "slope": 10.0, "centre": 0.2, "tolerance": 2.0, "kappa": 0.05,
    },
    "multi-similarity": {"gamma_p": 1.0, "gamma_n": 50.0, "tau": 0.0, "mining": None},
    "low-visit-bias-pairs": {
        "gamma_p": 1.0, "gamma_n": 50.0, "tau": 0.0, "mining": None, "beta": 0.01, "kappa": 0.01,
        "centred": False, "constant": False,
    },
    "contrastive": {"pos_margin": 0.0, "neg_margin": 0.7, "squared": True},
    "triplet": {"margin": 0.1, "mining": "hard"},
    "sare": {"temperature": 0.07, "joint": False},
}  # fmt: skip
NAMES = set(PUBLISHED)
NEED_COUNTS = {
    "low-visit-bias", "logit-adjustment", "balanced-softmax", "class-balanced", "hard-class",
    "ldam", "adaptive-logit-adjustment", "distribution-balanced", "low-visit-bias-pairs",
}  # fmt: skip
FORMULAS: list[tuple[str, Callable[..., Any]]] = [  # functions with settings of their own
    ("low-visit-bias", ev.low_visit_bias),
    ("low-visit-bias", ev.class_weights),
    ("low-visit-bias", ev.logit_offsets),
    ("logit-adjustment", ev.logit_adjustment),
    ("logit-adjustment", ev.adjust_logits),
    ("balanced-softmax", ev.balanced_softmax),
    ("class-balanced", ev.class_balanced),
    ("class-balanced", ev.effective_weights),
    ("hard-class", ev.hard_weights),
    ("ldam", ev.label_margins),
    ("low-visit-bias-pairs", ev.low_visit_bias_pairs),
]


def test_every_loss_of_the_paper_has_a_name() -> None:
    assert set(ev.loss_names()) == NAMES
    assert set(ev.loss_names("cosines")) | set(ev.loss_names("descriptors")) == NAMES
    assert ev.loss_takes("sare") == "descriptors"
    assert ev.loss_takes("aamc") == "cosines"


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_builds_and_yields_a_number(name: str) -> None:
    draw = torch.Generator().manual_seed(0)
    given = torch.rand(4, 3, generator=draw) * 2 - 1
    loss = ev.build_loss(name, torch.tensor([9, 2, 1]))
    found = loss(given, torch.tensor([0, 0, 1, 2]))
    assert found.ndim == 0
    assert bool(torch.isfinite(found))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_loss_describes_its_prior(name: str) -> None:
    effect = ev.build_loss(name, torch.tensor([9, 2, 1])).describe()
    assert (effect.places, effect.rarest, effect.commonest) == (3, 1.0, 9.0)
    softmax = ev.loss_takes(name) == "cosines" and name != "distribution-balanced"
    assert effect.cancels == softmax
    assert "nan" not in str(effect)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_loss_by_name_does_what_was_published(name: str) -> None:
    loss = ev.build_loss(name, [3, 4])
    wanted = PUBLISHED[name]
    assert {setting: getattr(loss, setting) for setting in wanted} == wanted
    assert set(loss.settings) <= set(wanted)


@pytest.mark.parametrize(("name", "formula"), FORMULAS)
def test_a_function_does_unless_told_otherwise_what_its_loss_does(
    name: str, formula: Callable[..., Any]
) -> None:
    given = inspect.signature(formula).parameters.values()
    told = {one.name: one.default for one in given if one.name in PUBLISHED[name]}
    assert told == {setting: PUBLISHED[name][setting] for setting in told}
    assert told


def test_names_carry_their_published_settings() -> None:
    aamc = ev.build_loss("aamc")
    assert isinstance(aamc, ev.AngularMargin)
    assert aamc.settings == {"scale": 100.0, "margin": 0.2, "easy": True}
    biased = ev.build_loss("low-visit-bias", [3, 4])
    assert isinstance(biased, ev.LowVisitBias)
    assert (biased.beta, biased.kappa) == (0.01, 0.05)
    assert biased.settings == {"scale": 30.0, "margin": 0.4}
    pairs = ev.build_loss("low-visit-bias-pairs", [3, 4])
    assert isinstance(pairs, ev.LowVisitBiasPairs)
    assert (pairs.beta, pairs.kappa) == (0.01, 0.01)
    assert pairs.settings == {"gamma_p": 1.0, "gamma_n": 50.0, "tau": 0.0, "mining": None}


def test_settings_reach_the_loss() -> None:
    loss = ev.build_loss("aamc", margin=0.3, easy=False)
    assert isinstance(loss, ev.AngularMargin)
    assert loss.settings == {"scale": 100.0, "margin": 0.3, "easy": False}


def test_an_unknown_loss_names_the_nearest() -> None:
    with pytest.raises(SettingError, match="did you mean 'low-visit-bias'") as refusal:
        ev.build_loss("low-visit-bais")
    assert all(name in str(refusal.value) for name in NAMES)


def test_an_unknown_setting_names_the_nearest() -> None:
    with pytest.raises(SettingError, match="no cosface setting 'marign'; did you mean 'margin'"):
        ev.build_loss("cosface", marign=0.3)


@pytest.mark.parametrize("name", sorted(NEED_COUNTS))
def test_a_loss_that_lives_by_counts_asks_for_them(name: str) -> None:
    with pytest.raises(
        SettingError, match=r"\w+ with beta=.* needs photos per place; pass counts="
    ):
        ev.build_loss(name)
    plain: dict[str, Any] = {
        setting: 0.0 for setting in ("beta", "kappa") if setting in PUBLISHED[name]
    }
    with pytest.raises(SettingError, match="needs photos per place; pass counts="):
        ev.build_loss(name, **plain)


@pytest.mark.parametrize("name", sorted(NAMES - NEED_COUNTS))
def test_a_loss_that_can_do_without_counts_does(name: str) -> None:
    assert ev.build_loss(name).counts is None


def test_a_package_can_add_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    class Found(list[object]):
        names = ("mine",)

        def __getitem__(self, name: object) -> "Found":
            return self

        def load(self) -> type[ev.PriorLoss]:
            return ev.Triplet

    monkeypatch.setattr(ev, "entry_points", lambda group: Found())
    assert isinstance(ev.build_loss("mine", margin=0.3), ev.Triplet)
    assert ev.loss_takes("mine") == "descriptors"
    with pytest.raises(SettingError, match="no loss 'mien'; did you mean 'mine'"):
        ev.build_loss("mien")


@pytest.mark.parametrize("name", sorted(NAMES - {"low-visit-bias"}))
def test_a_loss_takes_no_setting_it_does_not_know(name: str) -> None:
    with pytest.raises(SettingError, match=r"no \w+ setting 'bet'"):
        type(ev.build_loss(name, [3, 4]))([3, 4], bet=1.0)


def test_the_public_names_are_all_there() -> None:
    assert ev.__all__ == sorted(ev.__all__)
    assert all(hasattr(ev, name) for name in ev.__all__)
