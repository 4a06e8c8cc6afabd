"""A batch against itself: cosines between its photos, which pairs and triplets count, and the
kernel of multi-similarity.

Knows nothing of weights: the caller multiplies the (B,) losses it gets back.  Index tuples are
those of pytorch-metric-learning: (anchors, positives, anchors, negatives) for pairs, (anchors,
positives, negatives) for triplets.
"""

# B batch · D descriptor · C places · T triplets · P positive pairs · s_ij cosine of two photos

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from evenplace.errors import SettingError

IndicesTuple = Sequence[Tensor]


@dataclass(frozen=True)
class Pairs:
    """Which photos of a batch pull and push each other: two (B, B) masks, a row per anchor."""

    positive: Tensor
    negative: Tensor


def similarities(descriptors: Tensor, labels: Tensor) -> Tensor:
    """Take the cosine of every two photos: (B, D) of any length -> (B, B).

    In float32 at least, also under autocast; no normalised copy of the descriptors is made.
    """
    check_descriptors(descriptors, labels)
    wide = torch.float64 if descriptors.dtype == torch.float64 else torch.float32
    gram: Tensor = _Gram.apply(descriptors.to(wide))  # type: ignore[no-untyped-call]
    lengths = gram.diagonal().clamp(min=1e-24).sqrt()  # (B,)
    return gram / (lengths[:, None] * lengths)


class _Gram(torch.autograd.Function):
    """X Xᵀ, whose gradient is one product (G + Gᵀ) X where autograd would take two."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        with torch.autocast(rows.device.type, enabled=False):
            return rows @ rows.T

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, incoming: Tensor) -> Tensor:
        (rows,) = ctx.saved_tensors
        with torch.autocast(rows.device.type, enabled=False):
            both: Tensor = (incoming + incoming.T) @ rows
        return both


def find_pairs(labels: Tensor, indices_tuple: IndicesTuple | None = None) -> Pairs:
    """Take all pairs of a batch, or those a miner chose."""
    if indices_tuple is None:
        same = labels[:, None] == labels  # (B, B)
        return Pairs(same.clone().fill_diagonal_(False), ~same)
    first, positives, second, negatives = list_pairs(labels, indices_tuple)
    none = torch.zeros(len(labels), len(labels), dtype=torch.bool, device=labels.device)
    positive, negative = none.clone(), none
    positive[first, positives] = True
    negative[second, negatives] = True
    return Pairs(positive, negative)


def list_pairs(
    labels: Tensor, indices_tuple: IndicesTuple | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """List anchors and positives, anchors and negatives; a pair chosen twice is there twice."""
    if indices_tuple is None:
        pairs = find_pairs(labels)
        first, positives = pairs.positive.nonzero(as_tuple=True)
        second, negatives = pairs.negative.nonzero(as_tuple=True)
        return first, positives, second, negatives
    match tuple(indices_tuple):
        case (first, positives, second, negatives):
            return first, positives, second, negatives
        case (anchors, positives, negatives):
            return anchors, positives, anchors, negatives
    raise SettingError(
        f"indices_tuple holds {len(indices_tuple)} arrays; pass 4 for pairs or 3 for triplets"
    )


def referred(labels: Tensor, others: Tensor, indices_tuple: IndicesTuple | None) -> IndicesTuple:
    """Pairs or triplets of anchors with others, numbered behind them; all if none are given."""
    if indices_tuple is None:
        same = labels[:, None] == others  # (B, R)
        indices_tuple = (*same.nonzero(as_tuple=True), *(~same).nonzero(as_tuple=True))
    behind = (0, 1, 0, 1) if len(indices_tuple) == 4 else (0, 1, 1)
    moved = [one + far * len(labels) for one, far in zip(indices_tuple, behind, strict=False)]
    return tuple(moved)


@dataclass(frozen=True)
class Triplets:
    """Anchor, positive and negative photos, three (T,) arrays of rows of a batch."""

    anchors: Tensor
    positives: Tensor
    negatives: Tensor


def find_triplets(labels: Tensor, indices_tuple: IndicesTuple | None = None) -> Triplets:
    """Take all triplets of a batch, or those a miner chose; chosen pairs make all of theirs."""
    if indices_tuple is not None and len(indices_tuple) == 3:
        return Triplets(*indices_tuple)
    pairs = find_pairs(labels, indices_tuple)
    anchors, positives = pairs.positive.nonzero(as_tuple=True)
    rows, negatives = pairs.negative[anchors].nonzero(as_tuple=True)  # (T,)
    return Triplets(anchors[rows], positives[rows], negatives)


def hardest_triplets(similarity: Tensor, pairs: Pairs) -> Triplets:
    """Take each anchor's farthest positive and nearest negative; skip anchors that lack one."""
    anchors = (pairs.positive.any(dim=1) & pairs.negative.any(dim=1)).nonzero()[:, 0]  # (T,)
    if not len(anchors):
        return Triplets(anchors, anchors, anchors)
    found = similarity.detach()
    positives = found.masked_fill(~pairs.positive, torch.inf).argmin(dim=1)
    negatives = found.masked_fill(~pairs.negative, -torch.inf).argmax(dim=1)
    return Triplets(anchors, positives[anchors], negatives[anchors])


def check_descriptors(descriptors: Tensor, labels: Tensor) -> None:
    """Refuse shapes that cannot belong together."""
    if descriptors.ndim != 2 or labels.shape != descriptors.shape[:1]:
        raise SettingError(
            f"descriptors of shape {tuple(descriptors.shape)} and labels of shape "
            f"{tuple(labels.shape)} do not fit; pass (B, D) and (B,)"
        )


def of_places(values: Tensor, labels: Tensor) -> Tensor:
    """Look up each label's weight or offset; a place nobody counted gets the rarest one's.

    Both weights and offsets are largest for the rarest place.  values: (C,), labels: (B,) of
    any size -> (B,).
    """
    known = (labels >= 0) & (labels < len(values))
    return values[labels.where(known, 0)].where(known, values.max())


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
    """Add up each anchor's pull and push, the bracket of Eq. 7, forward and backward by hand.

        1/gamma_p log(1 + sum_pos e^{-gamma_p (s_ij - tau)})
      + 1/gamma_n log(1 + sum_neg e^{ gamma_n (s_ij - shift_j - tau)})

    descriptors: (B, D) of any length, labels: (B,), shift: (B,) -> (B,) in float32 at least.
    A descriptor of length 0 has cosine 0 to all and no gradient.  Two matrix products in all, where
    autograd over normalised descriptors takes three, and a handful of passes over (B, B).
    Positives are few and kept as a list, negatives many and kept as a matrix.
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
