"""ONNX: the same descriptors as torch, at any batch, with the classifier, and in int8."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from evenplace.describe.export import TOLERANCE, export_onnx
from evenplace.errors import SettingError
from evenplace.networks.build_model import build_model
from evenplace.networks.dinov2 import Transformer
from evenplace.networks.methods import NetworkSpec
from evenplace.networks.network import PlaceNetwork
from tests.networks.known_weights import known_photos
from tests.networks.small import small_spec

runtime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")
pytestmark = pytest.mark.slow


def _salad() -> PlaceNetwork:
    torch.manual_seed(0)
    spec = small_spec(depth=2)
    backbone = Transformer(spec.assemble(spec), spec, spec.cut)
    return PlaceNetwork(
        backbone, NetworkSpec("dinov2-small", dim=544, aggregator="salad", image_size=70)
    ).eval()


@pytest.mark.long
def test_a_transformer_and_its_places_answer_as_in_torch(tmp_path: Path) -> None:
    network = _salad()
    network.attach_places(torch.tensor([1, 0, 1]))
    made = export_onnx(network, tmp_path / "model.onnx")
    assert made.difference <= TOLERANCE
    session = runtime.InferenceSession(str(made.path))
    for batch in (1, 4):
        photos = known_photos(70, 70, count=batch)
        descriptors, scores = session.run(None, {"photos": photos.numpy()})
        with torch.no_grad():
            wanted = network(photos)
            cosines = wanted @ network.classifiers.joint().T
        assert np.abs(descriptors - wanted.numpy()).max() <= TOLERANCE
        assert np.abs(scores - cosines.numpy()).max() <= TOLERANCE


@pytest.mark.long
def test_int8_makes_a_transformer_smaller_and_keeps_its_direction(tmp_path: Path) -> None:
    network = _salad()
    whole = export_onnx(network, tmp_path / "whole.onnx")
    small = export_onnx(network, tmp_path / "small.onnx", int8=True)
    assert small.bytes < 0.8 * whole.bytes
    assert small.cosine > 0.98


@pytest.mark.long
def test_int8_of_convolutions_is_measured_on_photos(tmp_path: Path) -> None:
    network = build_model("dapr-m", weights="imagenet", dim=32, image_size=64).eval()
    with pytest.raises(SettingError, match="needs photos to measure"):
        export_onnx(network, tmp_path / "model.onnx", int8=True)
    assert not list(tmp_path.glob("*.onnx"))
    paths = []
    for row, photo in enumerate(known_photos(64, 64, count=8)):
        paths.append(str(tmp_path / f"{row}.png"))
        Image.fromarray(photo.permute(1, 2, 0).numpy()).save(paths[-1])
    small = export_onnx(network, tmp_path / "model.onnx", int8=True, photos=paths)
    assert small.bytes < 6_000_000  # of 14 in float32
    assert small.cosine > 0.8


def test_a_method_that_needs_its_batch_is_not_exported(tmp_path: Path) -> None:
    with torch.device("meta"):
        network = build_model("cricavpr", weights=None)
    with pytest.raises(SettingError, match="describes 16 photos together"):
        export_onnx(network, tmp_path / "model.onnx")
