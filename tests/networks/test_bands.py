"""A network read at several depths gives the same descriptor wherever it is cut."""

import pytest
import torch

from evenplace.errors import SettingError
from evenplace.networks.backbone import halves
from evenplace.networks.methods import NetworkSpec
from evenplace.networks.network import PlaceNetwork, build_network

PHOTOS = torch.randint(
    0, 255, (2, 3, 64, 64), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
)


def banded(cut: int | None = None) -> PlaceNetwork:
    spec = NetworkSpec("efficientnet-lite0-bands", aggregator="mean", cut=cut, image_size=64)
    return build_network(spec).eval()


def read(network: PlaceNetwork) -> torch.Tensor:
    with torch.no_grad():
        return network.pooled(network.backbone.trunk(PHOTOS))


@pytest.mark.parametrize("cut", [3, 6])
def test_every_cut_reads_the_same_levels(cut: int) -> None:
    torch.testing.assert_close(read(banded(cut)), read(banded()), atol=1e-5, rtol=1e-4)


def test_levels_are_two_bands_of_two_stages_and_the_mean_of_the_last() -> None:
    network, plain = banded(), build_network(NetworkSpec(image_size=64)).eval()
    maps = plain.backbone.normalise(PHOTOS)
    expected = []
    with torch.no_grad():
        for number, stage in enumerate(plain.backbone.stages):
            maps = stage(maps)
            if number in (5, 6):
                middle = maps.shape[2] // 2
                bands = [maps[:, :, :middle].mean((2, 3)), maps[:, :, middle:].mean((2, 3))]
                expected.append(torch.cat(bands, dim=1))
        expected.append(maps.mean((2, 3)))
    unit = torch.cat([level / level.norm(dim=1, keepdim=True) for level in expected], dim=1)
    torch.testing.assert_close(read(network), unit, atol=1e-5, rtol=1e-4)
    assert unit.shape[1] == 2 * 112 + 2 * 192 + 1280


def test_halves_tell_sky_from_street() -> None:
    maps = torch.zeros(1, 1, 4, 3)
    maps[:, :, :2] = 1
    assert halves(maps).tolist() == [[1, 0]]
    assert halves(maps.flip(2)).tolist() == [[0, 1]]


def test_a_middle_row_counts_for_both_halves() -> None:
    maps = torch.tensor([0.0, 3.0, 6.0]).view(1, 1, 3, 1)
    assert halves(maps).tolist() == [[1.5, 4.5]]


def test_the_channels_of_one_half_stay_together() -> None:
    maps = torch.arange(4.0).view(1, 2, 2, 1)  # channel 0 is 0 over 1, channel 1 is 2 over 3
    assert halves(maps).tolist() == [[0, 2, 1, 3]]


def test_the_stages_after_the_cut_train_and_the_others_do_not() -> None:
    network = banded(6)
    network.describe(network.backbone.trunk(PHOTOS)).sum().backward()  # type: ignore[no-untyped-call]
    trained = [any(p.grad is not None for p in s.parameters()) for s in network.backbone.stages]
    assert trained == [False] * 6 + [True] * 3


def test_a_cut_between_the_levels_is_refused() -> None:
    with pytest.raises(SettingError, match="cut=7 is between the levels"):
        banded(7)
