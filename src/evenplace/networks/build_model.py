"""The network of a named system, built with whose weights one likes; or why that cannot be done."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from evenplace.errors import SettingError, WeightsError, unknown_name
from evenplace.networks.checkpoints import is_checkpoint, load_checkpoint
from evenplace.networks.methods import METHODS, Facts, NetworkSpec, network_spec
from evenplace.networks.network import PlaceNetwork, build_network
from evenplace.networks.published_keys import SYSTEMS, seems_to_be
from evenplace.networks.weight_files import Progress, Release, cosplace_release, fetch, read_weights

_WEIGHTS = ("imagenet", "official")
_NAMED = 3  # keys named in a refusal


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


def load_official(network: PlaceNetwork, system: str, path: Path | str) -> None:
    """Fill a network from a published file; every tensor must find its place, and none be left."""
    if system not in SYSTEMS:
        raise unknown_name("system with published weights", system, SYSTEMS)
    fill_official(network, system, read_weights(path), str(path))


def fill_official(
    network: PlaceNetwork, system: str, tensors: Mapping[str, Tensor], source: str = "the file"
) -> None:
    """Fill a network from tensors under their authors' names."""
    renamed = SYSTEMS[system].rename(network.backbone.spec, tensors)
    own = _own(network, without_backbone=SYSTEMS[system].backbone is None)
    if system == "netvlad" and "projection.weight" in renamed:
        renamed["projection.weight"] = _cluster_by_cluster(renamed["projection.weight"], network)
    if system == "netvlad" and not isinstance(network.projection, nn.Linear):
        renamed = {k: v for k, v in renamed.items() if not k.startswith("projection.")}
    _refuse_misfits(own, renamed, f"{source} does not fit {system}", seems_to_be(tensors))
    fitted = {key: renamed[key].reshape(tensor.shape) for key, tensor in own.items()}
    network.load_state_dict(fitted, strict=False)


def _own(network: PlaceNetwork, *, without_backbone: bool) -> dict[str, Tensor]:
    """The tensors a published file must bring: neither places nor counters of batch norm."""
    left_out = ("classifiers.", "backbone.") if without_backbone else ("classifiers.",)
    state = network.state_dict()
    return {k: v for k, v in state.items() if not k.startswith(left_out) and not _counter(k)}


def _refuse_misfits(
    own: Mapping[str, Tensor], given: Mapping[str, Tensor], what: str, guess: str
) -> None:
    missing = sorted(own.keys() - given.keys())
    over = sorted(key for key in given.keys() - own.keys() if not _counter(key))
    # A linear layer is often published as a 1x1 convolution: the same numbers in the same order.
    shapes = [key for key in own if key in given and _core(own[key]) != _core(given[key])]
    if not (missing or over or shapes):
        return
    parts = []
    if missing:
        parts.append(f"{len(missing)} tensors are missing ({_some(missing)})")
    if over:
        parts.append(f"{len(over)} are left over ({_some(over)})")
    if shapes:
        first = shapes[0]
        found, wanted = tuple(given[first].shape), tuple(own[first].shape)
        parts.append(f"{len(shapes)} have another shape ({first} is {found}, not {wanted})")
    raise WeightsError(
        f"{what}: {', '.join(parts)}; it seems to be {guess}: choose that method, or the backbone "
        "and dim the file was made with"
    )


def _core(tensor: Tensor) -> tuple[int, ...]:
    return tuple(side for side in tensor.shape if side != 1)


def _counter(key: str) -> bool:
    return key.endswith("num_batches_tracked")


def _some(keys: list[str]) -> str:
    return ", ".join(keys[:_NAMED]) + (", …" if len(keys) > _NAMED else "")


def _cluster_by_cluster(whitening: Tensor, network: PlaceNetwork) -> Tensor:
    """MATLAB lists a descriptor channel by channel, we cluster by cluster."""
    channels = network.backbone.spec.channels
    return torch.flatten(whitening.reshape(len(whitening), channels, -1).mT, 1)
