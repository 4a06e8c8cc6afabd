"""Clusters, vocabularies and tokens that start from photos rather than from noise.

N local features · D channels
"""

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from evenplace.describe.decoding import load_batches
from evenplace.describe.devices import carry
from evenplace.errors import PhotoError
from evenplace.networks.aggregators.base import local_features
from evenplace.networks.network import PlaceNetwork


def fit_aggregator(
    network: PlaceNetwork, paths: Sequence[str], *, per_photo: int = 100, seed: int = 0
) -> None:
    """Start NetVLAD's clusters, AnyLoc's vocabulary or ImAge's tokens from these photos.

    The others have nothing to start and stay as they are.  AnyLoc must be fitted, or given its
    published vocabulary, before it means anything.
    """
    if not fit_on_maps(network, _maps(network, paths), per_photo=per_photo, seed=seed):
        raise PhotoError(f"none of the {len(paths)} photos could be decoded; check the paths")


@torch.no_grad()
def fit_on_maps(
    network: PlaceNetwork, trunk: Iterable[Tensor], *, per_photo: int = 100, seed: int = 0
) -> int:
    """The same from the trunk's output; draws `per_photo` local features of each photo.

    Returns how many photos there were.
    """
    network.eval()
    generator = torch.Generator().manual_seed(seed)
    drawn: list[Tensor] = []
    for maps in trunk:
        for photo in local_features(network.backbone.features(maps)):  # (h·w, D)
            chosen = torch.randperm(len(photo), generator=generator)[:per_photo]
            drawn.append(photo[chosen].cpu())
    if drawn:
        network.aggregator.fit(torch.cat(drawn), seed=seed)
    return len(drawn)


def _maps(network: PlaceNetwork, paths: Sequence[str]) -> Iterator[Tensor]:
    for batch in load_batches(paths, network.image_size):
        if batch.rows:
            yield network.backbone.trunk(carry(torch.from_numpy(batch.pixels), network.anchor))
