"""A yes or no for every place: distribution-balanced loss, from which Eq. 3 is taken.

Same call as `classification`, but a sigmoid for each place where those have one softmax.
"""

# B batch · C places · S columns at hand · y the true place · n photos per place · p share

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .prior import LARGEST_SHARE, Counts, PriorLoss, photographed, shares
from .softmax import Columns, check_batch, sum_over_ranks


def distribution_balanced(
    cosines: Tensor,
    labels: Tensor,
    counts: Counts,
    *,
    scale: float = 30.0,
    lift: float = 0.1,
    slope: float = 10.0,
    centre: float = 0.2,
    tolerance: float = 2.0,
    kappa: float = 0.05,
    columns: Columns | None = None,
) -> Tensor:
    """Ask every place yes or no, and forgive rare ones their noes (Wu et al. 2020).

        L = mean_i 1/C sum_c r_ic { softplus(-(z_c + b_c))                        c = y
                                  { softplus(tolerance (z_c + b_c)) / tolerance   c != y
        z_c  = s cos_c,    r_ic = lift + sigmoid(slope (n_y / n_c - centre))
        b_c  = kappa log(p_c / (1 - p_c)) / tolerance

    Defaults as the authors' COCO-LT settings.  With one place per photo the original's
    P_c / P_I is n_y / n_c; its optional focal factor is left out.  tolerance * b is the paper's
    -nu (Eq. 3).
    """
    check_batch(cosines, labels, columns)
    wide = torch.float64 if cosines.dtype == torch.float64 else torch.float32
    photos = photographed(counts).to(cosines.device)
    p = shares(counts).clamp(max=LARGEST_SHARE).to(cosines.device)
    places = torch.arange(len(photos), device=labels.device) if columns is None else columns.places
    bias = kappa * torch.log(p / (1 - p)) / tolerance  # (C,)
    z = scale * cosines.to(wide) + bias[places].to(wide)  # (B, S)
    ratio = photos[labels, None] / photos[places]  # (B, S)
    r = lift + torch.sigmoid(slope * (ratio - centre)).to(wide)
    truth = labels[:, None] == places
    answers = torch.where(truth, F.softplus(-z), F.softplus(tolerance * z) / tolerance)
    if columns is not None and columns.bonus is not None:
        r = r * columns.bonus.exp().to(wide)
    losses = (r * answers).sum(dim=1)  # (B,)
    if columns is not None and columns.group is not None:
        losses = sum_over_ranks(losses, columns.group)
    return losses.sum() / max(len(losses), 1) / len(photos)


class DistributionBalanced(PriorLoss):
    """`distribution_balanced` with its settings."""

    def __init__(
        self,
        counts: Counts,
        *,
        scale: float = 30.0,
        lift: float = 0.1,
        slope: float = 10.0,
        centre: float = 0.2,
        tolerance: float = 2.0,
        kappa: float = 0.05,
    ) -> None:
        super().__init__(counts, kappa=kappa)
        self.scale, self.lift, self.slope = scale, lift, slope
        self.centre, self.tolerance = centre, tolerance

    def forward(self, cosines: Tensor, labels: Tensor, columns: Columns | None = None) -> Tensor:
        """Average the loss of (B, C) cosines at (B,) labels."""
        assert self.counts is not None
        return distribution_balanced(
            cosines,
            labels,
            self.counts,
            scale=self.scale,
            lift=self.lift,
            slope=self.slope,
            centre=self.centre,
            tolerance=self.tolerance,
            kappa=self.kappa,
            columns=columns,
        )

    def reach(self) -> dict[str, Any]:
        """A sigmoid has no other place to cancel with."""
        return {"gain": 1.0, "cancels": False, "margin": 0.0}
