"""Clusters, vocabularies and tokens that start from photos rather than from noise.

N local features · D channels
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from evenplace.describe.decoding import load_batches
from evenplace.describe.devices import carry
from evenplace.errors import PhotoError
from evenplace.networks.aggregators.base import local_features
from evenplace.networks.network import PlaceNetwork


@torch.no_grad()
def fit_aggregator(
    network: PlaceNetwork, paths: Sequence[str], *, per_photo: int = 100, seed: int = 0
) -> None:
    """Start NetVLAD's clusters, AnyLoc's vocabulary or ImAge's tokens from these photos.

    Draws `per_photo` local features of each; the others have nothing to start and stay as they
    are.  AnyLoc must be fitted, or given its published vocabulary, before it means anything.
    """
    network.eval()
    generator = torch.Generator().manual_seed(seed)
    drawn: list[Tensor] = []
    for batch in load_batches(paths, network.image_size):
        if batch.rows:
            maps = network.backbone.trunk(carry(torch.from_numpy(batch.pixels), network.anchor))
            for photo in local_features(network.backbone.features(maps)):  # (h·w, D)
                chosen = torch.randperm(len(photo), generator=generator)[:per_photo]
                drawn.append(photo[chosen].cpu())
    if not drawn:
        raise PhotoError(f"none of the {len(paths)} photos could be decoded; check the paths")
    network.aggregator.fit(torch.cat(drawn), seed=seed)
