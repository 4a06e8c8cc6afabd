"""Margins that depend on the place: LDAM, and adaptive logit adjustment.

Same call as `classification`.
"""

# B batch · C places · y the true place · n photos per place · s scale

from functools import partial

import torch
from torch import Tensor

from .classification import weighted_mean
from .prior import Counts, PriorLoss, photographed
from .reweighted import effective_prior
from .softmax import Columns, target_losses


def label_margins(counts: Counts, max_margin: float = 0.5) -> Tensor:
    """Give the rarer place the wider margin: m_c = max_margin (n_min / n_c)^(1/4), (C,)."""
    photos = photographed(counts)
    return (max_margin * (photos.min() / photos) ** 0.25).float()


def label_distribution_margin(
    cosines: Tensor,
    labels: Tensor,
    margins: Tensor,
    *,
    scale: float = 30.0,
    weights: Tensor | None = None,
    columns: Columns | None = None,
) -> Tensor:
    """Ask rare places to win by more cosine (LDAM, Cao et al. 2019).

        z_j = s (cos_j - m_y [j = y])

    margins: (C,) as `label_margins`; equal ones are `large_margin_cosine`.  `weights` are for
    its second phase, the deferred re-weighting.
    """
    losses = target_losses(
        cosines,
        labels,
        scale=scale,
        margin=lambda cosine: cosine - margins[labels].to(cosine.dtype),
        columns=columns,
    )
    return weighted_mean(losses, labels, weights)


def rarities(counts: Counts) -> Tensor:
    """Say how rare each place is, 1 / log(n_c / n_min + 1): 1.44 for the rarest, (C,)."""
    photos = photographed(counts)
    return (1 / torch.log(photos / photos.min() + 1)).float()


def adaptive_logit_adjustment(
    cosines: Tensor,
    labels: Tensor,
    rarity: Tensor,
    *,
    scale: float = 30.0,
    columns: Columns | None = None,
) -> Tensor:
    """Ask more of photos that are hard and of places that are rare (ALA, Zhao et al. 2022).

        z_y = s (cos_y - rarity_y (1 - cos_y) / 2)

    The "hard classes" of the paper's related work.  rarity: (C,) as `rarities`; 0 is
    cross-entropy.
    """
    losses = target_losses(
        cosines,
        labels,
        scale=scale,
        margin=lambda cosine: cosine - rarity[labels].to(cosine.dtype) * (1 - cosine) / 2,
        columns=columns,
    )
    return weighted_mean(losses, labels, None)


class LabelDistributionMargin(PriorLoss):
    """`label_distribution_margin` with deferred re-weighting (LDAM-DRW).

    Plain until `set_epoch(reweight_from)`, then weighed by effective number; `reweight_from`
    None never weighs.  The original begins at epoch 160 of 200.
    """

    def __init__(
        self,
        counts: Counts,
        *,
        max_margin: float = 0.5,
        scale: float = 30.0,
        base: float = 0.9999,
        reweight_from: int | None = 160,
    ) -> None:
        super().__init__(counts, prior=partial(effective_prior, base=base))
        self.max_margin, self.scale = max_margin, scale
        self.reweight_from, self.epoch = reweight_from, 0

    def set_epoch(self, epoch: int) -> None:
        """Hear which epoch (from 0) begins, to know when to start weighing."""
        self.epoch = epoch

    def forward(self, cosines: Tensor, labels: Tensor, columns: Columns | None = None) -> Tensor:
        """Average the loss of (B, C) cosines at (B,) labels."""
        assert self.counts is not None
        late = self.reweight_from is not None and self.epoch >= self.reweight_from
        return label_distribution_margin(
            cosines,
            labels,
            label_margins(self.counts, self.max_margin),
            scale=self.scale,
            weights=self.weights if late else None,
            columns=columns,
        )


class AdaptiveLogitAdjustment(PriorLoss):
    """`adaptive_logit_adjustment` with its settings."""

    def __init__(self, counts: Counts, *, scale: float = 30.0) -> None:
        super().__init__(counts)
        self.scale = scale

    def forward(self, cosines: Tensor, labels: Tensor, columns: Columns | None = None) -> Tensor:
        """Average the loss of (B, C) cosines at (B,) labels."""
        assert self.counts is not None
        return adaptive_logit_adjustment(
            cosines, labels, rarities(self.counts), scale=self.scale, columns=columns
        )
