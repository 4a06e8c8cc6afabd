"""Where training starts: at the frozen descriptor, with each place at its photos' mean.

A random projection throws away what ImageNet taught and a few epochs on a small city do not
bring it back; starting from the principal axes keeps it, and a prototype at the mean of its
photos is a nearest-mean classifier before the first step.
"""

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from evenplace.models.network import PlaceNetwork
from evenplace.training.cache import TrunkCache

_CHUNK = 256
_ENOUGH_FOR_PCA = 20_000


@torch.no_grad()
def start_from_frozen(
    network: PlaceNetwork, cache: TrunkCache, rows: NDArray[np.int64], labels: NDArray[np.int64]
) -> None:
    """Set projection and prototypes from the photos.  rows, labels: (N,) photos with a place."""
    network.eval()
    pooled = torch.cat(
        [network.pooled(cache.plain(rows[i : i + _CHUNK])) for i in range(0, len(rows), _CHUNK)]
    )  # (N, channels)
    step = max(1, len(pooled) // _ENOUGH_FOR_PCA)
    network.project_onto_principal_axes(pooled[::step])
    descriptors = F.normalize(network.projection(pooled), dim=1)
    network.classifiers.set_prototypes(
        place_means(descriptors, torch.from_numpy(labels), network.place_count)
    )


def place_means(descriptors: Tensor, labels: Tensor, places: int) -> Tensor:
    """Sum of each place's unit descriptors; only its direction is used.  -> (C, D)."""
    sums = torch.zeros(places, descriptors.shape[1], dtype=descriptors.dtype)
    return sums.index_add_(0, labels, descriptors)
