"""ImAge: no aggregator at all, but tokens that gather the place inside the backbone (Lu, 2025).

B batch · Q aggregation tokens · D channels
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenplace.errors import SettingError
from evenplace.networks.aggregators.base import Aggregator, local_features
from evenplace.networks.aggregators.vlad import kmeans, sharpness
from evenplace.networks.backbone import Features


class ImAge(Aggregator):
    """Q learnt tokens join the photo's own at the cut; after the last block they are the answer.

        [P ; X] → trained blocks → norm → descriptor = unit[P'_1 … P'_Q]

    The tokens join where the frozen trunk ends: before block 8 of 12 as published.  depth: blocks
    of its own, for a convolutional network, which has none that tokens could join.
    """

    def __init__(self, channels: int, tokens: int = 8, depth: int = 0) -> None:
        super().__init__()
        self.dim = channels * tokens
        self.tokens = nn.Parameter(torch.randn(1, tokens, channels) * 1e-6)
        self.blocks = nn.Sequential(*(_block(channels) for _ in range(depth)))

    def prompts(self) -> Tensor | None:
        return None if len(self.blocks) else self.tokens

    def forward(self, features: Features) -> Tensor:
        tokens = self._joined(features) if len(self.blocks) else features.prompts
        if tokens is None:
            raise SettingError("ImAge's tokens did not pass the backbone; call network.describe")
        return F.normalize(tokens.flatten(1), dim=1)

    def _joined(self, features: Features) -> Tensor:
        own = self.tokens.expand(features.maps.shape[0], -1, -1)
        everyone: Tensor = self.blocks(torch.cat([own, local_features(features)], dim=1))
        return everyone[:, : own.shape[1]]  # (B, Q, D)

    @torch.no_grad()
    def fit(self, locals_: Tensor, seed: int = 0) -> None:
        """Start the tokens at the centres of unit patch features, as sharp as NetVLAD's."""
        x = F.normalize(locals_, dim=1)
        centres = kmeans(x, self.tokens.shape[1], seed=seed)
        self.tokens.copy_(sharpness(x, centres) * F.normalize(centres, dim=1).unsqueeze(0))


def _block(channels: int) -> nn.Module:
    return nn.TransformerEncoderLayer(
        channels,
        max(1, channels // 56),
        dim_feedforward=2 * channels,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=True,
    )
