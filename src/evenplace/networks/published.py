"""Fill our networks with the weights their authors published, or say why that cannot be done."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from evenplace.errors import WeightsError, unknown_name
from evenplace.networks.network import PlaceNetwork
from evenplace.networks.published_keys import SYSTEMS, seems_to_be
from evenplace.networks.weightfiles import read_weights

_NAMED = 3  # keys named in a refusal


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
