"""Weights and photos that anyone can make again from a name, on any machine.

Golden outputs are only worth something if their inputs are; these come from NumPy's PCG64 and a
checksum of the tensor's name, and depend on nothing else.
"""

import math
import zlib
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor


def known_tensor(name: str, shape: tuple[int, ...], gain: float = 1.0) -> Tensor:
    """Values of a sensible size for a tensor of that name: no layer dies, none explodes.

    gain: for convolutions, where a network's activations would shrink the signal to nothing.
    """
    if name.endswith("num_batches_tracked"):
        return torch.zeros(shape, dtype=torch.long)
    generator = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
    noise = torch.as_tensor(2 * generator.random(shape, dtype=np.float32) - 1)
    if name.endswith("running_var"):
        return 1 + 0.5 * noise
    if name.endswith("gamma"):
        return 0.3 + 0.2 * noise
    if name.endswith(("centroids", "centers")):
        return 0.05 * noise  # as small as the unit features whose residuals they take
    if name.endswith(".p"):
        return 3 + noise
    if name.endswith("dust_bin"):
        return 1 + 0.5 * noise
    if len(shape) > 1:
        rows = any(part in name for part in ("token", "pos_embed", "queries"))
        size = gain if len(shape) == 4 else 1.0
        return noise if rows else noise * size * math.sqrt(3 / math.prod(shape[1:]))
    return 1 + 0.2 * noise if name.endswith("weight") else 0.1 * noise


def known_weights(shapes: Mapping[str, tuple[int, ...]], gain: float = 1.0) -> dict[str, Tensor]:
    return {name: known_tensor(name, tuple(shape), gain) for name, shape in shapes.items()}


def known_photos(height: int, width: int, count: int = 2) -> Tensor:
    """Coloured noise at several scales, the photos unlike each other.  (B, 3, H, W) uint8."""
    generator = np.random.Generator(np.random.PCG64(height * 10_000 + width))
    coarse = torch.from_numpy(generator.random((count, 3, 7, 7), dtype=np.float32))
    fine = torch.from_numpy(generator.random((count, 3, height, width), dtype=np.float32))
    wide = coarse.repeat_interleave(-(-height // 7), dim=2).repeat_interleave(-(-width // 7), dim=3)
    return (170 * wide[..., :height, :width] + 85 * fine).to(torch.uint8)


def sample(descriptors: Tensor, count: int = 24) -> list[list[float]]:
    """Entries spread evenly over each descriptor: enough to tell any change."""
    picks = torch.linspace(0, descriptors.shape[1] - 1, count).long()
    return [[round(float(x), 7) for x in row] for row in descriptors[:, picks]]
