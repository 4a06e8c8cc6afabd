"""MixVPR: networks that mix the whole map, not its neighbourhoods (Ali-bey et al., 2023).

B batch · D channels · N cells of the map · C, R channels and rows of the descriptor
"""

import torch.nn.functional as F
from torch import Tensor, nn

from evenplace.errors import SettingError
from evenplace.networks.aggregators.base import Aggregator
from evenplace.networks.backbone import Features

VARIANTS = {4096: (1024, 4), 512: (256, 2), 128: (64, 2)}  # descriptor: channels, rows


class MixVPR(Aggregator):
    """Four mixers over the N cells of each channel, then fewer channels and a few rows.

        X ← X + W₂ relu(W₁ LN(X))   four times, along the cells
        Y = W_r (W_c X),   then flattened to C·R numbers of unit length

    The weights know every cell of the map, so a network serves the one input size it was
    built for.
    """

    def __init__(
        self, channels: int, cells: int, width: int = 1024, rows: int = 4, depth: int = 4
    ) -> None:
        super().__init__()
        self.dim, self.cells = width * rows, cells
        self.mixers = nn.ModuleList(_Mixer(cells) for _ in range(depth))
        self.channels = nn.Linear(channels, width)
        self.rows = nn.Linear(cells, rows)

    def forward(self, features: Features) -> Tensor:
        x = features.maps.flatten(2)  # (B, D, N)
        if x.shape[2] != self.cells:
            raise SettingError(
                f"this MixVPR was built for {self.cells} cells and got {x.shape[2]}; "
                "build it with the image_size you use"
            )
        for mixer in self.mixers:
            x = x + mixer(x)
        x = self.channels(x.transpose(1, 2)).transpose(1, 2)  # (B, C, N)
        return F.normalize(self.rows(x).flatten(1), dim=1)


class _Mixer(nn.Sequential):
    def __init__(self, cells: int) -> None:
        super().__init__()
        self.norm, self.first = nn.LayerNorm(cells), nn.Linear(cells, cells)
        self.act, self.second = nn.ReLU(), nn.Linear(cells, cells)
