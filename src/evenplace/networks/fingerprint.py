"""A short name for a network's weights: an index answers only the model that wrote it."""

import hashlib

from evenplace.networks.network import PlaceNetwork


def fingerprint(network: PlaceNetwork) -> str:
    """A digest of all weights, prototypes included, wherever they are kept."""
    digest = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
