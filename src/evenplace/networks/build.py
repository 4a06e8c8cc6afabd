"""The network of a named system, built with whose weights one likes."""

from pathlib import Path
from typing import Any

import torch

from evenplace.errors import SettingError, WeightsError, unknown_name
from evenplace.networks.checkpoints import is_checkpoint, load_checkpoint
from evenplace.networks.methods import METHODS, Facts, network_spec
from evenplace.networks.network import PlaceNetwork, build_network
from evenplace.networks.published import load_official
from evenplace.networks.releases import Progress, Release, cosplace_release, fetch
from evenplace.networks.spec import NetworkSpec

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
    facts = METHODS.find(name).facts
    if weights is None or weights == "imagenet":
        return build_network(network_spec(name, backbone, **changes), weights=weights, seed=seed)
    changes = {**facts.published, **changes}
    spec = network_spec(name, backbone or changes.pop("backbone", None), **changes)
    if weights == "official":
        weights = fetch(_release(name, facts, spec), name=name, progress=progress)
    path = Path(weights)
    if not path.suffix and not path.exists():
        raise unknown_name("set of weights", str(weights), [*_WEIGHTS, "the path of a file"])
    if facts.system is None:
        raise WeightsError(f"nobody published weights for {name}; train it, or load a run's model")
    # AnyLoc publishes a vocabulary only: its backbone keeps DINOv2's own weights.
    network = build_network(spec, weights="imagenet" if facts.system == "anyloc" else None)
    load_official(network, facts.system, path)
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


def _release(name: str, facts: Facts, spec: NetworkSpec) -> Release | str:
    if facts.release is None:
        raise SettingError(
            f"{name} has no published weights to fetch; "
            "pass the path of a file or of a run, or None for random ones"
        )
    if facts.release in ("cosplace", "eigenplaces"):
        return cosplace_release(facts.release, spec.backbone, spec.dim)
    if facts.release == "boq-dinov2" and spec.backbone == "resnet50":
        return "boq-resnet50"
    return facts.release
