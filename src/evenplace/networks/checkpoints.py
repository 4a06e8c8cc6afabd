"""A trained model on disk: one safetensors file with weights, places and recipe. Never pickle."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from evenplace.errors import RunError
from evenplace.networks.fingerprint import PLACES
from evenplace.networks.levels import LevelClassifiers
from evenplace.networks.network import PlaceNetwork, build_network
from evenplace.networks.spec import NetworkSpec
from evenplace.networks.tensorfiles import ABOUT, read_tensors, save_tensors

VERSION = 1


@dataclass(frozen=True)
class Checkpoint:
    """A network, the recipe that made it, and the places it knows."""

    network: PlaceNetwork
    recipe: dict[str, Any]
    places: dict[str, NDArray[Any]]  # ids, centres, counts, groups


def save_checkpoint(
    path: Path,
    network: PlaceNetwork,
    recipe: dict[str, Any],
    places: dict[str, NDArray[Any]] | None = None,
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
    places = {n.removeprefix(PLACES): t.numpy() for n, t in tensors.items() if _is_place(n)}
    network = build_network(NetworkSpec(**about["network"]), weights=None)
    network.scale = about["scale"]
    if "levels" in about:
        network.attach_levels(tensors["classifiers.parents"], about["levels"])
    elif places:
        network.attach_places(torch.from_numpy(places["groups"]))
    network.load_state_dict({n: t for n, t in tensors.items() if not _is_place(n)})
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


def _is_place(name: str) -> bool:
    return name.startswith(PLACES)
