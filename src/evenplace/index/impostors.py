"""How often a database photo looks like somewhere else: the price of being everybody's neighbour.

N photos · D descriptor
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_BLOCK = 2048


def impostor_similarity(
    descriptors: NDArray[np.float32],
    positions: NDArray[np.float64],
    *,
    neighbours: int = 10,
    apart: float = 50.0,
) -> NDArray[np.float32]:
    """Mean cosine of each photo to its nearest look-alikes more than `apart` metres away.

        r_i = mean of the `neighbours` largest <z_i, z_j> with |p_i - p_j| > apart

    A photo with fewer such photos averages those it has; with none, r = 0.  Photos nearby are
    left out because they show the same place: counting them would punish well-covered streets.
    descriptors: (N, D) unit, positions: (N, 2) metres -> (N,).
    """
    vectors, spots = torch.from_numpy(descriptors), torch.from_numpy(positions)
    blocks = range(0, len(vectors), _BLOCK)
    parts = [_block(vectors, spots, slice(b, b + _BLOCK), neighbours, apart) for b in blocks]
    return torch.cat(parts).numpy() if parts else np.empty(0, np.float32)


def _block(vectors: Tensor, spots: Tensor, rows: slice, neighbours: int, apart: float) -> Tensor:
    cosines = vectors[rows] @ vectors.T  # (block, N)
    cosines.masked_fill_(torch.cdist(spots[rows], spots) <= apart, -torch.inf)
    best = cosines.topk(min(neighbours, len(vectors)), dim=1).values
    found = best.isfinite()
    return best.where(found, 0.0).sum(dim=1) / found.sum(dim=1).clamp(min=1)
