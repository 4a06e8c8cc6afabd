"""NetVLAD: soft assignment to clusters, and the residuals to each (Arandjelović et al., 2016).

B batch · N local features · D channels · K clusters
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenplace.networks.aggregators.base import Aggregator, local_features
from evenplace.networks.aggregators.kmeans import kmeans, sharpness
from evenplace.networks.features import Features


def soft_residuals(x: Tensor, scores: Tensor, centres: Tensor) -> Tensor:
    """Sum the residuals to each cluster, weighted by the softmax of the scores.

        a_nk = softmax_k(s_nk),    V_k = Σ_n a_nk (x_n − c_k) = Σ_n a_nk x_n − (Σ_n a_nk) c_k

    The right-hand side never forms the N·K residuals.  x: (B, N, D), scores: (B, N, K),
    centres: (K, D) -> (B, K, D).
    """
    shares = scores.softmax(dim=2)
    return torch.einsum("bnk,bnd->bkd", shares, x) - shares.sum(dim=1).unsqueeze(2) * centres


class NetVLAD(Aggregator):
    """Unit features to K clusters; each cluster's residual, then the whole, to unit length."""

    def __init__(self, channels: int, clusters: int = 64) -> None:
        super().__init__()
        self.dim = channels * clusters
        self.score = nn.Linear(channels, clusters, bias=False)
        self.centres = nn.Parameter(torch.rand(clusters, channels))

    def forward(self, features: Features) -> Tensor:
        x = F.normalize(local_features(features), dim=2)  # (B, N, D)
        residuals = soft_residuals(x, self.score(x), self.centres)  # (B, K, D)
        return F.normalize(F.normalize(residuals, dim=2).flatten(1), dim=1)

    @torch.no_grad()
    def fit(self, locals_: Tensor, seed: int = 0) -> None:
        """Centres by k-means, scores sharp enough to tell the nearest from the next."""
        x = F.normalize(locals_, dim=1)
        centres = kmeans(x, len(self.centres), seed=seed)
        self.centres.copy_(centres)
        self.score.weight.copy_(sharpness(x, centres) * F.normalize(centres, dim=1))
