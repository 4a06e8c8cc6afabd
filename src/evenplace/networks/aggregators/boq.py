"""BoQ: learnt queries ask every photo the same questions (Ali-bey et al., 2024).

B batch · N cells of the map · D width · Q queries a block · R rows
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenplace.networks.aggregators.base import Aggregator, local_features
from evenplace.networks.backbone import Features

VARIANTS = {12288: (384, 32), 16384: (512, 32), 8192: (512, 16), 1024: (64, 16)}  # width, rows


class BoQ(Aggregator):
    """Two blocks encode the map further and let their queries read it; rows mix the answers.

    X₀ = LN(conv₃ₓ₃(maps)),   X_l = encoder_l(X_{l−1}),   A_l = LN(attend(q_l, X_l))
    descriptor = unit(W [A₁ ; A₂])      W mixes the 2Q answers into R rows
    """

    def __init__(
        self, channels: int, width: int = 384, rows: int = 32, queries: int = 64, depth: int = 2
    ) -> None:
        super().__init__()
        self.dim = width * rows
        self.reduce = nn.Conv2d(channels, width, 3, padding=1)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(_Block(width, queries) for _ in range(depth))
        self.mix = nn.Linear(depth * queries, rows)

    def forward(self, features: Features) -> Tensor:
        x = self.norm(local_features(Features(self.reduce(features.maps))))  # (B, N, D)
        answers = []
        for block in self.blocks:
            x, answer = block(x)
            answers.append(answer)
        rows = self.mix(torch.cat(answers, dim=1).transpose(1, 2))  # (B, D, R)
        return F.normalize(rows.flatten(1), dim=1)


class _Block(nn.Module):
    """Queries first talk among themselves, the same for every photo, then read the photo."""

    def __init__(self, width: int, queries: int) -> None:
        super().__init__()
        heads = max(1, width // 64)
        self.encoder = nn.TransformerEncoderLayer(
            width, heads, dim_feedforward=4 * width, dropout=0.0, batch_first=True
        )
        self.queries = nn.Parameter(torch.randn(1, queries, width))
        self.among = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm_queries = nn.LayerNorm(width)
        self.read = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm_answers = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.encoder(x)
        own = self.queries
        asked = self.norm_queries(own + self.among(own, own, own, need_weights=False)[0])
        asked = asked.expand(x.shape[0], -1, -1)  # (B, Q, D)
        answers = self.read(asked, x, x, need_weights=False)[0]
        return x, self.norm_answers(answers)
