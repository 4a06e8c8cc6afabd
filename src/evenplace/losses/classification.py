"""Losses over all places: which one was this photo taken at?  (Eq. 4-6, and their hosts)

Every loss takes cosines (B, C) between unit descriptors and unit prototypes and labels (B,),
applies scale and margin itself, and returns a float32 scalar (float64 for float64 cosines).
`weights` and `offsets`, both (C,), turn any of them into its low-visit-bias form.  `columns`
is for classifiers that sample or shard their places (`evenplace.losses.sampled`).
"""

# B batch · C places · y the true place · w weights · ν offsets · s scale · m margin

import math
from functools import partial

import torch
from torch import Tensor

from evenplace.errors import SettingError

from .prior import Counts, PriorLoss, class_weights, logit_offsets
from .softmax import Columns, Margin, target_losses


def cross_entropy(
    cosines: Tensor,
    labels: Tensor,
    *,
    scale: float = 30.0,
    weights: Tensor | None = None,
    offsets: Tensor | None = None,
    columns: Columns | None = None,
) -> Tensor:
    """Ask for the right place, without a margin.

        L = mean_i w_y -log softmax(s cos_i - nu)_y

    scale = 1 takes raw logits and is torch's `cross_entropy`; unlike torch's, the mean divides
    by B and not by the sum of weights, as Eq. 6 does.
    """
    losses = target_losses(cosines, labels, scale=scale, offsets=offsets, columns=columns)
    return weighted_mean(losses, labels, weights)


def large_margin_cosine(
    cosines: Tensor,
    labels: Tensor,
    *,
    scale: float = 30.0,
    margin: float = 0.4,
    weights: Tensor | None = None,
    offsets: Tensor | None = None,
    columns: Columns | None = None,
) -> Tensor:
    """Ask for the right place with cosine to spare (CosFace, Eq. 4-5; CosPlace's settings).

        z_j = s (cos_j - m [j = y])

    margin = 0 is `cross_entropy` at the same scale.
    """
    losses = target_losses(
        cosines,
        labels,
        scale=scale,
        offsets=offsets,
        margin=partial(_subtract, margin=margin),
        columns=columns,
    )
    return weighted_mean(losses, labels, weights)


def additive_angular_margin(
    cosines: Tensor,
    labels: Tensor,
    *,
    scale: float = 64.0,
    margin: float = 0.5,
    easy: bool = False,
    weights: Tensor | None = None,
    offsets: Tensor | None = None,
    columns: Columns | None = None,
) -> Tensor:
    """Ask for the right place with angle to spare (ArcFace; margin in radians).

        z_y = s cos(theta + m)               where theta + m <= pi
        z_y = s (cos theta - m sin m)        beyond, so that it keeps falling
        easy: z_y = s cos theta              where cos theta <= 0

    scale = 100, margin = 0.2, easy = True is Divide & Classify's AAMC; margin = 0 is
    `cross_entropy`.
    """
    losses = target_losses(
        cosines,
        labels,
        scale=scale,
        offsets=offsets,
        margin=angular(margin, easy),
        columns=columns,
    )
    return weighted_mean(losses, labels, weights)


def low_visit_bias(
    cosines: Tensor,
    labels: Tensor,
    counts: Counts,
    *,
    beta: float = 0.01,
    kappa: float = 0.05,
    scale: float = 30.0,
    margin: float = 0.4,
) -> Tensor:
    """Ask for the right place, and more firmly where few photos were taken (Eq. 6).

        L = mean_i -w_y log( e^{z_y - nu_y} / sum_j e^{z_j - nu_j} ),    z_j as CosFace

    counts: (C,) photos per place.  beta = kappa = 0 is `large_margin_cosine`, bit for bit.
    """
    return large_margin_cosine(
        cosines,
        labels,
        scale=scale,
        margin=margin,
        weights=class_weights(counts, beta).to(cosines.device),
        offsets=logit_offsets(counts, kappa).to(cosines.device),
    )


def weighted_mean(losses: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    """Average (B,) losses, each times the weight of its place; no photos give 0, not nan."""
    if weights is not None:
        losses = losses * weights[labels].to(losses.dtype)
    return losses.sum() / max(len(losses), 1)


def angular(margin: float, easy: bool = False) -> Margin:
    """Turn a margin in radians into a function of the true cosine."""
    if not 0 <= margin < math.pi:
        raise SettingError(f"an angular margin of {margin} makes no sense; pass 0 to 3.14 radians")
    return partial(_turn, margin=margin, easy=easy)


def _subtract(cosine: Tensor, margin: float) -> Tensor:
    return cosine - margin


def _turn(cosine: Tensor, margin: float, easy: bool) -> Tensor:
    if not margin:
        return cosine.clone()
    # The angle's slope is infinite at 0 and pi; a hair inside, it is large and finite.
    inside = cosine.clamp(-1 + 1e-7, 1 - 1e-7)
    turned = inside * math.cos(margin) - torch.sqrt(1 - inside**2) * math.sin(margin)
    if easy:
        return torch.where(cosine > 0, turned, cosine)
    straight = cosine - margin * math.sin(margin)
    return torch.where(cosine >= math.cos(math.pi - margin), turned, straight)


class CrossEntropy(PriorLoss):
    """`cross_entropy` with its settings; with counts, its low-visit-bias form."""

    def __init__(
        self,
        counts: Counts | None = None,
        *,
        scale: float = 30.0,
        beta: float = 0.0,
        kappa: float = 0.0,
        all_counts: Counts | None = None,
    ) -> None:
        super().__init__(counts, beta=beta, kappa=kappa, all_counts=all_counts)
        self.scale = scale

    def forward(self, cosines: Tensor, labels: Tensor, columns: Columns | None = None) -> Tensor:
        """Average the loss of (B, C) cosines at (B,) labels."""
        return self.weighed(cross_entropy, cosines, labels, scale=self.scale, columns=columns)


class LargeMarginCosine(PriorLoss):
    """`large_margin_cosine` with its settings (CosFace)."""

    def __init__(
        self,
        counts: Counts | None = None,
        *,
        scale: float = 30.0,
        margin: float = 0.4,
        beta: float = 0.0,
        kappa: float = 0.0,
        all_counts: Counts | None = None,
    ) -> None:
        super().__init__(counts, beta=beta, kappa=kappa, all_counts=all_counts)
        self.scale, self.margin = scale, margin

    def forward(self, cosines: Tensor, labels: Tensor, columns: Columns | None = None) -> Tensor:
        """Average the loss of (B, C) cosines at (B,) labels."""
        return self.weighed(
            large_margin_cosine,
            cosines,
            labels,
            scale=self.scale,
            margin=self.margin,
            columns=columns,
        )


class AngularMargin(PriorLoss):
    """`additive_angular_margin` with its settings (ArcFace; AAMC by `easy`)."""

    def __init__(
        self,
        counts: Counts | None = None,
        *,
        scale: float = 64.0,
        margin: float = 0.5,
        easy: bool = False,
        beta: float = 0.0,
        kappa: float = 0.0,
        all_counts: Counts | None = None,
    ) -> None:
        super().__init__(counts, beta=beta, kappa=kappa, all_counts=all_counts)
        self.scale, self.margin, self.easy = scale, margin, easy
        angular(margin, easy)

    def forward(self, cosines: Tensor, labels: Tensor, columns: Columns | None = None) -> Tensor:
        """Average the loss of (B, C) cosines at (B,) labels."""
        return self.weighed(
            additive_angular_margin,
            cosines,
            labels,
            scale=self.scale,
            margin=self.margin,
            easy=self.easy,
            columns=columns,
        )


easy_angular_margin = partial(AngularMargin, scale=100.0, margin=0.2, easy=True)  # AAMC


class LowVisitBias(LargeMarginCosine):
    """The paper's loss on cosines (Eq. 6): CosFace that knows how often places were visited.

    Settings are the paper's beta and kappa with CosPlace's scale and margin, which the paper
    leaves open.  `counts` are the places of this softmax (one group); `all_counts` takes the
    prior over the whole map instead.
    """

    def __init__(
        self,
        counts: Counts,
        beta: float = 0.01,
        kappa: float = 0.05,
        scale: float = 30.0,
        margin: float = 0.4,
        *,
        all_counts: Counts | None = None,
    ) -> None:
        super().__init__(
            counts, scale=scale, margin=margin, beta=beta, kappa=kappa, all_counts=all_counts
        )
