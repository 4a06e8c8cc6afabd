"""Named systems: how to build one, with whose weights.

A method is a combination of parts that can each be chosen alone: a network, a way to cut the
map, a classifier, a loss, a re-ranker.  Only the network is built here; the other parts are
named, and belong to the modules that know them.
"""

import dataclasses
from pathlib import Path
from typing import Any

import torch

from evenplace.errors import SettingError, WeightsError, unknown_name
from evenplace.networks.checkpoints import is_checkpoint, load_checkpoint
from evenplace.networks.method_table import METHOD_TABLE
from evenplace.networks.network import NetworkSpec, PlaceNetwork, build_network
from evenplace.networks.official import load_official
from evenplace.networks.parts import Method
from evenplace.networks.registry import Registry
from evenplace.networks.releases import Progress, Release, cosplace_release, fetch

METHODS: Registry[Method] = Registry("method", "evenplace.methods", METHOD_TABLE)
_WEIGHTS = ("imagenet", "official")


def build_model(
    name: str,
    backbone: str | None = None,
    *,
    weights: str | Path | None = "imagenet",
    seed: int = 0,
    progress: Progress | None = None,
    **changes: Any,
) -> PlaceNetwork:
    """Build the network of a named system.

    weights: "imagenet" fills the backbone with its own pretrained weights, "official" the whole
    network with the authors', a path with that file's, None leaves it random.  seed: of what is
    random.  changes: settings of `NetworkSpec`, such as dim=512 or image_size=224.
    """
    method, spec = METHODS.find(name), network_spec(name, backbone, **changes)
    if weights is None or weights == "imagenet":
        return build_network(spec, weights=weights, seed=seed)
    if weights == "official":
        weights = fetch(_release(name, method, spec), name=name, progress=progress)
    path = Path(weights)
    if not path.suffix and not path.exists():
        raise unknown_name("set of weights", str(weights), [*_WEIGHTS, "the path of a file"])
    if method.system is None:
        raise WeightsError(f"nobody published weights for {name}; train it, or load a run's model")
    # AnyLoc publishes a vocabulary only: its backbone keeps DINOv2's own weights.
    network = build_network(spec, weights="imagenet" if method.system == "anyloc" else None)
    load_official(network, method.system, path)
    return network.eval()


def build_describer(method: str, weights: str | Path = "official", **changes: Any) -> PlaceNetwork:
    """The network of a method, to rank what another one shortlists.

    weights: those of `build_model`, or a run of that method: its folder or its model.safetensors.
    """
    path = Path(weights) / "model.safetensors" if Path(weights).is_dir() else Path(weights)
    if not is_checkpoint(path):
        return build_model(method, weights=weights, **changes).eval()
    network, wanted = load_checkpoint(path).network, METHODS.find(method).network.aggregator
    if changes:
        raise SettingError(
            f"{path} says itself how its network is made; leave out {', '.join(changes)}"
        )
    if network.spec.aggregator != wanted:
        raise WeightsError(
            f"{path} aggregates by {network.spec.aggregator}, {method} by {wanted}; "
            f"give a run of {method}"
        )
    network.attach_places(torch.empty(0, dtype=torch.long))  # the classifier's count, not these
    return network


def network_spec(name: str, backbone: str | None = None, **changes: Any) -> NetworkSpec:
    """The parts of a method's network, with another backbone or other settings where asked."""
    method = METHODS.find(name)
    known = {field.name for field in dataclasses.fields(NetworkSpec)}
    for setting in changes:
        if setting not in known:
            raise unknown_name("network setting", setting, known - {"backbone"})
    spec = method.network
    if backbone is not None and backbone != spec.backbone:
        own = method.variants.get(backbone, {"layer": None, "cut": None})
        spec = dataclasses.replace(spec, backbone=backbone, **own)
    return dataclasses.replace(spec, **changes)


def count_parameters(name: str, backbone: str | None = None, **changes: Any) -> int:
    """How many numbers the network of a method has, without making room for them."""
    with torch.device("meta"):
        network = build_model(name, backbone, weights=None, **changes)
    return sum(parameter.numel() for parameter in network.parameters())


def _release(name: str, method: Method, spec: NetworkSpec) -> Release | str:
    if method.release is None or method.describer is not None:
        raise SettingError(
            f"{name} has no published weights to fetch; "
            "pass the path of a file, or None for random ones"
        )
    if method.release in ("cosplace", "eigenplaces"):
        return cosplace_release(method.release, spec.backbone, spec.dim)
    if method.release == "boq-dinov2" and spec.backbone == "resnet50":
        return "boq-resnet50"
    return method.release
