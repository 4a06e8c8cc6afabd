"""Folding changes the work, not the maps."""

import torch

from evenplace.networks.build_backbone import build_backbone


def plain(backbone: torch.nn.Module, photos: torch.Tensor, cut: int) -> torch.Tensor:
    maps = backbone.normalise(photos)  # type: ignore[operator]
    with torch.no_grad():
        for stage in backbone.stages[:cut]:  # type: ignore[index]
            maps = stage(maps)
    return torch.as_tensor(maps)


def test_the_folded_trunk_gives_the_same_maps() -> None:
    backbone = build_backbone("efficientnet-lite0", cut=7)
    photos = torch.randint(0, 255, (2, 3, 64, 64), dtype=torch.uint8)
    torch.testing.assert_close(
        backbone.trunk(photos), plain(backbone, photos, 7), atol=1e-4, rtol=1e-4
    )


def test_the_folded_trunk_follows_its_weights() -> None:
    backbone = build_backbone("efficientnet-lite0", cut=3)
    photos = torch.randint(0, 255, (1, 3, 64, 64), dtype=torch.uint8)
    before = backbone.trunk(photos)
    with torch.no_grad():
        next(iter(backbone.stages[0].parameters())).mul_(1.5)
    after = backbone.trunk(photos)
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, plain(backbone, photos, 3), atol=1e-4, rtol=1e-4)


def test_folding_leaves_the_network_s_own_names() -> None:
    backbone = build_backbone("efficientnet-lite0", cut=7)
    names = set(backbone.state_dict())
    backbone.trunk(torch.zeros(1, 3, 64, 64, dtype=torch.uint8))
    assert set(backbone.state_dict()) == names
