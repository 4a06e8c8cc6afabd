"""How large a method's network is."""

from typing import Any

import torch

from evenplace.networks.build_model import build_model


def count_parameters(name: str, backbone: str | None = None, **changes: Any) -> int:
    """How many numbers the network of a method has, without making room for them."""
    with torch.device("meta"):
        network = build_model(name, backbone, weights=None, **changes)
    return sum(parameter.numel() for parameter in network.parameters())
