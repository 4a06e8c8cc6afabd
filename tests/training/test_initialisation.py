"""Aggregators that start from photos."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from evenplace.errors import PhotoError
from evenplace.networks.aggregators import NetVLAD
from evenplace.networks.build_model import build_model
from evenplace.training.initialisation import fit_aggregator
from tests.networks.known_weights import known_photos


def _photos(folder: Path, count: int) -> list[str]:
    paths = [str(folder / f"{row}.png") for row in range(count)]
    for path, photo in zip(paths, known_photos(64, 64, count=count), strict=True):
        Image.fromarray(photo.permute(1, 2, 0).numpy()).save(path)
    return paths


def test_netvlads_clusters_come_from_the_photos_and_share_their_features(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = build_model("netvlad", "resnet18", weights=None, layer=2, dim=8, image_size=64)
    fit_aggregator(network, _photos(tmp_path, 4), per_photo=50, seed=1)
    assert isinstance(network.aggregator, NetVLAD)
    lengths = network.aggregator.centres.norm(dim=1)
    assert (lengths <= 1 + 1e-5).all()  # means of unit features
    assert (lengths > 0.1).all()


def test_unreadable_photos_are_no_data(tmp_path: Path) -> None:
    network = build_model("netvlad", "resnet18", weights=None, layer=2, dim=8, image_size=64)
    (tmp_path / "x.jpg").write_bytes(b"no photo")
    with pytest.raises(PhotoError, match="none of the 1 photos"):
        fit_aggregator(network, [str(tmp_path / "x.jpg")])
