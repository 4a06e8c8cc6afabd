"""Logits moved by the prior: logit adjustment and balanced softmax.

Same call as `classification`.  The originals use raw logits, scale 1; ours are cosines.
"""

# C places · n photos per place · p share of the photos · s scale

from functools import partial

import torch
from torch import Tensor

from .classification import cross_entropy
from .prior import Counts, PriorLoss, class_weights, photographed, require_nonnegative, shares
from .softmax import Columns


def adjust_logits(logits: Tensor, counts: Counts, tau: float = 1.0) -> Tensor:
    """Take the prior out of a plainly trained classifier's logits: z_c - tau log p_c.

    The post-hoc form of logit adjustment, for ranking places at inference: (B, C) -> (B, C).
    After training with `LogitAdjustment` or `LowVisitBias` it corrects a second time.
    """
    return logits + adjustments(counts, tau).to(logits)


def adjustments(counts: Counts, tau: float = 1.0) -> Tensor:
    """Give the offsets -tau log p_c of logit adjustment, (C,)."""
    require_nonnegative("tau", tau)
    return (-tau * torch.log(shares(counts))).float()


def logit_adjustment(
    cosines: Tensor,
    labels: Tensor,
    counts: Counts,
    *,
    tau: float = 1.0,
    scale: float = 30.0,
    columns: Columns | None = None,
) -> Tensor:
    """Add the prior while training, leave it out after (Menon et al. 2021).

        L = mean_i -log softmax(s cos + tau log p)_y

    Low-visit bias without margin, with beta = 0 and kappa = tau, but for log p in place of
    log p/(1-p).  tau = 0 is cross-entropy.
    """
    offsets = adjustments(counts, tau).to(cosines.device)
    return cross_entropy(cosines, labels, scale=scale, offsets=offsets, columns=columns)


def balanced_softmax(
    cosines: Tensor,
    labels: Tensor,
    counts: Counts,
    *,
    scale: float = 30.0,
    columns: Columns | None = None,
) -> Tensor:
    """Count each place as often as it was photographed (Ren et al. 2020).

        L = mean_i -log( n_y e^{s cos_y} / sum_j n_j e^{s cos_j} )

    Logit adjustment with tau = 1: they differ by a constant, which cancels.
    """
    offsets = -torch.log(photographed(counts)).float().to(cosines.device)
    return cross_entropy(cosines, labels, scale=scale, offsets=offsets, columns=columns)


class LogitAdjustment(PriorLoss):
    """`logit_adjustment` with its settings; `beta` adds the paper's weights."""

    def __init__(
        self, counts: Counts, *, tau: float = 1.0, scale: float = 30.0, beta: float = 0.0
    ) -> None:
        super().__init__(counts, beta=beta, prior=partial(_adjusted, tau=tau, beta=beta))
        self.tau, self.scale = tau, scale

    def forward(self, cosines: Tensor, labels: Tensor, columns: Columns | None = None) -> Tensor:
        """Average the loss of (B, C) cosines at (B,) labels."""
        return self.weighed(cross_entropy, cosines, labels, scale=self.scale, columns=columns)


class BalancedSoftmax(PriorLoss):
    """`balanced_softmax` with its settings; `beta` adds the paper's weights."""

    def __init__(self, counts: Counts, *, scale: float = 30.0, beta: float = 0.0) -> None:
        super().__init__(counts, beta=beta, prior=partial(_counted, beta=beta))
        self.scale = scale

    def forward(self, cosines: Tensor, labels: Tensor, columns: Columns | None = None) -> Tensor:
        """Average the loss of (B, C) cosines at (B,) labels."""
        return self.weighed(cross_entropy, cosines, labels, scale=self.scale, columns=columns)


def _adjusted(
    counts: Counts, all_counts: Counts | None, tau: float, beta: float
) -> tuple[Tensor, Tensor]:
    return class_weights(counts, beta, all_counts=all_counts), adjustments(counts, tau)


def _counted(counts: Counts, all_counts: Counts | None, beta: float) -> tuple[Tensor, Tensor]:
    weights = class_weights(counts, beta, all_counts=all_counts)
    return weights, -torch.log(photographed(counts)).float()
