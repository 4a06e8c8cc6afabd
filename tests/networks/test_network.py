"""What starts at random in a network is the seed's, whatever the process did before."""

import pytest
import torch

from evenplace.errors import SettingError
from evenplace.networks.build_model import build_model
from evenplace.networks.methods import NetworkSpec
from evenplace.networks.network import build_network

SPEC = NetworkSpec(image_size=32, dim=8)


def first_values(seed: int) -> torch.Tensor:
    weight = build_network(SPEC, seed=seed).projection.weight
    assert isinstance(weight, torch.Tensor)
    return weight.detach()


def test_a_seed_gives_the_same_network_after_any_other_draw() -> None:
    first = first_values(3)
    torch.rand(5)
    assert torch.equal(first_values(3), first)
    assert not torch.equal(first_values(4), first)


def test_building_leaves_other_dice_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    first_values(0)
    assert torch.equal(torch.rand(3), expected)


def test_a_named_system_is_random_by_its_seed() -> None:
    one, same, other = (
        build_model("cosplace", "resnet18", weights=None, seed=seed).state_dict()
        for seed in (0, 0, 1)
    )
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_a_photo_may_be_wider_than_high() -> None:
    spec = NetworkSpec("resnet18", dim=128, aggregator="mixvpr", layer=3, image_size=(64, 96))
    network = build_network(spec, weights=None).eval()
    assert network.image_size == (64, 96)
    assert NetworkSpec(**{**spec.as_dict(), "image_size": [64, 96]}) == spec  # as JSON has it
    with torch.inference_mode():  # MixVPR has a weight for each of 4 x 6 cells
        assert network(torch.zeros(2, 3, 64, 96, dtype=torch.uint8)).shape == (2, 128)


@pytest.mark.parametrize("size", [0, [224, 224, 3], "224", 22.4])
def test_a_size_that_is_none_is_refused(size: object) -> None:
    with pytest.raises(SettingError, match=r"is no size; use a side such as 224"):
        NetworkSpec(image_size=size)  # type: ignore[arg-type]
