"""VLAD on frozen features: AnyLoc (Keetha et al., 2023).  Nothing here is learnt by gradient.

B batch · N local features · D channels · K clusters
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from evenplace.networks.aggregators.base import Aggregator, local_features
from evenplace.networks.aggregators.kmeans import kmeans
from evenplace.networks.features import Features


def hard_residuals(x: Tensor, centres: Tensor) -> Tensor:
    """Sum each feature's residual to the centre it is nearest to in angle.

        k(n) = argmax_k cos(x_n, c_k),    V_k = Σ_{n: k(n) = k} (x_n − c_k)

    x: (B, N, D), centres: (K, D) -> (B, K, D).
    """
    nearest = (x @ F.normalize(centres, dim=1).T).argmax(dim=2)  # (B, N)
    shares = F.one_hot(nearest, len(centres)).to(x.dtype)  # (B, N, K)
    return torch.einsum("bnk,bnd->bkd", shares, x) - shares.sum(dim=1).unsqueeze(2) * centres


class VLAD(Aggregator):
    """Unit features, hard residuals, each cluster and then the whole to unit length.

    The centres are the vocabulary: `fit` takes them from photos of the kind to be described.
    """

    centres: Tensor

    def __init__(self, channels: int, clusters: int = 32) -> None:
        super().__init__()
        self.dim = channels * clusters
        self.register_buffer("centres", F.normalize(torch.randn(clusters, channels), dim=1))

    def forward(self, features: Features) -> Tensor:
        x = F.normalize(local_features(features), dim=2)
        residuals = hard_residuals(x, self.centres)  # (B, K, D)
        return F.normalize(F.normalize(residuals, dim=2).flatten(1), dim=1)

    @torch.no_grad()
    def fit(self, locals_: Tensor, seed: int = 0) -> None:
        """Take the centres from data."""
        self.centres.copy_(kmeans(F.normalize(locals_, dim=1), len(self.centres), seed=seed))
