"""A network as an ONNX file, checked against torch before anyone relies on it.

B batch · H, W pixels · D descriptor · C places
"""

import importlib
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from evenplace.arrays import Bytes
from evenplace.describe.decoding import load_batches
from evenplace.describe.onnx_engine import ABOUT
from evenplace.errors import PhotoError, RunError, SettingError, WeightsError
from evenplace.networks.build_model import build_model
from evenplace.networks.checkpoints import load_checkpoint
from evenplace.networks.fingerprint import fingerprint
from evenplace.networks.methods import METHODS
from evenplace.networks.network import PlaceNetwork
from evenplace.photos.pictures import SUFFIXES, Size, height_width

_SAMPLE = 64  # photos that int8 ranges are measured on
TOLERANCE = 1e-5  # measured: 2e-7 of the default network


@dataclass(frozen=True)
class Exported:
    """A file, and how far its descriptors are from torch's.

    difference: the largest of any entry; cosine: the smallest between two descriptors of the
    same photo, which is what int8 changes.
    """

    path: Path
    bytes: int
    difference: float
    cosine: float


class _Answers(nn.Module):
    """Photos → descriptors, and cosines to every place if they are wanted."""

    def __init__(self, network: PlaceNetwork, places: bool) -> None:
        super().__init__()
        self.network, self.places = network, places

    def forward(self, photos: Tensor) -> tuple[Tensor, ...]:
        descriptors = self.network(photos)
        if not self.places:
            return (descriptors,)
        return descriptors, descriptors @ self.network.classifiers.joint().T


def export_onnx(
    network: PlaceNetwork,
    path: Path,
    *,
    image_size: Size | None = None,
    int8: bool = False,
    photos: Sequence[str] = (),
    places: bool = True,
) -> Exported:
    """Write a network as ONNX and compare it with torch on photos of noise.

    The file takes `photos` (B, 3, H, W) uint8 of any batch and gives `descriptors` (B, D) and,
    if places are attached and wanted, `scores` (B, C), their cosines.  int8 quantises weights,
    and the activations of convolutions too, for which it must see some real `photos`.  The file
    itself says which network it is.
    """
    runtime = _need("onnxruntime")
    _need("onnxscript")
    _need("onnx")
    network.eval()
    if network.batch is not None:
        raise SettingError(
            f"{network.spec.aggregator} describes {network.batch} photos together, and an ONNX "
            "file describes each for itself; choose another method"
        )
    if int8 and not photos and not network.backbone.spec.heads:
        raise SettingError(
            "int8 of a convolutional network needs photos to measure its activations on; "
            "pass a few dozen with photos="
        )
    size = height_width(image_size or network.image_size)
    _write(network, path, size, places and bool(network.place_count))
    if int8:
        _quantise(network, path, size, photos)
    _sign(network, path, size)
    made = _compare(network, path, size, runtime)
    if not int8 and not made.difference <= TOLERANCE:
        path.unlink()
        raise WeightsError(
            f"the ONNX file differs from torch by {made.difference:.1e}, more than {TOLERANCE}; "
            "it was deleted: please report the method and versions"
        )
    return made


def network_of(run_or_method: str, weights: str | None = "imagenet") -> PlaceNetwork:
    """The network of a run folder, or of a named system with the weights asked for."""
    model = Path(run_or_method) / "model.safetensors"
    if model.exists():
        return load_checkpoint(model).network
    if run_or_method not in METHODS and Path(run_or_method).is_dir():
        raise RunError(f"{run_or_method} holds no model.safetensors; train it first")
    return build_model(run_or_method, weights=weights)


def some_photos(folder: Path) -> tuple[str, ...]:
    """A few photos of a folder, spread over it, to measure activations on."""
    found = sorted(str(path) for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    if not found:
        raise PhotoError(f"{folder} holds no photos (looked for {', '.join(SUFFIXES)})")
    return tuple(found[:: max(1, len(found) // _SAMPLE)][:_SAMPLE])


def _write(network: PlaceNetwork, path: Path, size: tuple[int, int], places: bool) -> None:
    names = ["descriptors", "scores"][: 2 if places else 1]
    was_fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # its fused operator has no ONNX counterpart
    try:
        _torch_export(
            _Answers(network, places).eval(),
            (_noise(2, size),),
            path,
            input_names=["photos"],
            output_names=names,
            dynamic_shapes={"photos": {0: torch.export.Dim("batch")}},
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    finally:
        torch.backends.mha.set_fastpath_enabled(was_fast)


def _sign(network: PlaceNetwork, path: Path, size: tuple[int, int]) -> None:
    """Write into the file which network it is, for `OnnxEngine`."""
    onnx: Any = _need("onnx")
    about = {
        "fingerprint": fingerprint(network),
        "dim": network.dim,
        "image_size": list(size),
        "parameters": sum(weights.numel() for weights in network.parameters()),
    }
    model = onnx.load(path)
    onnx.helper.set_model_props(model, {ABOUT: json.dumps(about)})
    onnx.save(model, path)


def _torch_export(*args: Any, **options: Any) -> None:
    """torch.onnx.export without the deprecation notes that torch's own parts trade.

    Without gradients the graph is traced in half the time: 8 s of 15 for the default network.
    """
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(*args, **options)


def _quantise(
    network: PlaceNetwork, path: Path, size: tuple[int, int], photos: Sequence[str]
) -> None:
    tools: Any = _need("onnxruntime.quantization")
    whole = path.with_name(path.stem + ".float.onnx")
    _forget_shapes(path, whole)
    try:
        if network.backbone.spec.heads:
            tools.quantize_dynamic(whole, path, op_types_to_quantize=["MatMul", "Gemm"])
            return
        reader = _Calibration(tools.CalibrationDataReader, photos, size)
        tools.quantize_static(whole, path, reader.made, per_channel=True)
    finally:
        whole.unlink(missing_ok=True)


def _forget_shapes(path: Path, whole: Path) -> None:
    """Move a model without the shapes noted inside it, which the quantiser reads as binding."""
    onnx: Any = _need("onnx")
    model = onnx.load(path)
    del model.graph.value_info[:]
    onnx.save(model, whole)
    path.unlink()


class _Calibration:
    """Photos for the quantiser, which asks for them one at a time and for None at the end."""

    def __init__(self, base: type, photos: Sequence[str], size: tuple[int, int]) -> None:
        def each() -> Iterator[dict[str, Bytes]]:
            for batch in load_batches(photos, size, batch=1):
                if batch.rows:
                    yield {"photos": batch.pixels}

        rest = each()
        self.made = type("Photos", (base,), {"get_next": lambda _: next(rest, None)})()


def _compare(network: PlaceNetwork, path: Path, size: tuple[int, int], runtime: Any) -> Exported:
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    difference, cosine = 0.0, 1.0
    for batch in (1, 3):
        photos = _noise(batch, size)
        found = torch.from_numpy(session.run(["descriptors"], {"photos": photos.numpy()})[0])
        with torch.no_grad():
            wanted = network(photos)
        difference = max(difference, float((found - wanted).abs().max()))
        cosine = min(cosine, float(torch.cosine_similarity(found, wanted, dim=1).min()))
    return Exported(path, path.stat().st_size, difference, cosine)


def _noise(batch: int, size: tuple[int, int]) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(256, (batch, 3, *size), generator=generator, dtype=torch.uint8)


def _need(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise SettingError(
            f"ONNX export needs {module.split('.')[0]}; pip install {module.split('.')[0]}"
        ) from None
