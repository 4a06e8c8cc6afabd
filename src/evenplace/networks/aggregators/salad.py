"""SALAD: optimal transport of patches to clusters (Izquierdo and Civera, 2024), and MegaLoc's.

B batch · N patches · D channels · K clusters · L channels a cluster
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenplace.errors import SettingError
from evenplace.networks.aggregators.base import Aggregator
from evenplace.networks.backbone import Features

VARIANTS = {8448: (64, 128, 256), 2112: (32, 64, 64), 544: (16, 32, 32)}  # K, L, token
_ROUNDS = 3


def transport(scores: Tensor, dustbin: Tensor, rounds: int = _ROUNDS) -> Tensor:
    """Share every patch among the clusters and a bin for what tells nothing of the place.

    Sinkhorn's iterations in log space on the scores with the bin as a further row:

        log u = log a − logsumexp_n(S + log v),   log v = log b − logsumexp_k(S + log u)
        P = exp(S + log u + log v),   a = (1, …, 1, N − K),   b = (1, …, 1)

    Each cluster receives one patch's worth, the bin the rest, so there must be more patches than
    clusters.  scores: (B, K, N) -> (B, K, N), without the bin.
    """
    batch, clusters, patches = scores.shape
    if patches <= clusters:
        raise SettingError(
            f"{patches} patches cannot fill {clusters} clusters and a dustbin; "
            f"use photos of at least {math.isqrt(clusters) + 1} patches a side"
        )
    bins = dustbin.to(scores.dtype).expand(batch, 1, patches)
    padded = torch.cat([scores, bins], dim=1).float()  # (B, K+1, N)
    mass = F.pad(padded.new_zeros(clusters), (0, 1), value=math.log(patches - clusters))
    log_v = padded.new_zeros(batch, 1, patches)
    for _ in range(rounds):
        log_u = mass.unsqueeze(1) - torch.logsumexp(padded + log_v, dim=2, keepdim=True)
        log_v = -torch.logsumexp(padded + log_u, dim=1, keepdim=True)
    return (padded + log_u + log_v)[:, :clusters].exp().to(scores.dtype)


class SALAD(Aggregator):
    """Cluster features weighted by transport, beside a projection of the class token.

    V_k = Σ_n P_kn f(x_n),    descriptor = unit[ unit(g(class token)), unit(V_1), …, unit(V_K) ]
    """

    def __init__(
        self, channels: int, clusters: int = 64, width: int = 128, token: int = 256
    ) -> None:
        super().__init__()
        self.dim = token + clusters * width
        self.token = nn.Sequential(nn.Linear(channels, 512), nn.ReLU(), nn.Linear(512, token))
        self.local = _pointwise(channels, width)
        self.score = _pointwise(channels, clusters)
        self.dustbin = nn.Parameter(torch.tensor(1.0))

    def forward(self, features: Features) -> Tensor:
        shares = transport(self.score(features.maps).flatten(2), self.dustbin)  # (B, K, N)
        local = self.local(features.maps).flatten(2)  # (B, L, N)
        clusters = F.normalize(torch.einsum("bln,bkn->blk", local, shares), dim=1)
        token = F.normalize(self.token(features.class_token), dim=1)
        return F.normalize(torch.cat([token, clusters.flatten(1)], dim=1), dim=1)


def _pointwise(channels: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, 512, 1), nn.Dropout(0.3), nn.ReLU(), nn.Conv2d(512, outputs, 1)
    )
