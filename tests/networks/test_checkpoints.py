"""Our own checkpoint: what is written is read back, and what is not ours is refused."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from evenplace.errors import RunError
from evenplace.networks.checkpoints import load_checkpoint, save_checkpoint
from evenplace.networks.methods import NetworkSpec
from evenplace.networks.network import build_network
from tests.networks.known_weights import known_photos

_SPECS = {
    "gem": NetworkSpec("efficientnet-lite0", dim=16, image_size=64),
    "cosplace": NetworkSpec("resnet18", dim=16, aggregator="cosplace", image_size=64),
    "mixvpr": NetworkSpec("resnet18", dim=128, aggregator="mixvpr", layer=3, image_size=64),
}


@pytest.mark.parametrize("name", list(_SPECS))
def test_a_network_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = build_network(_SPECS[name], weights=None).eval()
    groups = np.array([0, 1, 0], dtype=np.int64)
    network.attach_places(torch.from_numpy(groups))
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, network, {"name": "x"}, {"groups": groups})
    again = load_checkpoint(path)
    photos = known_photos(64, 64)
    with torch.no_grad():
        assert torch.equal(again.network(photos), network(photos))
    assert torch.equal(again.network.classifiers.joint(), network.classifiers.joint())
    assert again.network.spec == network.spec
    assert again.recipe == {"name": "x"}


def test_other_peoples_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"x": torch.zeros(2)}, path)
    with pytest.raises(RunError, match="version None, this EvenPlace reads 1"):
        load_checkpoint(path)
    path.write_bytes(b"no tensors at all")
    with pytest.raises(RunError, match="is damaged"):
        load_checkpoint(path)
    with pytest.raises(RunError, match="train first"):
        load_checkpoint(tmp_path / "absent.safetensors")


@pytest.mark.parametrize("photos", [400, 600])  # fewer and more than the 512 numbers of each
def test_principal_axes_keep_angles_and_whitening_evens_them_out(photos: int) -> None:
    torch.manual_seed(0)
    network = build_network(NetworkSpec("resnet18", dim=3, image_size=64), weights=None)
    spread = torch.tensor([5.0, 2.0, 1.0])
    axes = torch.linalg.qr(torch.randn(512, 3)).Q
    points = torch.randn(photos, 3) * spread @ axes.T
    network.project_onto_principal_axes(points, whiten=0.0)
    seen = network.projection(points).detach()
    assert torch.allclose(
        torch.pdist(seen) / torch.pdist(seen).max(),
        torch.pdist(points) / torch.pdist(points).max(),
        atol=1e-3,
    )
    network.project_onto_principal_axes(points, whiten=1.0)
    deviations = network.projection(points).std(dim=0)
    assert torch.allclose(deviations, deviations[0].expand(3), rtol=0.01)
