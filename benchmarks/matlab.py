"""NetVLAD's MATLAB file, written from tensors, and the code that others read it with."""

import importlib
import tempfile
import types
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from scipy.io import savemat
from torch import Tensor, nn

from benchmarks.checkouts import checkout

_LAYERS = 34
_CONVOLUTIONS = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)
_MEAN = (123.68, 116.779, 103.939)


def save_matlab(weights: dict[str, Tensor], path: Path) -> None:
    """Write a network under VPR-methods-evaluation's names as the MATLAB struct it reads."""
    layers: list[dict[str, Any]] = [{"name": f"layer{n}"} for n in range(_LAYERS)]
    for n in _CONVOLUTIONS:
        kernel, bias = weights[f"backbone.{n}.weight"], weights[f"backbone.{n}.bias"]
        layers[n]["weights"] = _cell(kernel.permute(2, 3, 1, 0), bias)
    score, centres = weights["netvlad.score_proj.weight"], weights["netvlad.centers"]
    layers[30]["weights"] = _cell(score[:, :, 0].T, -centres)
    whitening = weights["whiten.weight"].T[None, None]
    layers[33]["weights"] = _cell(whitening, weights["whiten.bias"])
    cells = np.empty(_LAYERS, dtype=object)
    cells[:] = layers
    image = np.tile(np.array(_MEAN, np.float32), (2, 2, 1))
    savemat(path, {"net": {"layers": cells, "meta": {"normalization": {"averageImage": image}}}})


def _cell(first: Tensor, second: Tensor) -> Any:
    cell = np.empty(2, dtype=object)
    cell[0], cell[1] = first.numpy(), second.numpy()
    return cell


def vgg16_netvlad(folder: Path) -> nn.Module:
    """VPR-methods-evaluation's NetVLAD, which wants a MATLAB file before anything else."""
    package = types.ModuleType("vpr_models")
    package.__path__ = [str(folder / "VPR-methods-evaluation" / "vpr_models")]
    with (
        tempfile.TemporaryDirectory() as cache,
        checkout(folder, "VPR-methods-evaluation"),
        mock.patch.dict("sys.modules", {"vpr_models": package}),
        mock.patch("torch.hub.get_dir", return_value=cache),
    ):
        module = importlib.import_module("vpr_models.netvlad")
        (Path(cache) / "netvlad").mkdir()
        save_matlab(_zeros(), Path(cache) / "netvlad" / "VGG16-NetVLAD-Pitts30K.mat")
        model: nn.Module = module.NetVLAD(4096)
    return model


def _zeros() -> dict[str, Tensor]:
    sides = (3, 64, 64, 128, 128, 256, 256, 256, *(512,) * 6)
    weights = {}
    for n, inputs, outputs in zip(_CONVOLUTIONS, sides[:-1], sides[1:], strict=True):
        weights[f"backbone.{n}.weight"] = torch.zeros(outputs, inputs, 3, 3)
        weights[f"backbone.{n}.bias"] = torch.zeros(outputs)
    weights["netvlad.score_proj.weight"] = torch.zeros(64, 512, 1)
    weights["netvlad.centers"] = torch.zeros(512, 64)
    weights["whiten.weight"] = torch.zeros(4096, 32768)
    weights["whiten.bias"] = torch.zeros(4096)
    return weights
