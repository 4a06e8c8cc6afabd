"""Weight files as people have them → flat tables of tensors.  Nothing in a file is executed.

.pth .pt .ckpt   torch.load with weights_only=True: a table of tensors, bare or inside
                 `state_dict` or `model_state_dict`, with or without `module.` prefixes
.safetensors     as it is
.mat             MATLAB's NetVLAD: see `read_matlab`
"""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from evenplace.errors import WeightsError

_CONTAINERS = ("state_dict", "model_state_dict", "model")


def read_weights(path: Path | str) -> dict[str, Tensor]:
    """Read a weight file of any known container; refuse others in one sentence."""
    path = Path(path)
    if not path.exists():
        raise WeightsError(f"{path} does not exist; check the path")
    if path.suffix == ".mat":
        return read_matlab(path)
    return flatten(_load(path), path)


def flatten(content: Any, path: Path | str) -> dict[str, Tensor]:
    """Unwrap containers, drop `module.` prefixes, keep tensors.

    A bare tensor is AnyLoc's vocabulary, the only system that publishes one.
    """
    if isinstance(content, Tensor):
        return {"vocabulary": content}
    while isinstance(content, Mapping):
        inside = [content[key] for key in _CONTAINERS if isinstance(content.get(key), Mapping)]
        if not inside:
            break
        content = inside[0]
    if not isinstance(content, Mapping):
        raise WeightsError(
            f"{path} holds a {type(content).__name__}, not a table of tensors; "
            "save model.state_dict() instead"
        )
    tensors = {str(key): value for key, value in content.items() if isinstance(value, Tensor)}
    if not tensors:
        raise WeightsError(f"{path} holds no tensors; its keys are {', '.join(map(str, content))}")
    if all(key.startswith("module.") for key in tensors):
        tensors = {key.removeprefix("module."): value for key, value in tensors.items()}
    return tensors


def _load(path: Path) -> Any:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if "GLOBAL" not in str(error):
            raise WeightsError(f"{path} is no weight file; fetch it again") from None
        raise WeightsError(
            f"{path} holds more than tensors, and running what is inside could harm; "
            "ask its author for a plain state_dict"
        ) from None
    except (SafetensorError, RuntimeError, EOFError, ValueError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise WeightsError(f"{path} is no weight file ({reason}); fetch it again") from None


_POOLING, _WHITENING = 30, 33


def read_matlab(path: Path) -> dict[str, Tensor]:
    """Read the VGG16-NetVLAD struct that the NetVLAD authors published.

    A MATLAB struct `net` with 34 layers: VGG16 to conv5_3 in the first 29, NetVLAD in layer 30
    (the centres with their sign turned), whitening in layer 33.
    """
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
