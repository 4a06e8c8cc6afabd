"""A short name for a network's weights: an index answers only the model that wrote it.

Read from the network or from its file, without torch, with the same result.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from evenplace.arrays import Array

if TYPE_CHECKING:
    from evenplace.networks.network import PlaceNetwork

PLACES = "places."  # what a file holds of the map, beside the weights


def fingerprint(network: "PlaceNetwork") -> str:
    """A digest of all weights, prototypes included, wherever they are kept."""
    tensors = network.state_dict()
    return digest_weights(
        (name, tensors[name].cpu().contiguous().numpy()) for name in sorted(tensors)
    )


def fingerprint_of(path: Path) -> str:
    """The same of a network on disk."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        names = sorted(name for name in file.keys() if not name.startswith(PLACES))  # noqa: SIM118
        return digest_weights((name, file.get_tensor(name)) for name in names)


def digest_weights(weights: Iterable[tuple[str, Array]], said: str = "") -> str:
    """Sixteen digits of what is said of the weights, their names and their bytes."""
    digest = hashlib.sha256(said.encode())
    for name, values in weights:
        digest.update(name.encode())
        digest.update(values.tobytes())
    return digest.hexdigest()[:16]
