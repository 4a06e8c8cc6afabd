"""Cluster centres of local features, for aggregators that start from data.

N points · D channels · K clusters
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from evenplace.errors import SettingError


def kmeans(points: Tensor, clusters: int, *, seed: int = 0, rounds: int = 100) -> Tensor:
    """Lloyd's algorithm from k-means++ seeds, stopped when no point moves.  (N, D) -> (K, D).

    A cluster that loses all its points takes the point farthest from its own centre.
    """
    if len(points) < clusters:
        raise SettingError(f"{len(points)} local features make no {clusters} clusters; use more")
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
