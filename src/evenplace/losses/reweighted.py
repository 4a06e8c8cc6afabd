"""Photos weighed by how hard or how rare they are: focal, class-balanced, hard places.

Same call as `classification`.
"""

# B batch · C places · y the true place · n photos per place · p probability

from functools import partial

import torch
from torch import Tensor

from evenplace.errors import SettingError

from .classification import weighted_mean
from .prior import Counts, PriorLoss, photographed, require_nonnegative
from .softmax import Columns, target_losses


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
    losses = target_losses(cosines, labels, scale=scale, columns=columns)
    return weighted_mean(losses, labels, hard_weights(difficulty, tau))


class Focal(PriorLoss):
    """`focal` with its settings; with counts, beta and kappa, its low-visit-bias form."""

    def __init__(
        self,
        counts: Counts | None = None,
        *,
        gamma: float = 2.0,
        scale: float = 30.0,
        beta: float = 0.0,
        kappa: float = 0.0,
        all_counts: Counts | None = None,
    ) -> None:
        super().__init__(counts, beta=beta, kappa=kappa, all_counts=all_counts)
        self.gamma, self.scale = gamma, scale

    def forward(self, cosines: Tensor, labels: Tensor, columns: Columns | None = None) -> Tensor:
        """Average the loss of (B, C) cosines at (B,) labels."""
        return self.weighed(
            focal, cosines, labels, gamma=self.gamma, scale=self.scale, columns=columns
        )


class ClassBalanced(PriorLoss):
    """`class_balanced` with its settings."""

    def __init__(
        self, counts: Counts, *, base: float = 0.9999, gamma: float = 0.0, scale: float = 30.0
    ) -> None:
        super().__init__(counts, prior=partial(effective_prior, base=base))
        self.base, self.gamma, self.scale = base, gamma, scale

    def forward(self, cosines: Tensor, labels: Tensor, columns: Columns | None = None) -> Tensor:
        """Average the loss of (B, C) cosines at (B,) labels."""
        return focal(
            cosines,
            labels,
            gamma=self.gamma,
            scale=self.scale,
            weights=self.weights,
            columns=columns,
        )


class HardClass(PriorLoss):
    """`hard_class`, which watches how hard each place is while it trains.

    In train mode each photo moves its place's difficulty a step of 1 - `memory` towards
    1 - p_y; all start at 1, which is plain cross-entropy.  The difficulties are in the
    state_dict.
    """

    difficulty: Tensor

    def __init__(
        self, counts: Counts, *, tau: float = 1.0, memory: float = 0.9, scale: float = 30.0
    ) -> None:
        super().__init__(counts)
        if not 0 <= memory < 1:
            raise SettingError(f"memory is {memory}; pass a number from 0 to below 1")
        self.tau, self.memory, self.scale = tau, memory, scale
        self.register_buffer("difficulty", torch.ones(len(photographed(counts))))

    def forward(self, cosines: Tensor, labels: Tensor, columns: Columns | None = None) -> Tensor:
        """Average the loss of (B, C) cosines at (B,) labels; in train mode, remember."""
        losses = target_losses(cosines, labels, scale=self.scale, columns=columns)
        weights = hard_weights(self.difficulty, self.tau)
        if self.training:
            self._remember(labels, -torch.expm1(-losses.detach()))
        return weighted_mean(losses, labels, weights)

    def _remember(self, labels: Tensor, missed: Tensor) -> None:
        """Move each place once by the mean of its photos, whatever their order in the batch."""
        places, row = torch.unique(labels, return_inverse=True)
        total = torch.zeros(len(places), dtype=missed.dtype, device=missed.device)
        mean = total.index_add(0, row, missed) / torch.bincount(row, minlength=len(places))
        kept = self.memory * self.difficulty[places]
        self.difficulty[places] = kept + (1 - self.memory) * mean.to(kept.dtype)


def effective_prior(
    counts: Counts, all_counts: Counts | None, base: float
) -> tuple[Tensor, Tensor]:
    """Weights by effective number, and no offsets: a prior for `PriorLoss`."""
    weights = effective_weights(counts, base)
    return weights, torch.zeros_like(weights)
