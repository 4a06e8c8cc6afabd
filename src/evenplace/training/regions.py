"""A photo as nine photos: the whole, its halves and its quarters, for SFRS (Ge et al., 2020).

B batch · R regions · D descriptor · h, w cells of the feature map
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from evenplace.networks.features import Features
from evenplace.networks.network import PlaceNetwork

REGIONS = 9


def describe_regions(network: PlaceNetwork, maps: Tensor) -> Tensor:
    """Unit descriptors of the whole map, its four halves and its four quarters.  -> (B, R, D)."""
    whole = network.backbone.features(maps, network.aggregator.prompts()).maps
    pooled = [network.aggregator(Features(part)) for part in cut_regions(whole)]
    return torch.stack([F.normalize(network.projection(one), dim=1) for one in pooled], dim=1)


def cut_regions(maps: Tensor) -> list[Tensor]:
    """The whole first; a map with an odd side gives its middle row to both halves."""
    height, width = maps.shape[2:]
    top, bottom = slice(0, (height + 1) // 2), slice(height // 2, height)
    left, right = slice(0, (width + 1) // 2), slice(width // 2, width)
    every = slice(None)
    cuts = [(every, every), (top, every), (bottom, every), (every, left), (every, right)]
    cuts += [(row, column) for row in (top, bottom) for column in (left, right)]
    return [maps[:, :, row, column] for row, column in cuts]
