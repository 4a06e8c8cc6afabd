"""Two networks as one: descriptors side by side, photos resized for the smaller."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from evenplace.describe.decoding import picture_pixels, resize_pixels
from evenplace.describe.describer import Describer
from evenplace.errors import SettingError, WeightsError
from evenplace.networks.build_model import build_describer, build_model
from evenplace.networks.checkpoints import load_checkpoint, save_checkpoint
from evenplace.networks.methods import METHODS, NetworkSpec
from evenplace.networks.network import PlaceNetwork, build_network
from evenplace.training.recipe import read_recipe

SMALL = NetworkSpec(image_size=64, dim=8)
LARGE = NetworkSpec(image_size=128, dim=24, aggregator="mean")


def network(spec: NetworkSpec) -> PlaceNetwork:
    torch.manual_seed(0)
    return build_network(spec).eval()


def describe(network: PlaceNetwork, photo: str) -> NDArray[np.float32]:
    return Describer(network).describe([photo]).descriptors


@pytest.fixture
def photo(tmp_path: Path) -> str:
    """A picture with fine and coarse detail, larger than either network's input."""
    y, x = np.mgrid[:300, :400]
    pixels = np.stack([128 + 90 * np.sin(x / (4 + y / 40)), x * 0.6, 255 - y * 0.8], axis=2)
    pixels += np.random.default_rng(0).normal(0, 40, (300, 400, 1))
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(tmp_path / "photo.png")
    return str(tmp_path / "photo.png")


def test_a_photo_is_resized_as_loading_would(photo: str) -> None:
    native = picture_pixels(photo, 64)
    twice = resize_pixels(picture_pixels(photo, 128)[None], 64)[0]
    assert twice.dtype == np.uint8
    assert np.abs(twice.astype(int) - native.astype(int)).mean() < 1  # 4 without antialiasing


@pytest.mark.parametrize("sizes", [(SMALL, LARGE), (LARGE, SMALL)])
def test_each_half_is_what_its_network_says_alone(
    photo: str, sizes: tuple[NetworkSpec, NetworkSpec]
) -> None:
    networks = [network(size) for size in sizes]
    pair = Describer(*networks)
    assert (pair.image_size, sum(pair.dims), pair.together) == ((128, 128), 32, None)
    for half, alone in zip(pair.describe([photo]).split(), networks, strict=True):
        own = describe(alone, photo)
        assert half.shape == own.shape
        np.testing.assert_allclose(np.linalg.norm(half, axis=1), 1, atol=1e-5)
        assert float((half * own).sum()) > (0.999 if alone.image_size == (64, 64) else 1 - 1e-6)


def test_a_describer_is_kept_without_places(tmp_path: Path, photo: str) -> None:
    first = network(LARGE)
    save_checkpoint(tmp_path / "describer.safetensors", first, {"name": "mean"})
    again = load_checkpoint(tmp_path / "describer.safetensors")
    assert again.network.place_count == 0
    assert again.places == {}
    np.testing.assert_array_equal(
        describe(again.network, photo),
        describe(first, photo),
    )


@pytest.mark.parametrize("whole", [True, False])
def test_a_trained_run_can_describe_for_another(tmp_path: Path, photo: str, whole: bool) -> None:
    trained = network(NetworkSpec(image_size=64, dim=8, aggregator="cosplace"))
    trained.attach_places(torch.zeros(5, dtype=torch.long))
    groups = np.zeros(5, np.int64)
    save_checkpoint(tmp_path / "model.safetensors", trained, {}, {"groups": groups})
    path = tmp_path if whole else tmp_path / "model.safetensors"
    describer = build_describer("cosplace", path)
    assert describer.place_count == 0
    np.testing.assert_array_equal(
        describe(describer, photo),
        describe(trained, photo),
    )
    with pytest.raises(WeightsError, match=r"by cosplace, salad by salad; give a run of salad"):
        build_describer("salad", path)
    with pytest.raises(SettingError, match="leave out dim"):
        build_describer("cosplace", path, dim=16)


def test_another_networks_weights_need_no_run() -> None:
    changes: dict[str, Any] = {"backbone": "efficientnet-lite0", "image_size": 64, "dim": 8}
    torch.manual_seed(0)
    wanted = build_model("cosplace", **changes).state_dict()
    torch.manual_seed(0)
    found = build_describer("cosplace", "imagenet", **changes)
    assert not found.training
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in found.state_dict().items())


@pytest.mark.parametrize(
    "name", [n for n in METHODS if METHODS[n].describer and not n.endswith("-small")]
)
def test_every_named_pair_has_recipes(name: str) -> None:
    ranks = str(METHODS[name].describer)
    for given, describer in ((name, ranks), (f"{name}-small", f"{ranks}-small")):
        recipe = read_recipe(given)
        assert recipe.search.describer == describer
        assert recipe.search.folds == 0
        classifier = recipe.name.replace(f"-{ranks}", "")
        assert recipe.network == read_recipe(classifier).network
        assert recipe.training == read_recipe(classifier).training
