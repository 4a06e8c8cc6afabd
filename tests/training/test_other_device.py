"""Every method on a device that refuses tensors left behind on the CPU: tests/other_device.py."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from evenplace.describe import torch_engine
from evenplace.describe.decoding import load_now
from evenplace.describe.describer import Describer
from evenplace.networks.aggregators.vlad import kmeans
from evenplace.networks.build_model import build_model
from evenplace.networks.checkpoints import load_checkpoint
from evenplace.networks.fingerprint import fingerprint
from evenplace.networks.methods import METHODS
from evenplace.networks.network import build_network
from evenplace.photos import Photos
from evenplace.training.initialisation import fit_aggregator
from evenplace.training.loop import train
from evenplace.training.recipe import cut_places, read_recipe
from evenplace.training.recipe_variants import corner, rehearsal
from tests.other_device import DEVICE, Elsewhere, other_device
from tests.training.town import draw_town, quick_run, small_network

# Elsewhere calls itself meta, and torch believes that nothing is copied there.
pytestmark = pytest.mark.filterwarnings("ignore:for .*copying from a non-meta")

AUGMENTED = ["cached=false", "hue=0.1", "randaugment=2", "flip=true", "validation=0.2"]
RESUMED = ["loss.name=hard-class", "average=0.9", "optimiser=adamw", "start=random"]


def trained_alike(name: str) -> tuple[object, ...]:
    """What decides which code a method's training runs."""
    recipe = read_recipe(name)
    parts = recipe.network.aggregator, recipe.loss.name, recipe.training.sampler
    return *parts, recipe.places.rule, recipe.training.start


def together(names: list[str], alike: Callable[[str], object]) -> list[str]:
    """Methods that are alike in a line: what is shown of the first is shown of all."""
    lines: dict[object, list[str]] = {}
    for name in names:
        lines.setdefault(alike(name), []).append(name)
    return [" ".join(line) for line in lines.values()]


SMALL = [name for name in METHODS if METHODS[name].network.backbone.startswith("efficientnet-l")]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Photos:
    return corner(draw_town(tmp_path_factory.mktemp("town"), 24, 45), count=16)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """The other device, and everybody chooses it."""
    for room in ("training.loop", "describe.torch_engine"):
        monkeypatch.setattr(f"evenplace.{room}.choose_device", lambda *_: DEVICE)
    monkeypatch.setitem(torch_engine._BATCH, DEVICE.type, 8)
    with other_device() as device:
        yield device


def test_the_device_refuses_mixtures_and_allows_what_torch_allows() -> None:
    with other_device() as device:
        there, here = torch.arange(3.0, device=device), torch.arange(3.0)
        for mixed in (torch.add, torch.dot, torch.minimum):
            with pytest.raises(RuntimeError, match="same device"):
                mixed(there, here)
        with pytest.raises((RuntimeError, TypeError)):
            there.numpy()
        with pytest.raises(RuntimeError, match="generator"):
            torch.rand(2, generator=torch.Generator(), device=device)
        assert (there + torch.tensor(1.0)).device == device
        assert there[torch.tensor([2, 0])].cpu().tolist() == [2.0, 0.0]
        assert here.copy_(there).device.type == "cpu"


@pytest.mark.long
@pytest.mark.parametrize("names", together(list(METHODS), lambda name: METHODS[name].network))
def test_every_published_network_leaves_nothing_behind(names: str) -> None:
    """Forward and backward of each method's network at its full size, in shapes only."""
    with torch.device("meta"):
        network = build_model(names.split()[0], weights=None)
        photos = torch.empty(2, 3, *network.image_size, dtype=torch.uint8)
    with other_device(shapes=True) as device:
        network._apply(Elsewhere)  # type: ignore[no-untyped-call]
        network.train()
        found = network(Elsewhere(photos))
        assert (found.device, found.shape) == (device, (2, network.dim))
        if found.requires_grad:  # AnyLoc learns nothing
            found.sum().backward()
        assert all(p.grad is None or p.grad.device == device for p in network.parameters())


@pytest.mark.long
@pytest.mark.parametrize("names", together(SMALL, trained_alike))
def test_every_method_trains_elsewhere(
    town: Photos, tmp_path: Path, device: torch.device, names: str
) -> None:
    """The start from photos, steps, checkpoints, place means: all that one training does."""
    recipe = rehearsal(read_recipe(names.split()[0])).changed(["views=1", "mining.queries=8"])
    side = {"salad": 144, "megaloc": 144, "cricavpr": 224}.get(recipe.network.aggregator, 64)
    recipe = recipe.changed([f"image_size={side}"])
    if recipe.places.rule == "given":
        recipe = recipe.changed(["places.rule=grid"])
    network = build_network(recipe.network)
    trained = train(network, town, cut_places(recipe.places, town), recipe, tmp_path / "run")
    assert np.isfinite(trained.losses).all()
    loaded = load_checkpoint(tmp_path / "run/model.safetensors").network
    assert fingerprint(loaded) == fingerprint(network)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(AUGMENTED, id="augmented", marks=pytest.mark.long),
        pytest.param(RESUMED, id="taken up"),
    ],
)
def test_photos_are_augmented_and_runs_taken_up_elsewhere(
    town: Photos, tmp_path: Path, device: torch.device, settings: list[str]
) -> None:
    first = quick_run(town, tmp_path / "run", *settings)
    (tmp_path / "run/model.safetensors").unlink()
    assert quick_run(town, tmp_path / "run", *settings).losses == first.losses


def test_clusters_start_from_photos_elsewhere(town: Photos, device: torch.device) -> None:
    network = build_model("netvlad-small", weights=None, image_size=64, dim=16).to(device)
    fit_aggregator(network, town.paths[:4], per_photo=20)
    points = torch.arange(20.0).reshape(10, 2).to(device)
    assert kmeans(points, 3).device == device


def test_a_describer_and_a_fingerprint_are_the_same_elsewhere(
    town: Photos, device: torch.device
) -> None:
    here = small_network()
    name, there = fingerprint(here), Describer(small_network(), engine="torch", batch=16)
    assert there.fingerprints == (name,)
    assert there.network is not None
    assert there.network.device == device
    found, rows = there.describe(town.paths), list(range(len(town)))
    with torch.no_grad():
        own = here.eval()(torch.from_numpy(load_now(town.paths, (32, 32), rows).pixels))
    np.testing.assert_allclose(found.descriptors, own.numpy(), atol=1e-5)
