"""Weights that others published: fetched, checked, and read as flat tables of tensors.

A file is looked for in `$EVENPLACE_WEIGHTS`, by default `~/.cache/evenplace/weights`; what is
not there is fetched, its SHA-256 compared with the known one, and only then given its name.
Where nobody published a checksum, the first one seen is written beside the file and every
later use must match it.  Nothing in a file is executed:

.pth .pt .ckpt   torch.load with weights_only=True: a table of tensors, bare or inside
                 `state_dict` or `model_state_dict`, with or without `module.` prefixes
.safetensors     as it is
.mat             MATLAB's NetVLAD: see `read_matlab`
"""

import hashlib
import os
import pickle
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from evenplace.errors import WeightsError, unknown_name
from evenplace.photos.files import shipped_tables

Progress = Callable[[int, int], None]
_CHUNK = 1 << 20
_CONTAINERS = ("state_dict", "model_state_dict", "model")
_POOLING, _WHITENING = 30, 33  # layers of MATLAB's NetVLAD


@dataclass(frozen=True)
class Release:
    """A published file.  sha256: whole, or the leading digits its publisher put in its name."""

    url: str
    sha256: str = ""
    by_hand: bool = False  # behind a page that must be clicked

    @property
    def file(self) -> str:
        return self.url.rsplit("/", 1)[-1]


RELEASES = {name: Release(**one) for name, one in shipped_tables("networks/releases.toml").items()}


def cosplace_release(system: str, backbone: str, dim: int) -> Release:
    """CosPlace's and EigenPlaces's files, one a backbone and dimension."""
    names = {"vgg16": "VGG16", "resnet18": "ResNet18", "resnet50": "ResNet50"}
    names |= {"resnet101": "ResNet101", "resnet152": "ResNet152"}
    owner = {"cosplace": "gmberton/CosPlace", "eigenplaces": "gmberton/EigenPlaces"}[system]
    if backbone not in names:
        raise unknown_name(f"backbone with {system} weights", backbone, names)
    file = f"{names[backbone]}_{dim}_{system}.pth"
    return Release(f"https://github.com/{owner}/releases/download/v1.0/{file}")


def weights_folder() -> Path:
    """Where weight files are kept."""
    chosen = os.environ.get("EVENPLACE_WEIGHTS")
    return Path(chosen) if chosen else Path.home() / ".cache" / "evenplace" / "weights"


def fetch(release: str | Release, *, name: str = "", progress: Progress | None = None) -> Path:
    """The path of a published file, fetched and checked if it is not on this machine yet."""
    if isinstance(release, str):
        if release not in RELEASES:
            raise unknown_name("release", release, RELEASES)
        name, release = release, RELEASES[release]
    path = weights_folder() / name / release.file
    if not path.exists():
        _download(release, path, progress)
    _check(release, path)
    return path


def _download(release: Release, path: Path, progress: Progress | None) -> None:
    remedy = f"put the file from {release.url} at {path}"
    if release.by_hand:
        raise WeightsError(f"{path.name} can only be fetched through a browser; {remedy}")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    try:
        with urllib.request.urlopen(release.url, timeout=30) as answer, partial.open("wb") as file:
            _copy(answer, file, progress)
        partial.replace(path)
    except (urllib.error.URLError, OSError, TimeoutError) as error:
        reason = getattr(error, "reason", error)
        raise WeightsError(f"{release.file} cannot be fetched ({reason}); {remedy}") from None
    finally:
        partial.unlink(missing_ok=True)


def _copy(answer: Any, file: Any, progress: Progress | None) -> None:
    total, done = int(answer.headers.get("Content-Length") or 0), 0
    while block := answer.read(_CHUNK):
        file.write(block)
        done += len(block)
        if progress:
            progress(done, total)


def _check(release: Release, path: Path) -> None:
    note = path.with_name(path.name + ".sha256")
    known = release.sha256 or (note.read_text().strip() if note.exists() else "")
    if note.exists() and note.stat().st_mtime_ns >= path.stat().st_mtime_ns:
        found = note.read_text().strip()
    else:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    if known and not found.startswith(known):
        raise WeightsError(
            f"{path} has SHA-256 {found[:16]}…, not {known[:16]}…; delete it and fetch it again"
        )
    if not note.exists():
        note.write_text(found + "\n")


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
