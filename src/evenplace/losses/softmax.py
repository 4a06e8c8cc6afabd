"""One softmax for every classification loss: scale, margin, offsets, then -log p of the truth.

The cosines are read once and the probabilities written once, forward and backward together
touch three (B, C) arrays where ``cross_entropy(scale * cosines - offsets)`` touches six.
Knows nothing of weights: the caller multiplies the (B,) losses it gets back.
"""

# B batch · C places · S columns at hand (all C, a sample of them, or one rank's shard)

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from evenplace.errors import SettingError

Margin = Callable[[Tensor], Tensor]

# -log p is exact above this; below it float32 runs out of range and logsumexp takes over.
FAINTEST = 1e-30


@dataclass(frozen=True)
class Columns:
    """Which places the columns of a cosine matrix stand for, when not simply all of them.

    `places`: (S,) ascending place numbers.  `bonus`: (S,) added to the logits, so that a
    sampled column can speak for those left out.  `group`: the ranks among which the columns
    are dealt; a label may then belong to another rank.
    """

    places: Tensor
    bonus: Tensor | None = None
    group: "dist.ProcessGroup | None" = None

    def find(self, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Find each label's column: (B,) positions, (B,) whether it is here."""
        if not len(self.places):
            return torch.zeros_like(labels), torch.zeros_like(labels, dtype=torch.bool)
        where = torch.searchsorted(self.places, labels).clamp(max=len(self.places) - 1)  # (B,)
        return where, self.places[where] == labels


def target_losses(
    cosines: Tensor,
    labels: Tensor,
    *,
    scale: float,
    offsets: Tensor | None = None,
    margin: Margin | None = None,
    columns: Columns | None = None,
) -> Tensor:
    """Take -log of the softmax at the true place, for each photo.

        loss_i = -log( e^{t_i} / (e^{t_i} + sum_{j != y} e^{scale cos_ij - nu_j}) )
        t_i    = scale margin(cos_iy) - nu_y

    cosines: (B, S), labels: (B,) place numbers, offsets: (C,) -> (B,) in float32, or float64
    for float64 cosines: half precision is widened before the exponential.  Differentiable
    once, by cosines only; the offsets are constants.
    """
    check_batch(cosines, labels, columns)
    wide = torch.promote_types(cosines.dtype, torch.float32)
    shift = torch.zeros(1, dtype=wide, device=cosines.device)
    if offsets is not None and columns is None and len(offsets) != cosines.shape[1]:
        raise SettingError(
            f"{len(offsets)} offsets for {cosines.shape[1]} places; pass one for each"
        )
    if offsets is not None:
        shift = offsets.to(wide) if columns is None else offsets.to(wide)[columns.places]
    if columns is not None and columns.bonus is not None:
        shift = shift - columns.bonus.to(wide)
    if columns is None:
        where, here = labels, torch.ones_like(labels, dtype=torch.bool)
        group = None
    else:
        (where, here), group = columns.find(labels), columns.group
        if group is None and not bool(here.all()):
            raise SettingError(
                f"place {int(labels[~here][0])} is a label but has no column; "
                "keep the places of the batch among the columns"
            )
    losses: Tensor = _TargetLosses.apply(  # type: ignore[no-untyped-call]
        cosines, where, here, shift, scale, margin, group
    )
    return losses


class _TargetLosses(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        cosines: Tensor,
        where: Tensor,
        here: Tensor,
        shift: Tensor,
        scale: float,
        margin: Margin | None,
        group: "dist.ProcessGroup | None",
    ) -> Tensor:
        column = where[:, None]  # (B, 1)
        truth, slope = _with_slope(margin, cosines.gather(1, column)[:, 0].to(shift.dtype))
        truth = scale * truth - shift.expand(cosines.shape[1])[where]  # (B,)
        logits = torch.add(-shift, cosines, alpha=scale)  # (B, S)
        kept = logits.gather(1, column)[:, 0]
        logits.scatter_(1, column, torch.where(here, truth, kept)[:, None])
        p = torch.softmax(logits, dim=1)  # (B, S) among the columns at hand
        if group is None:
            losses, share = _single_losses(logits, p, truth, column), None
        else:
            losses, share = _shared_losses(logits, truth, here, group)
        ctx.save_for_backward(p, column, here, slope, losses, share)
        ctx.scale, ctx.dtype = scale, cosines.dtype
        return losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, incoming: Tensor) -> tuple[Tensor | None, ...]:
        p, column, here, slope, losses, share = ctx.saved_tensors
        steep = ctx.scale * incoming  # (B,)
        rows = steep if share is None else steep * share
        grad = p * rows[:, None]  # (B, S)
        truth = steep * slope * torch.expm1(-losses)  # p_y - 1, exact for both ends
        kept = grad.gather(1, column)[:, 0]
        grad.scatter_(1, column, torch.where(here, truth, kept)[:, None])
        return grad.to(ctx.dtype), None, None, None, None, None, None


def _single_losses(logits: Tensor, p: Tensor, truth: Tensor, column: Tensor) -> Tensor:
    """Take -log p of the truth; from the logits where p is too faint for float32."""
    seen = p.gather(1, column)[:, 0]  # (B,)
    losses = -torch.log(seen)
    faint = seen < FAINTEST
    if bool(faint.any()):
        losses[faint] = torch.logsumexp(logits[faint], dim=1) - truth[faint]
    return losses


def _shared_losses(
    logits: Tensor, truth: Tensor, here: Tensor, group: "dist.ProcessGroup"
) -> tuple[Tensor, Tensor]:
    """Finish a softmax whose columns are dealt among ranks: losses, and this rank's share.

    Three (B,) messages: the largest log-sum, the sum relative to it, the logit of the truth.
    """
    local = torch.logsumexp(logits, dim=1)  # (B,)
    top = local.clone()
    dist.all_reduce(top, dist.ReduceOp.MAX, group)
    total = torch.exp(local - top)
    dist.all_reduce(total, dist.ReduceOp.SUM, group)
    truth = torch.where(here, truth, torch.zeros_like(truth))
    dist.all_reduce(truth, dist.ReduceOp.SUM, group)
    log_sum = top + torch.log(total)
    return log_sum - truth, torch.exp(local - log_sum)


class _SumOverRanks(torch.autograd.Function):
    """Add up what the ranks hold; each rank's part moves the sum one for one."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, group: "dist.ProcessGroup") -> Tensor:
        total = part.clone()
        dist.all_reduce(total, dist.ReduceOp.SUM, group)
        return total

    @staticmethod
    def backward(ctx: Any, incoming: Tensor) -> tuple[Tensor, None]:
        return incoming, None


def sum_over_ranks(part: Tensor, group: "dist.ProcessGroup") -> Tensor:
    """Sum a tensor over the ranks of `group`, differentiably, where all then use the sum alike."""
    total: Tensor = _SumOverRanks.apply(part, group)  # type: ignore[no-untyped-call]
    return total


def _with_slope(margin: Margin | None, cosine: Tensor) -> tuple[Tensor, Tensor]:
    """Apply the margin to the (B,) true cosines, and take its derivative there."""
    if margin is None:
        return cosine, torch.ones_like(cosine)
    with torch.enable_grad():
        point = cosine.detach().requires_grad_()
        moved = margin(point)
        (slope,) = torch.autograd.grad(moved.sum(), point)
    return moved.detach(), slope


def check_batch(cosines: Tensor, labels: Tensor, columns: Columns | None = None) -> None:
    """Refuse shapes and labels that cannot belong together."""
    if cosines.ndim != 2 or labels.shape != cosines.shape[:1]:
        raise SettingError(
            f"cosines of shape {tuple(cosines.shape)} and labels of shape {tuple(labels.shape)} "
            "do not fit; pass (B, C) and (B,)"
        )
    if labels.dtype != torch.int64:
        raise SettingError(f"labels are {labels.dtype}; pass place numbers as torch.int64")
    # On an accelerator this look would wait for the device; indexing fails there by itself.
    if columns is None and labels.is_cpu and len(labels):
        low, high = (int(edge) for edge in labels.aminmax())
        if low < 0 or high >= cosines.shape[1]:
            raise SettingError(
                f"labels run from {low} to {high} but there are {cosines.shape[1]} places; "
                "pass place numbers below the number of columns"
            )
