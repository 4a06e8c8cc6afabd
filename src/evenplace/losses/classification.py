"""Losses over all places: which one was this photo taken at?  (Eq. 4-6, and their hosts)

Every loss takes cosines (B, C) between unit descriptors and unit prototypes and labels (B,),
applies scale and margin itself, and returns a float32 scalar (float64 for float64 cosines).
`weights` and `offsets`, both (C,), turn any of them into its low-visit-bias form.  `columns`
is for classifiers that sample or shard their places (`evenplace.losses.sampled`).
"""

# B batch · C places · y the true place · w weights · ν offsets · s scale · m margin
# n photos per place · p share of the photos

import math
from functools import partial
from typing import Any, ClassVar, TypedDict, Unpack

import torch
from torch import Tensor

from evenplace.errors import SettingError

from .prior import (
    Counts,
    PriorLoss,
    class_weights,
    logit_offsets,
    photographed,
    require_nonnegative,
    shares,
)
from .softmax import Columns, Margin, target_losses


class Softmax(TypedDict, total=False):
    """What every softmax takes: (C,) weights and offsets, and which places its columns are."""

    weights: Tensor | None
    offsets: Tensor | None
    columns: Columns | None


def cross_entropy(
    cosines: Tensor, labels: Tensor, *, scale: float = 30.0, **softmax: Unpack[Softmax]
) -> Tensor:
    """Ask for the right place, without a margin.

        L = mean_i w_y -log softmax(s cos_i - nu)_y

    scale = 1 takes raw logits and is torch's `cross_entropy`; unlike torch's, the mean divides
    by B and not by the sum of weights, as Eq. 6 does.
    """
    return with_margin(cosines, labels, scale, None, **softmax)


def large_margin_cosine(
    cosines: Tensor,
    labels: Tensor,
    *,
    scale: float = 30.0,
    margin: float = 0.4,
    **softmax: Unpack[Softmax],
) -> Tensor:
    """Ask for the right place with cosine to spare (CosFace, Eq. 4-5; CosPlace's settings).

        z_j = s (cos_j - m [j = y])

    margin = 0 is `cross_entropy` at the same scale.
    """
    return with_margin(cosines, labels, scale, lambda cosine: cosine - margin, **softmax)


def additive_angular_margin(
    cosines: Tensor,
    labels: Tensor,
    *,
    scale: float = 64.0,
    margin: float = 0.5,
    easy: bool = False,
    **softmax: Unpack[Softmax],
) -> Tensor:
    """Ask for the right place with angle to spare (ArcFace; margin in radians).

        z_y = s cos(theta + m)               where theta + m <= pi
        z_y = s (cos theta - m sin m)        beyond, so that it keeps falling
        easy: z_y = s cos theta              where cos theta <= 0

    scale = 100, margin = 0.2, easy = True is Divide & Classify's AAMC; margin = 0 is
    `cross_entropy`.
    """
    return with_margin(cosines, labels, scale, angular(margin, easy), **softmax)


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


def with_margin(
    cosines: Tensor,
    labels: Tensor,
    scale: float,
    margin: Margin | None,
    *,
    weights: Tensor | None = None,
    offsets: Tensor | None = None,
    columns: Columns | None = None,
) -> Tensor:
    """Average one softmax's losses; the margin moves the cosine of the true place first."""
    losses = target_losses(
        cosines, labels, scale=scale, offsets=offsets, margin=margin, columns=columns
    )
    return weighted_mean(losses, labels, weights)


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


class CosineLoss(PriorLoss):
    """A formula over all places, with its settings."""

    def forward(self, cosines: Tensor, labels: Tensor, columns: Columns | None = None) -> Tensor:
        """Average the loss of (B, C) cosines at (B,) labels."""
        return self.compute(cosines, labels, columns=columns)


class CrossEntropy(CosineLoss):
    """`cross_entropy` with its settings; with counts, beta and kappa, its low-visit-bias form."""

    formula = staticmethod(cross_entropy)


class LargeMarginCosine(CosineLoss):
    """`large_margin_cosine` with its settings (CosFace)."""

    formula = staticmethod(large_margin_cosine)


class AngularMargin(CosineLoss):
    """`additive_angular_margin` with its settings (ArcFace; AAMC by `easy`)."""

    formula = staticmethod(additive_angular_margin)
    margin: float

    def check(self) -> None:
        angular(self.margin)


easy_angular_margin = partial(AngularMargin, scale=100.0, margin=0.2, easy=True)  # AAMC


class LowVisitBias(LargeMarginCosine):
    """The paper's loss on cosines (Eq. 6): CosFace that knows how often places were visited.

    Settings are the paper's beta and kappa with CosPlace's scale and margin, which the paper
    leaves open.  `counts` are the places of this softmax (one group); `all_counts` takes the
    prior over the whole map instead.
    """

    needs_counts = True

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
            counts, all_counts=all_counts, beta=beta, kappa=kappa, scale=scale, margin=margin
        )


class LogitAdjustment(CosineLoss):
    """`logit_adjustment` with its settings; `beta` adds the paper's weights."""

    formula = staticmethod(cross_entropy)
    own: ClassVar[dict[str, Any]] = {"tau": 1.0}
    bias = ("beta",)
    needs_counts = True
    tau: float

    def prior(self, counts: Counts, all_counts: Counts | None) -> tuple[Tensor, Tensor]:
        return class_weights(counts, self.beta), adjustments(counts, self.tau)


class BalancedSoftmax(CosineLoss):
    """`balanced_softmax` with its settings; `beta` adds the paper's weights."""

    formula = staticmethod(cross_entropy)
    bias = ("beta",)
    needs_counts = True

    def prior(self, counts: Counts, all_counts: Counts | None) -> tuple[Tensor, Tensor]:
        return class_weights(counts, self.beta), -torch.log(photographed(counts)).float()
