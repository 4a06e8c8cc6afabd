"""Published weights: every tensor finds its place, outputs stay golden, misfits are named."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from benchmarks.matlab import save_matlab
from evenplace.errors import SettingError, WeightsError
from evenplace.networks.build_model import build_model, fill_official, load_official
from evenplace.networks.methods import METHODS
from evenplace.networks.network import PlaceNetwork
from evenplace.networks.published_keys import SYSTEMS, seems_to_be
from evenplace.networks.weight_files import read_weights
from tests.networks.known_weights import known_photos, known_weights, sample

FOLDER = Path(__file__).parents[1] / "fixtures" / "checkpoints"
FIXTURES = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("[!f]*.json"))}
QUICK = ("cosplace-resnet18", "eigenplaces-resnet18", "dc-efficientnet-b0", "mixvpr-512")
SLOW = ("boq-dinov2", "salad")
LONG = ("cricavpr", "image", "megaloc")  # seconds to half a minute each
MATLAB = ("netvlad",)  # its fixture has the names of the code that reads the .mat


def _network(fixture: dict[str, Any], **changes: Any) -> PlaceNetwork:
    settings = fixture["changes"] | changes
    return build_model(fixture["method"], fixture["backbone"], weights=None, **settings)


def _system(fixture: dict[str, Any]) -> str:
    return str(METHODS[fixture["method"]].facts.system)


@pytest.mark.parametrize("name", [name for name in FIXTURES if name not in MATLAB])
def test_every_published_tensor_finds_its_place(name: str) -> None:
    fixture = FIXTURES[name]
    with torch.device("meta"):
        network = _network(fixture)
        tensors = {key: torch.empty(shape) for key, shape in fixture["shapes"].items()}
        fill_official(network, _system(fixture), tensors)


@pytest.mark.parametrize("name", [name for name in FIXTURES if name not in MATLAB])
def test_a_file_without_one_tensor_is_refused_by_its_name(name: str) -> None:
    fixture = FIXTURES[name]
    with torch.device("meta"):
        network = _network(fixture)
        tensors = {key: torch.empty(shape) for key, shape in fixture["shapes"].items()}
        del tensors[[key for key in tensors if key.endswith("weight")][-1]]
        with pytest.raises(
            WeightsError, match=r"1 tensors are missing|have another shape|left over"
        ):
            fill_official(network, _system(fixture), tensors)


@pytest.mark.parametrize(
    "name",
    [
        *QUICK,
        *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW),
        *(pytest.param(name, marks=pytest.mark.long) for name in LONG),
    ],
)
@torch.no_grad()
def test_outputs_are_those_of_the_official_code(name: str) -> None:
    fixture = FIXTURES[name]
    network = _network(fixture).eval()
    shapes = {key: tuple(shape) for key, shape in fixture["shapes"].items()}
    fill_official(network, _system(fixture), known_weights(shapes, fixture["gain"]))
    golden = fixture["golden"][0]
    found = sample(network(known_photos(*golden["size"])))
    assert found == [pytest.approx(row, abs=2e-6, rel=2e-3) for row in golden["entries"]]


def _tiny() -> tuple[PlaceNetwork, dict[str, Tensor]]:
    """CosPlace's smallest network, and weights for it under the published names."""
    fixture = FIXTURES["cosplace-resnet18"]
    shapes = {key: tuple(shape) for key, shape in fixture["shapes"].items()}
    return _network(fixture), known_weights(shapes)


def _containers(weights: dict[str, Tensor]) -> dict[str, Any]:
    parallel = {f"module.{key}": value for key, value in weights.items()}
    return {
        "flat": weights,
        "state_dict": {"state_dict": weights, "epoch": 3},
        "model_state_dict": {"model_state_dict": parallel, "best_val_recall1": 0.5},
        "module": parallel,
    }


@pytest.mark.parametrize("container", ["flat", "state_dict", "model_state_dict", "module"])
def test_every_container_is_opened(container: str, tmp_path: Path) -> None:
    weights = {"a.weight": torch.ones(2, 3), "a.bias": torch.zeros(2)}
    path = tmp_path / "file.pth"
    torch.save(_containers(weights)[container], path)
    found = read_weights(path)
    assert found.keys() == weights.keys()
    assert torch.equal(found["a.weight"], weights["a.weight"])


def test_safetensors_are_opened(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2)}, tmp_path / "file.safetensors")
    assert torch.equal(read_weights(tmp_path / "file.safetensors")["a"], torch.ones(2))


def test_matlabs_netvlad_is_opened_with_its_axes_turned(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    layers = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)
    weights = {f"backbone.{n}.weight": draw(3, 2, 3, 3) for n in layers}
    weights |= {f"backbone.{n}.bias": draw(3) for n in layers}
    weights |= {"netvlad.score_proj.weight": draw(4, 5, 1), "netvlad.centers": draw(5, 4)}
    weights |= {"whiten.weight": draw(6, 20), "whiten.bias": draw(6)}
    save_matlab(weights, tmp_path / "file.mat")
    found = read_weights(tmp_path / "file.mat")
    assert torch.equal(found["backbone.28.weight"], weights["backbone.28.weight"])
    assert torch.equal(found["score"], weights["netvlad.score_proj.weight"][:, :, 0])
    assert torch.equal(found["centres"], weights["netvlad.centers"].T)
    assert torch.equal(found["whiten.weight"], weights["whiten.weight"])
    assert set(SYSTEMS["netvlad"].rename(METHODS_VGG, found)) >= {"aggregator.centres"}


METHODS_VGG = build_model("cosplace", "vgg16", weights=None).backbone.spec


def test_a_network_filled_from_a_file_describes_as_one_filled_from_memory(tmp_path: Path) -> None:
    network, weights = _tiny()
    fill_official(network, "cosplace", weights)
    torch.save(weights, tmp_path / "ResNet18_256_cosplace.pth")
    other = build_model(
        "cosplace", "resnet18", dim=256, weights=tmp_path / "ResNet18_256_cosplace.pth"
    )
    photos = known_photos(64, 64)
    with torch.no_grad():
        assert torch.equal(network.eval()(photos), other(photos))


def test_another_systems_file_is_recognised() -> None:
    network, _ = _tiny()
    shapes = FIXTURES["salad"]["shapes"]
    with torch.device("meta"):
        tensors = {key: torch.empty(shape) for key, shape in shapes.items()}
    with pytest.raises(WeightsError, match="seems to be salad or cliquemining"):
        fill_official(network, "cosplace", tensors)


def test_another_dimension_is_named() -> None:
    network = build_model("cosplace", "resnet18", dim=128, weights=None)
    _, weights = _tiny()
    with pytest.raises(WeightsError, match=r"projection.weight is \(256, 512\), not \(128, 512\)"):
        fill_official(network, "cosplace", weights)


@pytest.mark.parametrize("name", list(FIXTURES))
def test_each_fixture_is_told_from_the_others(name: str) -> None:
    if name in MATLAB:
        pytest.skip("a MATLAB file is told by its suffix")
    assert _system(FIXTURES[name]) in seems_to_be(FIXTURES[name]["shapes"])


def test_backbones_and_strangers_are_told_apart() -> None:
    assert seems_to_be(["blocks.0.ls1.gamma"]) == "the DINOv2 backbone alone"
    assert seems_to_be(["layer1.0.conv1.weight"]) == "a torchvision ResNet"
    assert seems_to_be(["x"]) == "nothing we know"


class _Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("this must never run",))


def test_a_file_that_would_run_code_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save({"state_dict": _Trap()}, tmp_path / "trap.pth")
    with pytest.raises(WeightsError, match="could harm"):
        read_weights(tmp_path / "trap.pth")
    assert "never run" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ([1, 2], "holds a list, not a table of tensors"),
        ({"epoch": 3}, "holds no tensors; its keys are epoch"),
    ],
)
def test_files_without_tensors_are_refused(content: Any, sentence: str, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "file.pth")
    with pytest.raises(WeightsError, match=sentence):
        read_weights(tmp_path / "file.pth")


@pytest.mark.parametrize("suffix", [".pth", ".safetensors", ".mat"])
def test_garbage_and_absence_are_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"file{suffix}"
    with pytest.raises(WeightsError, match="does not exist"):
        read_weights(path)
    path.write_bytes(np.arange(40, dtype=np.uint8).tobytes())
    with pytest.raises(WeightsError, match="fetch it again"):
        read_weights(path)


def test_an_unknown_system_is_refused() -> None:
    network, _ = _tiny()
    with pytest.raises(SettingError, match="did you mean 'cosplace'"):
        load_official(network, "cosplaces", FOLDER / "salad.json")
