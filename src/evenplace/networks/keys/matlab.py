"""NetVLAD's MATLAB file → tensors under the names of `keys.retrieval.netvlad_keys`.

A MATLAB struct `net` with 34 layers: VGG16 to conv5_3 in the first 29, NetVLAD in layer 30
(the centres with their sign turned), whitening in layer 33.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from evenplace.errors import WeightsError

_POOLING, _WHITENING = 30, 33


def read_matlab(path: Path) -> dict[str, Tensor]:
    """Read the VGG16-NetVLAD struct that the NetVLAD authors published."""
    try:
        from scipy.io import loadmat
    except ModuleNotFoundError:
        raise WeightsError(f"{path} is a MATLAB file; pip install scipy to read it") from None
    try:
        layers = loadmat(path, struct_as_record=False, squeeze_me=True)["net"].layers
    except (KeyError, ValueError, AttributeError, OSError) as error:
        raise WeightsError(f"{path} holds no NetVLAD network ({error}); fetch it again") from None
    tensors: dict[str, Tensor] = {}
    for number, layer in enumerate(layers[:_POOLING]):
        weights = getattr(layer, "weights", None)
        if weights is not None and len(weights) == 2:
            tensors[f"backbone.{number}.weight"] = _tensor(weights[0]).permute(3, 2, 0, 1)
            tensors[f"backbone.{number}.bias"] = _tensor(weights[1])
    scores, centres = layers[_POOLING].weights
    tensors["score"] = _tensor(scores).T  # (clusters, channels)
    tensors["centres"] = -_tensor(centres).T
    if len(layers) > _WHITENING:
        kernel, bias = layers[_WHITENING].weights
        tensors["whiten.weight"] = _tensor(kernel).squeeze().T
        tensors["whiten.bias"] = _tensor(bias).flatten()
    return {key: value.contiguous() for key, value in tensors.items()}


def _tensor(array: Any) -> Tensor:
    return torch.from_numpy(np.array(array, dtype=np.float32))
