"""The kernel of multi-similarity: pull and push of each anchor, forward and backward by hand.

Two matrix products in all, where autograd over normalised descriptors takes three, and a
handful of passes over (B, B).  Positives are few and kept as a list, negatives many and kept as
a matrix.  Knows nothing of weights: the caller multiplies the (B,) losses it gets back.
"""

# B batch · D descriptor · P positive pairs · s_ij cosine of two photos

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .similarity import IndicesTuple, check_descriptors, find_pairs


@dataclass(frozen=True)
class PullPush:
    """Settings of one call: Eq. 7's gamma_p, gamma_n and tau, and an epsilon to mine with."""

    gamma_p: float
    gamma_n: float
    tau: float
    mining: float | None


def anchor_losses(
    descriptors: Tensor,
    labels: Tensor,
    indices_tuple: IndicesTuple | None,
    how: PullPush,
    shift: Tensor | None = None,
) -> Tensor:
    """Add up each anchor's pull and push, the bracket of Eq. 7.

        1/gamma_p log(1 + sum_pos e^{-gamma_p (s_ij - tau)})
      + 1/gamma_n log(1 + sum_neg e^{ gamma_n (s_ij - shift_j - tau)})

    descriptors: (B, D) of any length, labels: (B,), shift: (B,) -> (B,) in float32 at least.
    A descriptor of length 0 has cosine 0 to all and no gradient.
    """
    check_descriptors(descriptors, labels)
    wide = torch.float64 if descriptors.dtype == torch.float64 else torch.float32
    if shift is None:
        shift = torch.zeros(len(labels), device=labels.device)
    losses: Tensor = _AnchorLosses.apply(  # type: ignore[no-untyped-call]
        descriptors.to(wide), labels, indices_tuple, how, shift.to(wide)
    )
    return losses


class _AnchorLosses(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        labels: Tensor,
        indices_tuple: IndicesTuple | None,
        how: PullPush,
        shift: Tensor,
    ) -> Tensor:
        s, inverse = _cosines(rows)  # (B, B), (B,)
        pairs = find_pairs(labels, indices_tuple)
        anchors, others = pairs.positive.nonzero(as_tuple=True)  # (P,) each
        closed = ~pairs.negative  # (B, B) what is *no* negative
        if how.mining is not None and indices_tuple is None and len(labels):
            anchors, others = _mine(s, anchors, others, closed, how.mining)
        pull, pulled = _pull(s[anchors, others], anchors, len(labels), how)  # (B,), (P,)
        push, pushed = _push(s, closed, shift, how)  # (B,), (B, B)
        ctx.save_for_backward(rows, s, inverse, anchors, others, pulled, pushed)
        return pull + push

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, incoming: Tensor) -> tuple[Tensor | None, ...]:
        rows, s, inverse, anchors, others, pulled, pushed = ctx.saved_tensors
        by_cosine = pushed * incoming[:, None]  # (B, B) gradient by s_ij
        by_cosine[anchors, others] -= incoming[anchors] * pulled
        turning = by_cosine * s
        along = (turning.sum(dim=0) + turning.sum(dim=1)) * inverse**2  # (B,) does not turn
        by_product = by_cosine.mul_(inverse[:, None]).mul_(inverse)
        both = by_product + by_product.T
        both.diagonal().sub_(along)
        with torch.autocast(rows.device.type, enabled=False):
            return both @ rows, None, None, None, None


def _cosines(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Take all cosines, and the inverse length of each row (0 for a row of length 0)."""
    with torch.autocast(rows.device.type, enabled=False):
        products = rows @ rows.T
    squares = products.diagonal()
    inverse = torch.where(squares > 1e-24, squares.clamp(min=1e-24).rsqrt(), 0.0)  # (B,)
    return products.mul_(inverse[:, None]).mul_(inverse), inverse


def _mine(
    s: Tensor, anchors: Tensor, others: Tensor, closed: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    """Keep pairs that are hard next to their anchor's others (Wang et al. 2019).

    A positive stays when it is less than epsilon more similar than the nearest negative, a
    negative when it is less than epsilon less similar than the farthest positive; `closed` is
    changed, the positives that stay are returned.
    """
    found = s[anchors, others]  # (P,)
    nearest = s.masked_fill(closed, -torch.inf).amax(dim=1)  # (B,)
    farthest = torch.full_like(nearest, torch.inf).scatter_reduce(0, anchors, found, "amin")
    closed |= s + epsilon <= farthest[:, None]
    hard = found - epsilon < nearest[anchors]
    return anchors[hard], others[hard]


def _pull(found: Tensor, anchors: Tensor, batch: int, how: PullPush) -> tuple[Tensor, Tensor]:
    """Sum up the positives: (B,) losses, and (P,) minus their gradient by the cosine."""
    exponents = -how.gamma_p * (found - how.tau)  # (P,)
    none = found.new_zeros(batch)
    top = none.scatter_reduce(0, anchors, exponents, "amax")  # at least 0, the exponent of 1
    terms = torch.exp(exponents - top[anchors])
    total = torch.exp(-top).index_add(0, anchors, terms)  # (B,)
    return (top + torch.log(total)) / how.gamma_p, terms / total[anchors]


def _push(s: Tensor, closed: Tensor, shift: Tensor, how: PullPush) -> tuple[Tensor, Tensor]:
    """Sum up the negatives: (B,) losses, and (B, B) their gradient by the cosine."""
    exponents = torch.add(-how.gamma_n * (shift + how.tau), s, alpha=how.gamma_n)  # (B, B)
    exponents.masked_fill_(closed, -torch.inf)
    top = exponents.amax(dim=1).clamp(min=0) if len(s) else s.new_zeros(0)
    terms = exponents.sub_(top[:, None]).exp_()
    total = torch.exp(-top) + terms.sum(dim=1)  # (B,)
    return (top + torch.log(total)) / how.gamma_n, terms.div_(total[:, None])
