"""Losses over all places made for a long tail: by weight, by margin, or a yes or no for each.

Same call as `classification`.
"""

# B batch · C places · S columns at hand · y the true place · n photos per place · p share

from typing import Any, ClassVar, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from evenplace.errors import SettingError

from .classification import CosineLoss, Softmax, cross_entropy, weighted_mean, with_margin
from .prior import LARGEST_SHARE, Counts, PriorLoss, photographed, require_nonnegative, shares
from .softmax import Columns, check_batch, sum_over_ranks, target_losses


def focal(
    cosines: Tensor,
    labels: Tensor,
    *,
    gamma: float = 2.0,
    scale: float = 30.0,
    weights: Tensor | None = None,
    offsets: Tensor | None = None,
    columns: Columns | None = None,
) -> Tensor:
    """Turn away from photos already recognised (Lin et al. 2017, softmax form).

        L = mean_i w_y (1 - p_y)^gamma (-log p_y)

    gamma = 0 is cross-entropy.
    """
    require_nonnegative("gamma", gamma)
    losses = target_losses(cosines, labels, scale=scale, offsets=offsets, columns=columns)
    if gamma:
        losses = (-torch.expm1(-losses)) ** gamma * losses
    return weighted_mean(losses, labels, weights)


def effective_weights(counts: Counts, base: float = 0.9999) -> Tensor:
    """Weigh places by the inverse of their effective number of photos (Cui et al. 2019).

        w_c ~ (1 - base) / (1 - base^n_c),    averaging to 1

    base = 0 weighs all alike; base -> 1 tends to 1 / n_c.  counts: (C,) -> (C,).
    """
    if not 0 <= base < 1:
        raise SettingError(f"base is {base}; pass a number from 0 to below 1, such as 0.9999")
    weights = (1 - base) / (1 - base ** photographed(counts))
    return (weights / weights.mean()).float()


def class_balanced(
    cosines: Tensor,
    labels: Tensor,
    counts: Counts,
    *,
    base: float = 0.9999,
    gamma: float = 0.0,
    scale: float = 30.0,
    columns: Columns | None = None,
) -> Tensor:
    """Weigh photos by their place's effective number (Cui et al. 2019).

    L = mean_i w_y (1 - p_y)^gamma (-log p_y),    w as `effective_weights`
    """
    weights = effective_weights(counts, base).to(cosines.device)
    return focal(cosines, labels, gamma=gamma, scale=scale, weights=weights, columns=columns)


def hard_weights(difficulty: Tensor, tau: float = 1.0) -> Tensor:
    """Weigh places by how badly they are recognised (Sinha et al. 2020).

        w_c ~ d_c^tau,    averaging to 1

    difficulty: (C,) in [0, 1], one minus the probability given to the right place.
    """
    require_nonnegative("tau", tau)
    weights = difficulty.clamp(min=1e-6) ** tau
    return weights / weights.mean()


def hard_class(
    cosines: Tensor,
    labels: Tensor,
    difficulty: Tensor,
    *,
    tau: float = 1.0,
    scale: float = 30.0,
    columns: Columns | None = None,
) -> Tensor:
    """Cross-entropy, weighed by how hard each place has been so far; tau = 0 is plain."""
    weights = hard_weights(difficulty, tau)
    return cross_entropy(cosines, labels, scale=scale, weights=weights, columns=columns)


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
    **softmax: Unpack[Softmax],
) -> Tensor:
    """Ask rare places to win by more cosine (LDAM, Cao et al. 2019).

        z_j = s (cos_j - m_y [j = y])

    margins: (C,) as `label_margins`; equal ones are `large_margin_cosine`.  `weights` are for
    its second phase, the deferred re-weighting.
    """

    def narrowed(cosine: Tensor) -> Tensor:
        return cosine - margins[labels].to(cosine.dtype)

    return with_margin(cosines, labels, scale, narrowed, **softmax)


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

    def narrowed(cosine: Tensor) -> Tensor:
        return cosine - rarity[labels].to(cosine.dtype) * (1 - cosine) / 2

    return with_margin(cosines, labels, scale, narrowed, columns=columns)


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
    wide = torch.promote_types(cosines.dtype, torch.float32)
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


class Focal(CosineLoss):
    """`focal` with its settings; with counts, beta and kappa, its low-visit-bias form."""

    formula = staticmethod(focal)


class ClassBalanced(CosineLoss):
    """`class_balanced` with its settings."""

    formula = staticmethod(focal)
    own: ClassVar[dict[str, Any]] = {"base": 0.9999, "gamma": 0.0}
    bias = ()
    needs_counts = True
    base: float

    def prior(self, counts: Counts, all_counts: Counts | None) -> tuple[Tensor, Tensor]:
        weights = effective_weights(counts, self.base)
        return weights, torch.zeros_like(weights)


class HardClass(PriorLoss):
    """`hard_class`, which watches how hard each place is while it trains.

    In train mode each photo moves its place's difficulty a step of 1 - `memory` towards
    1 - p_y; all start at 1, which is plain cross-entropy.  The difficulties are in the
    state_dict.
    """

    formula = staticmethod(hard_class)
    own: ClassVar[dict[str, Any]] = {"memory": 0.9}
    bias = ()
    needs_counts = True
    difficulty: Tensor
    memory: float
    scale: float
    tau: float

    def __init__(self, counts: Counts, **settings: Any) -> None:
        super().__init__(counts, **settings)
        self.register_buffer("difficulty", torch.ones(len(photographed(counts))))

    def check(self) -> None:
        if not 0 <= self.memory < 1:
            raise SettingError(f"memory is {self.memory}; pass a number from 0 to below 1")

    def forward(self, cosines: Tensor, labels: Tensor, columns: Columns | None = None) -> Tensor:
        """Average the loss of (B, C) cosines at (B,) labels; in train mode, remember."""
        losses = target_losses(cosines, labels, scale=self.scale, columns=columns)
        weights = hard_weights(self.difficulty, self.tau)
        if self.training:
            missed = -torch.expm1(-losses.detach())
            told = ~missed.isnan()  # a batch that overflowed in half precision is forgotten
            self._remember(labels[told], missed[told])
        return weighted_mean(losses, labels, weights)

    def _remember(self, labels: Tensor, missed: Tensor) -> None:
        """Move each place once by the mean of its photos, whatever their order in the batch."""
        places, row = torch.unique(labels, return_inverse=True)
        total = torch.zeros(len(places), dtype=missed.dtype, device=missed.device)
        mean = total.index_add(0, row, missed) / torch.bincount(row, minlength=len(places))
        kept = self.memory * self.difficulty[places]
        self.difficulty[places] = kept + (1 - self.memory) * mean.to(kept.dtype)


class LabelDistributionMargin(CosineLoss):
    """`label_distribution_margin` with deferred re-weighting (LDAM-DRW).

    Plain until `set_epoch(reweight_from)`, then weighed by effective number; `reweight_from`
    None never weighs.  The original begins at epoch 160 of 200.
    """

    formula = staticmethod(label_distribution_margin)
    own: ClassVar[dict[str, Any]] = {"max_margin": 0.5, "base": 0.9999, "reweight_from": 160}
    bias = ()
    needs_counts = True
    counts: Tensor
    max_margin: float
    base: float
    reweight_from: int | None
    prior = ClassBalanced.prior
    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Hear which epoch (from 0) begins, to know when to start weighing."""
        self.epoch = epoch

    def given(self) -> dict[str, Any]:
        late = self.reweight_from is not None and self.epoch >= self.reweight_from
        margins = label_margins(self.counts, self.max_margin)
        return {"margins": margins, "weights": self.weights if late else None}


class AdaptiveLogitAdjustment(CosineLoss):
    """`adaptive_logit_adjustment` with its settings."""

    formula = staticmethod(adaptive_logit_adjustment)
    bias = ()
    needs_counts = True
    counts: Tensor

    def given(self) -> dict[str, Any]:
        return {"rarity": rarities(self.counts)}


class DistributionBalanced(CosineLoss):
    """`distribution_balanced` with its settings."""

    formula = staticmethod(distribution_balanced)
    bias = ()
    needs_counts = True

    def given(self) -> dict[str, Any]:
        return {"counts": self.counts}

    def reach(self) -> dict[str, Any]:
        """A sigmoid has no other place to cancel with."""
        return {"gain": 1.0, "cancels": False, "margin": 0.0}
