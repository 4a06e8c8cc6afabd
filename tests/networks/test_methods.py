"""Named systems: all of them there, as large as published, changeable, and pluggable."""

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from importlib.resources import files

import pytest
import torch

from evenplace.errors import SettingError, WeightsError
from evenplace.networks.build_model import build_model
from evenplace.networks.methods import METHODS, Facts, Method, NetworkSpec, network_spec
from evenplace.networks.registry import Registry
from tests.networks.counting import count_parameters
from tests.networks.known_weights import known_photos

NAMES = [
    "planet",
    "hge",
    "cplanet",
    "dc",
    "dapr-c",
    "netvlad",
    "sfrs",
    "gem",
    "cosplace",
    "eigenplaces",
    "mixvpr",
    "salad",
    "boq",
    "cricavpr",
    "megaloc",
    "image",
    "cliquemining",
    "anyloc",
    "dc-cosplace",
    "dapr-m",
]
PARAMETERS = {  # counted in the authors' own modules by benchmarks/equality.py
    "dc": 5_647_228,
    "sfrs": 149_002_048,
    "netvlad": 149_002_048,
    "gem": 14_977_345,
    "salad": 87_990_721,
    "cliquemining": 87_990_721,
    "boq": 95_204_256,
    "cricavpr": 106_760_897,
    "megaloc": 228_639_553,
    "image": 86_588_928,
}
DIMENSIONS = {
    "netvlad": 4096,
    "sfrs": 4096,
    "cosplace": 2048,
    "eigenplaces": 2048,
    "mixvpr": 4096,
    "salad": 8448,
    "boq": 12288,
    "cricavpr": 10752,
    "megaloc": 8448,
    "image": 6144,
    "cliquemining": 8448,
    "anyloc": 49152,
}


def test_every_system_of_the_paper_has_its_name() -> None:
    assert set(NAMES) <= set(METHODS)


@pytest.mark.parametrize("name", list(METHODS))
def test_every_system_can_be_built(name: str) -> None:
    with torch.device("meta"):
        network = build_model(name, weights=None)
    assert network.dim == DIMENSIONS.get(name, network.dim)
    assert not any(side % network.backbone.spec.patch for side in network.image_size)


@pytest.mark.parametrize("name", list(PARAMETERS))
def test_parameters_are_those_of_the_authors_module(name: str) -> None:
    assert count_parameters(name) == PARAMETERS[name]


@pytest.mark.parametrize(
    ("backbone", "parameters"),
    [
        ("dinov2-small", 22_056_192),
        ("dinov2-base", 86_579_712),
        ("dinov2-large", 304_367_616),
        ("dinov2-giant", 1_136_479_232),
        ("dinov2-base-reg", 86_582_784),
    ],
)
def test_dinov2_is_as_large_as_metas(backbone: str, parameters: int) -> None:
    with torch.device("meta"):
        network = build_model("gem", backbone, weights=None, dim=1, image_size=224).backbone
    found = sum(parameter.numel() for parameter in network.parameters())
    assert found == parameters  # their count less the mask token of pretraining


def test_mixvpr_is_as_large_as_its_paper_says() -> None:
    assert round(count_parameters("mixvpr") / 1e6, 2) == 10.88


def test_a_backbone_brings_what_must_change_with_it() -> None:
    assert network_spec("boq", "resnet50") == NetworkSpec(
        "resnet50", dim=16384, aggregator="boq", layer=3, cut=3, image_size=384
    )
    assert network_spec("dapr-m", "dinov2-base").dim == 768
    assert network_spec("boq", "dinov2-small").layer is None


@pytest.mark.parametrize("size", [64, 80])
@torch.no_grad()
def test_mixvpr_is_built_for_the_size_that_is_asked_for(size: int) -> None:
    network = build_model(
        "mixvpr", "resnet18", weights=None, layer=3, dim=128, image_size=size
    ).eval()
    assert network(known_photos(size, size)).shape == (2, 128)


@torch.no_grad()
def test_a_length_nobody_published_is_reached_by_a_projection() -> None:
    network = build_model("netvlad", "resnet18", weights=None, dim=24, image_size=64).eval()
    out = network(known_photos(64, 64))
    assert out.shape == (2, 24)
    assert torch.allclose(out.norm(dim=1), torch.ones(2), atol=1e-5)


def test_mixed_systems_have_a_second_network_where_the_paper_has_two() -> None:
    pairs = {name: METHODS[name].describer for name in METHODS if METHODS[name].describer}
    large = {"dc-cosplace": "cosplace", "dapr-c-salad": "salad", "dapr-c-boq": "boq"}
    assert pairs == large | {f"{name}-small": f"{ranks}-small" for name, ranks in large.items()}


def test_no_fact_is_of_a_system_without_a_recipe() -> None:
    facts = tomllib.loads(str((files("evenplace") / "networks" / "facts.toml").read_text()))
    assert set(facts) <= set(METHODS)


def test_published_weights_want_the_network_they_were_made_with() -> None:
    assert network_spec("netvlad").backbone == "vgg16"  # what the recipe trains
    assert METHODS["netvlad"].facts.published == {"backbone": "vgg16-caffe"}  # what the .mat is of


def test_cricavpr_says_how_many_photos_belong_together() -> None:
    with torch.device("meta"):
        assert build_model("cricavpr", weights=None).batch == 16
        assert build_model("salad", weights=None).batch is None


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"name": "saled"}, "did you mean 'salad'"),
        ({"name": "salad", "backbone": "dinov3-base"}, "did you mean 'dinov2-base'"),
        ({"name": "salad", "image_sise": 224}, "did you mean 'image_size'"),
        ({"name": "salad", "image_size": 225}, "does not divide into patches of 14; use 224"),
        ({"name": "dapr-m", "dim": 0}, "dim=0 is no descriptor"),
        ({"name": "salad", "aggregator": "sallad"}, "did you mean 'salad'"),
        ({"name": "salad", "weights": "offical"}, "did you mean 'official'"),
        ({"name": "mixvpr", "weights": "official"}, "mixvpr has no published weights to fetch"),
    ],
)
def test_refusals_name_the_remedy(settings: dict[str, object], sentence: str) -> None:
    with torch.device("meta"), pytest.raises(SettingError, match=sentence):
        build_model(**{"weights": None, **settings})  # type: ignore[arg-type]


def test_a_method_without_published_weights_refuses_a_file() -> None:
    with pytest.raises(WeightsError, match="nobody published weights for dapr-m"):
        build_model("dapr-m", weights="model.pth")


def test_a_plug_in_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("mine", "tests.networks.test_methods:PLUGGED", "evenplace.methods")
    monkeypatch.setattr("evenplace.networks.registry.entry_points", lambda group: [point])
    registry: Registry[Method] = Registry("method", "evenplace.methods", {"ours": PLUGGED})
    assert list(registry) == ["ours", "mine"]
    assert registry.find("mine") is PLUGGED
    with pytest.raises(SettingError, match="known: mine, ours"):
        registry.find("theirs")


def test_a_plug_in_cannot_take_our_name(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("ours", "tests.networks.test_methods:PLUGGED", "evenplace.methods")
    monkeypatch.setattr("evenplace.networks.registry.entry_points", lambda group: [point])
    registry: Registry[Method] = Registry("method", "evenplace.methods", {"ours": PLUGGED})
    with pytest.raises(SettingError, match="rename the plug-in"):
        registry.find("other")


PLUGGED = Method(METHODS["cross-entropy"].recipe, Facts(data="mine"))


@pytest.mark.slow
def test_importing_the_models_prints_nothing() -> None:
    code = "import evenplace.networks.methods"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""


@pytest.mark.parametrize(
    ("written", "ours"),
    [("SALAD", "salad"), ("DAPR-M", "dapr-m"), ("BoQ", "boq"), ("D&C", "dc"), ("ImAge", "image")],
)
def test_a_name_as_the_paper_writes_it_finds_ours(written: str, ours: str) -> None:
    with pytest.raises(SettingError, match=f"did you mean '{ours}'"):
        METHODS.find(written)
