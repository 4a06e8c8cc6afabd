"""A trained model on disk: one safetensors file with weights, places and recipe. Never pickle.

Written whole, with a checksum that reading compares; so are a stopped run's tables of tensors.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, uint8

from evenplace.arrays import Array
from evenplace.errors import RunError
from evenplace.networks.classifiers import LevelClassifiers
from evenplace.networks.fingerprint import PLACES
from evenplace.networks.methods import NetworkSpec
from evenplace.networks.network import PlaceNetwork, build_network
from evenplace.photos.files import because, whole_file

ABOUT = "evenplace"  # one entry of the header, so that the same tensors give the same bytes
VERSION = 1
AFRESH = "delete the run folder and train again"  # where a stopped training is damaged


@dataclass(frozen=True)
class TensorFile:
    """What a file held: tensors by name, on the CPU, and what was said about them."""

    tensors: dict[str, Tensor]
    about: dict[str, Any]


def save_tensors(
    path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any] | None = None
) -> None:
    """Write one file, whole or not at all, and wait until the disk has it."""
    plain = {name: one.detach().cpu().contiguous() for name, one in tensors.items()}
    header = {**(about or {}), "sha256": _digest(plain, about or {})}
    with whole_file(path, RunError) as draft:
        try:
            save_file(plain, draft, metadata={ABOUT: json.dumps(header)})
        except SafetensorError as cause:  # its own words for a full or forbidden disk
            reason = because(OSError(_number(str(cause)), str(cause)))
            raise RunError(f"could not write {path}: {reason}") from None


def read_tensors(path: Path, remedy: str = AFRESH) -> TensorFile:
    """Read a file of ours; refuse a damaged one in one sentence that ends with the remedy."""
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get(ABOUT, "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise RunError(f"{path} does not exist; {remedy}") from None
    except (SafetensorError, ValueError, OSError) as cause:
        why = (str(cause) or type(cause).__name__).splitlines()[0]
        raise RunError(f"{path} is damaged ({why}); {remedy}") from None
    if "sha256" in about and about.pop("sha256") != _digest(tensors, about):
        raise RunError(f"{path} is damaged (its checksum does not match); {remedy}")
    return TensorFile(tensors, about)


def _digest(tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> str:
    found = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(tensors):
        found.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}".encode())
        found.update(tensors[name].flatten().view(uint8).numpy().data)
    return found.hexdigest()


def _number(text: str) -> int:
    """The operating system's number for an error, out of "… (os error 28)"."""
    _, _, rest = text.rpartition("os error ")
    digits = rest.rstrip(")} \"'")
    return int(digits) if digits.isdigit() else 0


@dataclass(frozen=True)
class Checkpoint:
    """A network, the recipe that made it, and the places it knows."""

    network: PlaceNetwork
    recipe: dict[str, Any]
    places: dict[str, Array]  # ids, centres, counts, groups


def save_checkpoint(
    path: Path,
    network: PlaceNetwork,
    recipe: dict[str, Any],
    places: dict[str, Array] | None = None,
) -> None:
    """Write one file, whole or not at all.  places: None for a network that only describes."""
    tensors = dict(network.state_dict())
    for name, array in (places or {}).items():
        tensors[PLACES + name] = torch.from_numpy(np.ascontiguousarray(array))
    levels = isinstance(network.classifiers, LevelClassifiers)
    about = {
        "version": VERSION,
        "network": network.spec.as_dict(),
        "scale": network.scale,
        "recipe": recipe,
    } | ({"levels": network.classifiers.combine} if levels else {})
    save_tensors(path, tensors, about)


def load_checkpoint(path: Path) -> Checkpoint:
    """Build the network again and fill it; refuse files that are not ours, in one sentence."""
    if not path.exists():
        raise RunError(f"{path} does not exist; train first: evenplace train PHOTOS --run RUN")
    read = read_tensors(path, "train again or restore a copy")
    about, tensors = read.about, read.tensors
    if about.get("version") != VERSION:
        raise RunError(
            f"{path} has version {about.get('version')}, this EvenPlace reads {VERSION}; "
            "train again, or install the version that wrote it"
        )
    places = {n.removeprefix(PLACES): t.numpy() for n, t in tensors.items() if n.startswith(PLACES)}
    network = build_network(NetworkSpec(**about["network"]), weights=None)
    network.scale = about["scale"]
    if "levels" in about:
        network.attach_levels(tensors["classifiers.parents"], about["levels"])
    elif places:
        network.attach_places(torch.from_numpy(places["groups"]))
    network.load_state_dict({n: t for n, t in tensors.items() if not n.startswith(PLACES)})
    return Checkpoint(network.eval(), about["recipe"], places)


def is_checkpoint(path: Path) -> bool:
    """Whether a file is a model of ours, and not one that others published."""
    if path.suffix != ".safetensors" or not path.exists():
        return False
    try:
        with safe_open(path, framework="pt") as file:
            return ABOUT in (file.metadata() or {})
    except SafetensorError:
        return False
