"""CricaVPR: fourteen views of a photo, compared with the other photos of the batch (Lu, 2024).

A descriptor depends on the photos described with it.  The authors use batches of 16 in the
order of the files; `batch` says so to whoever describes photos, and a batch of one is the only
one that repeats itself anywhere.

    B batch · D channels · h, w patches · V views: the whole, 4 quadrants, 9 ninths
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenplace.errors import SettingError
from evenplace.networks.aggregators.base import Aggregator
from evenplace.networks.aggregators.gem import generalised_mean
from evenplace.networks.backbone import Features

_HALVES = ((0, 8), (8, None))  # of the 16 x 16 patches of 224 pixels, the size it is trained at
_THIRDS = ((0, 5), (5, 11), (11, None))


class CricaVPR(Aggregator):
    """Each view pooled by GeM of unit features; one view of all photos is one sequence.

    z_v = GeM(unit(X_v)),   Z_v = encoder over the B photos,   descriptor = unit[Z_1 … Z_14]
    """

    batch = 16

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.dim = 14 * channels
        self.p = nn.Parameter(torch.tensor([3.0]))
        layer = nn.TransformerEncoderLayer(channels, 16, 2048, dropout=0.1, activation="gelu")
        self.across = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)

    def forward(self, features: Features) -> Tensor:
        maps = features.maps
        if min(maps.shape[2:]) <= _THIRDS[-1][0]:
            raise SettingError(
                f"{maps.shape[2]} x {maps.shape[3]} patches cannot be cut in CricaVPR's thirds; "
                "use image_size=224"
            )
        views = [features.class_token]
        for parts in (_HALVES, _THIRDS):
            for top, bottom in parts:
                regions = [F.normalize(maps[:, :, top:bottom, a:b], dim=1) for a, b in parts]
                views += [generalised_mean(region, self.p) for region in regions]
        seen = self.across(torch.stack(views, dim=1))  # (B, V, D), attention along B
        return F.normalize(seen.flatten(1), dim=1)
