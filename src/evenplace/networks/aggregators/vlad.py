"""Residuals to clusters: NetVLAD (Arandjelović et al., 2016), and VLAD on frozen features as AnyLoc
has it (Keetha et al., 2023), where nothing is learnt by gradient.

B batch · N local features · D channels · K clusters
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenplace.errors import SettingError
from evenplace.networks.aggregators.base import Aggregator, local_features
from evenplace.networks.backbone import Features


def kmeans(points: Tensor, clusters: int, *, seed: int = 0, rounds: int = 100) -> Tensor:
    """Lloyd's algorithm from k-means++ seeds, stopped when no point moves.  (N, D) -> (K, D).

    A cluster that loses all its points takes the point farthest from its own centre.
    """
    if len(points) < clusters:
        raise SettingError(
            f"{len(points)} local features make no {clusters} clusters; use more photos"
        )
    generator = torch.Generator().manual_seed(seed)
    centres = _spread(points, clusters, generator)
    labels = torch.full((len(points),), -1, device=points.device)
    for _ in range(rounds):
        distances = torch.cdist(points, centres)  # (N, K)
        nearest, moved = distances.min(dim=1)
        if torch.equal(moved, labels):
            break
        labels = moved
        sums = torch.zeros_like(centres).index_add_(0, labels, points)
        counts = torch.bincount(labels, minlength=clusters)
        centres = sums / counts.clamp(min=1).unsqueeze(1)
        for empty in torch.where(counts == 0)[0].tolist():
            farthest = int(nearest.argmax())
            centres[empty], nearest[farthest] = points[farthest], 0
    return centres


def sharpness(points: Tensor, centres: Tensor) -> float:
    """The α at which the second-nearest cluster's softmax share is a hundredth of the nearest's.

    α = −log 0.01 / mean(s₁ − s₂), over cosines s to the centres, the way NetVLAD starts.
    """
    best = (F.normalize(points, dim=1) @ F.normalize(centres, dim=1).T).topk(2, dim=1).values
    return float(-torch.log(torch.tensor(0.01)) / (best[:, 0] - best[:, 1]).mean().clamp(min=1e-6))


def _spread(points: Tensor, clusters: int, generator: torch.Generator) -> Tensor:
    chosen = [int(torch.randint(len(points), (1,), generator=generator))]
    gaps = (points - points[chosen[0]]).square().sum(dim=1)
    while len(chosen) < clusters:
        weights = gaps if float(gaps.sum()) > 0 else torch.ones_like(gaps)
        chosen.append(int(torch.multinomial(weights.cpu(), 1, generator=generator)))
        gaps = torch.minimum(gaps, (points - points[chosen[-1]]).square().sum(dim=1))
    return points[chosen].clone()


def unit_residuals(x: Tensor, shares: Tensor, centres: Tensor) -> Tensor:
    """Sum the residuals to each cluster; each sum, then the whole, to unit length.

        V_k = Σ_n a_nk (x_n − c_k) = Σ_n a_nk x_n − (Σ_n a_nk) c_k

    The right-hand side never forms the N·K residuals.  x: (B, N, D), shares a: (B, N, K),
    centres: (K, D) -> (B, K D).
    """
    residuals = torch.einsum("bnk,bnd->bkd", shares, x) - shares.sum(dim=1).unsqueeze(2) * centres
    return F.normalize(F.normalize(residuals, dim=2).flatten(1), dim=1)


class NetVLAD(Aggregator):
    """Unit features shared among K clusters by the softmax of their scores, as residuals."""

    def __init__(self, channels: int, clusters: int = 64) -> None:
        super().__init__()
        self.dim = channels * clusters
        self.score = nn.Linear(channels, clusters, bias=False)
        self.centres = nn.Parameter(torch.rand(clusters, channels))

    def forward(self, features: Features) -> Tensor:
        x = F.normalize(local_features(features), dim=2)  # (B, N, D)
        return unit_residuals(x, self.score(x).softmax(dim=2), self.centres)

    @torch.no_grad()
    def fit(self, locals_: Tensor, seed: int = 0) -> None:
        """Centres by k-means, scores sharp enough to tell the nearest from the next."""
        x = F.normalize(locals_, dim=1)
        centres = kmeans(x, len(self.centres), seed=seed)
        self.centres.copy_(centres)
        self.score.weight.copy_(sharpness(x, centres) * F.normalize(centres, dim=1))


class VLAD(Aggregator):
    """Unit features, each with its residual to the centre it is nearest to in angle.

    The centres are the vocabulary: `fit` takes them from photos of the kind to be described.
    """

    centres: Tensor

    def __init__(self, channels: int, clusters: int = 32) -> None:
        super().__init__()
        self.dim = channels * clusters
        self.register_buffer("centres", F.normalize(torch.randn(clusters, channels), dim=1))

    def forward(self, features: Features) -> Tensor:
        x = F.normalize(local_features(features), dim=2)  # (B, N, D)
        nearest = (x @ F.normalize(self.centres, dim=1).T).argmax(dim=2)  # (B, N)
        return unit_residuals(x, F.one_hot(nearest, len(self.centres)).to(x.dtype), self.centres)

    @torch.no_grad()
    def fit(self, locals_: Tensor, seed: int = 0) -> None:
        """Take the centres from data."""
        self.centres.copy_(kmeans(F.normalize(locals_, dim=1), len(self.centres), seed=seed))
