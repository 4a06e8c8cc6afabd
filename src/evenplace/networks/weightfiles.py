"""Weight files as people have them → flat tables of tensors.  Nothing in a file is executed.

.pth .pt .ckpt   torch.load with weights_only=True: a table of tensors, bare or inside
                 `state_dict` or `model_state_dict`, with or without `module.` prefixes
.safetensors     as it is
.mat             MATLAB's NetVLAD: see keys/netvlad.py
"""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from evenplace.errors import WeightsError
from evenplace.networks.keys.matlab import read_matlab

_CONTAINERS = ("state_dict", "model_state_dict", "model")


def read_tensors(path: Path | str) -> dict[str, Tensor]:
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
