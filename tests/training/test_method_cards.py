"""What `evenplace methods` says is what is built and trained: for every method, part by part."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from evenplace.cli import app
from evenplace.errors import SettingError
from evenplace.losses import build_loss
from evenplace.networks.build_model import build_model
from evenplace.networks.methods import METHODS
from evenplace.retrieval.confidence import build_confidence
from evenplace.retrieval.rerank import build_reranker
from evenplace.training.method_cards import card, part
from evenplace.training.recipe import cut_places, parse_settings, read_recipe
from evenplace.training.schedule import build_optimiser
from evenplace.training.specs import PlacesSpec
from tests.drawn import photos_at
from tests.networks.counting import count_parameters


@pytest.fixture(scope="module")
def printed() -> dict[str, dict[str, Any]]:
    """`evenplace methods --json`, by name."""
    done = CliRunner().invoke(app, ["methods", "--json"])
    assert done.exit_code == 0
    return {one["name"]: one for one in json.loads(done.stdout)}


def settings_of(words: str) -> tuple[str, dict[str, Any]]:
    """The words of a part, such as "grid(cell=20.0)", as a name and settings."""
    name, _, inside = words.rstrip(")").partition("(")
    return name, parse_settings(inside.split(", ") if inside else [])


@pytest.mark.parametrize("name", list(METHODS))
def test_the_network_that_is_printed_is_the_one_that_is_built(
    name: str, printed: dict[str, dict[str, Any]]
) -> None:
    told = printed[name]
    with torch.device("meta"):
        network = build_model(name, weights=None)
    own = [words.split(" + ")[0] for words in (told["backbone"], told["aggregator"])]
    assert own == [network.spec.backbone, network.spec.aggregator]
    size = told["image_size"]
    assert network.image_size == ((size, size) if isinstance(size, int) else tuple(size))
    if METHODS[name].describer is None:
        assert (told["dim"], told["parameters"]) == (network.dim, count_parameters(name))


@pytest.mark.parametrize("name", list(METHODS))
def test_every_printed_part_is_one_that_its_builder_takes(
    name: str, printed: dict[str, dict[str, Any]]
) -> None:
    told, recipe = printed[name], read_recipe(name)
    build_reranker(told["rerank"])
    build_confidence(told["confidence"])
    if told["loss"] != "none":
        loss_name, settings = settings_of(told["loss"])
        loss = build_loss(loss_name, counts=torch.tensor([3, 1, 2]), **settings)
        trained = build_loss(
            recipe.loss.name, counts=torch.tensor([3, 1, 2]), **recipe.loss.settings
        )
        assert type(loss) is type(trained)
        same = {key: value for key, value in vars(loss).items() if isinstance(value, (int, float))}
        assert same == {key: vars(trained)[key] for key in same}
        assert {key: value for key, value in settings.items() if key in same} == {
            key: same[key] for key in settings if key in same
        }


@pytest.mark.parametrize("name", list(METHODS))
def test_the_places_that_are_printed_are_those_that_are_cut(
    name: str, printed: dict[str, dict[str, Any]]
) -> None:
    rule, settings = settings_of(printed[name]["places"])
    photos = photos_at(np.random.default_rng(0).uniform(0, 90, (600, 2)))
    try:
        told = cut_places(PlacesSpec(rule=rule, **settings), photos)
    except SettingError:
        pytest.skip(f"{rule} needs more than positions")
    cut = cut_places(read_recipe(name).places, photos)
    assert np.array_equal(told.labels, cut.labels)
    assert np.array_equal(told.groups, cut.groups)


@pytest.mark.parametrize("name", [name for name in METHODS if read_recipe(name).training.epochs])
def test_the_optimiser_that_is_printed_is_the_one_that_trains(
    name: str, printed: dict[str, dict[str, Any]]
) -> None:
    kind, settings = settings_of(printed[name]["training"])
    spec = read_recipe(name).training
    weight = [torch.nn.Parameter(torch.zeros(1))]
    optimiser = build_optimiser(spec, weight, [torch.nn.Parameter(torch.zeros(1))])
    assert type(optimiser).__name__.lower() == kind
    assert [group["lr"] for group in optimiser.param_groups] == [
        settings["lr"], settings["lr_classifier"],
    ]  # fmt: skip
    assert (settings["epochs"], settings["batch"]) == (spec.epochs, spec.batch)


def test_a_card_says_who_decides() -> None:
    found = {name: card(name) for name in ("dc", "dc-cosplace", "salad", "dapr-m", "hge")}
    kinds = {name: one.kind for name, one in found.items()}
    assert kinds == {"dc": "classification", "dc-cosplace": "mixed", "salad": "retrieval",
                     "dapr-m": "mixed", "hge": "classification"}  # fmt: skip
    assert found["hge"].classifier == "levels(combine=product)"
    assert found["dc"].classifier == "groups(prototypes=raw)"
    assert found["dc-cosplace"].backbone == "efficientnet-b0 + resnet50"
    assert found["dapr-m"].loss == part(
        "low-visit-bias", {"beta": 0.25, "kappa": 0.5, "scale": 15.0, "margin": 0.0}
    )
    assert ("parameters", "88.0 M") in found["salad"].rows()


def test_one_setting_need_not_be_a_list() -> None:
    assert parse_settings("folds=2") == {"folds": 2}
    with pytest.raises(SettingError, match="--set 'folds' has no value"):
        parse_settings("folds")
