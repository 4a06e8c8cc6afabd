"""Generalised-mean pooling: between the average and the maximum, learnt.

B batch · D channels · h, w cells of the feature map
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenplace.networks.aggregators.base import Aggregator
from evenplace.networks.backbone import Features


def generalised_mean(maps: Tensor, power: Tensor | float, eps: float = 1e-6) -> Tensor:
    """Pool each channel over the map.

        y = (mean_hw max(x, eps)^p)^(1/p)

    p = 1 is the average, p → ∞ the maximum.  maps: (B, D, h, w) -> (B, D).
    """
    return maps.clamp(min=eps).pow(power).mean(dim=(-2, -1)).pow(1.0 / power)


class GeM(Aggregator):
    """Generalised-mean pooling with a learnt power.

    normalise="after" gives a unit vector, as in Radenović et al.; "before" scales the features
    of each cell to unit length first and leaves the mean as it is, as in CosPlace.
    """

    def __init__(self, channels: int, power: float = 3.0, normalise: str = "after") -> None:
        super().__init__()
        self.dim, self.before = channels, normalise == "before"
        self.p = nn.Parameter(torch.tensor([power]))

    def forward(self, features: Features) -> Tensor:
        if self.before:
            return generalised_mean(F.normalize(features.maps, dim=1), self.p)
        return F.normalize(generalised_mean(features.maps, self.p), dim=1)


class Mean(Aggregator):
    """The plain average of the map: Divide&Classify's pooling."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.dim = channels

    def forward(self, features: Features) -> Tensor:
        return features.maps.mean(dim=(-2, -1))
