"""Generalised-mean pooling: between the average and the maximum, learnt.

    B batch · D channels · h, w cells of the feature map
"""

import torch
from torch import Tensor, nn


def generalised_mean(maps: Tensor, power: Tensor | float, eps: float = 1e-6) -> Tensor:
    """Pool each channel over the map.

        y = (mean_hw max(x, eps)^p)^(1/p)

    p = 1 is the average, p → ∞ the maximum.  maps: (B, D, h, w) -> (B, D).
    """
    return maps.clamp(min=eps).pow(power).mean(dim=(-2, -1)).pow(1.0 / power)


class GeM(nn.Module):
    """Generalised-mean pooling with a learnt power."""

    def __init__(self, power: float = 3.0) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.tensor([power]))

    def forward(self, maps: Tensor) -> Tensor:
        return generalised_mean(maps, self.p)
