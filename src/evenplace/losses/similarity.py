"""A batch against itself or others: cosines between photos, which pairs and triplets count, and the
kernel of multi-similarity.

Knows nothing of weights: the caller multiplies the (B,) losses it gets back.  Index tuples are
those of pytorch-metric-learning: (anchors, positives, anchors, negatives) for pairs, (anchors,
positives, negatives) for triplets.
"""

# B batch · R those it is compared with, mostly itself · D descriptor · C places · T triplets
# P positive pairs · s_ij cosine of two photos

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
    """Which photos pull and push each anchor: two (B, R) masks, a row per anchor."""

    positive: Tensor
    negative: Tensor


def similarities(
    descriptors: Tensor,
    labels: Tensor,
    ref_emb: Tensor | None = None,
    ref_labels: Tensor | None = None,
) -> Tensor:
    """Take the cosine of every photo with every other: (B, D), (R, D) of any length -> (B, R).

    In float32 at least, also under autocast; no normalised copy of the descriptors is made.  A
    descriptor of length 0 has cosine 0 to all and no gradient.
    """
    check_descriptors(descriptors, labels, ref_emb, ref_labels)
    wide = torch.promote_types(descriptors.dtype, torch.float32)
    rows = descriptors.to(wide)
    if ref_emb is None:
        products: Tensor = _Gram.apply(rows)  # type: ignore[no-untyped-call]
        left = right = _inverse_lengths(products.diagonal())  # (B,)
    else:
        others = ref_emb.to(wide)
        with torch.autocast(rows.device.type, enabled=False):
            products = rows @ others.T
        left, right = (_inverse_lengths(some.square().sum(dim=1)) for some in (rows, others))
    return products * left[:, None] * right


def _inverse_lengths(squares: Tensor) -> Tensor:
    return torch.where(squares > 1e-24, squares.clamp(min=1e-24).rsqrt(), 0.0)


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


def find_pairs(
    labels: Tensor, indices_tuple: IndicesTuple | None = None, ref_labels: Tensor | None = None
) -> Pairs:
    """Take all pairs of a batch, or of it with others, or those a miner chose."""
    others = labels if ref_labels is None else ref_labels
    if indices_tuple is None:
        same = labels[:, None] == others  # (B, R)
        positive = same.clone().fill_diagonal_(False) if others is labels else same
        return Pairs(positive, ~same)
    first, positives, second, negatives = list_pairs(labels, indices_tuple)
    none = torch.zeros(len(labels), len(others), dtype=torch.bool, device=labels.device)
    positive, negative = none.clone(), none
    positive[first, positives] = True
    negative[second, negatives] = True
    return Pairs(positive, negative)


def list_pairs(
    labels: Tensor, indices_tuple: IndicesTuple | None = None, ref_labels: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """List anchors and positives, anchors and negatives; a pair chosen twice is there twice."""
    if indices_tuple is None:
        pairs = find_pairs(labels, None, ref_labels)
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


@dataclass(frozen=True)
class Triplets:
    """Anchor, positive and negative photos, three (T,) arrays of rows of a batch."""

    anchors: Tensor
    positives: Tensor
    negatives: Tensor


def find_triplets(
    labels: Tensor, indices_tuple: IndicesTuple | None = None, ref_labels: Tensor | None = None
) -> Triplets:
    """Take all triplets of a batch, or those a miner chose; chosen pairs make all of theirs."""
    if indices_tuple is not None and len(indices_tuple) == 3:
        return Triplets(*indices_tuple)
    first, positives, second, negatives = list_pairs(labels, indices_tuple, ref_labels)
    many = torch.bincount(second, minlength=len(labels))  # (B,) negatives of each anchor
    rows = torch.arange(len(first), device=first.device).repeat_interleave(many[first])  # (T,)
    start = many[first].cumsum(0) - many[first]  # (P,) each pair's first triplet
    nth = torch.arange(len(rows), device=first.device) - start[rows]
    by_anchor = negatives[second.argsort(stable=True)]
    chosen = by_anchor[(many.cumsum(0) - many)[first[rows]] + nth]
    return Triplets(first[rows], positives[rows], chosen)


def hardest_triplets(similarity: Tensor, pairs: Pairs) -> Triplets:
    """Take each anchor's farthest positive and nearest negative; skip anchors that lack one."""
    anchors = (pairs.positive.any(dim=1) & pairs.negative.any(dim=1)).nonzero()[:, 0]  # (T,)
    if not len(anchors):
        return Triplets(anchors, anchors, anchors)
    found = similarity.detach()
    positives = found.masked_fill(~pairs.positive, torch.inf).argmin(dim=1)
    negatives = found.masked_fill(~pairs.negative, -torch.inf).argmax(dim=1)
    return Triplets(anchors, positives[anchors], negatives[anchors])


def check_descriptors(
    descriptors: Tensor,
    labels: Tensor,
    ref_emb: Tensor | None = None,
    ref_labels: Tensor | None = None,
) -> None:
    """Refuse shapes that cannot belong together."""
    if (ref_emb is None) != (ref_labels is None):
        raise SettingError("ref_emb and ref_labels say what and where; pass both")
    if descriptors.ndim != 2 or labels.shape != descriptors.shape[:1]:
        raise SettingError(
            f"descriptors of shape {tuple(descriptors.shape)} and labels of shape "
            f"{tuple(labels.shape)} do not fit; pass (B, D) and (B,)"
        )
    if ref_emb is not None and ref_labels is not None:
        check_descriptors(ref_emb, ref_labels)


def of_places(values: Tensor, labels: Tensor) -> Tensor:
    """Look up each label's weight or offset; a place nobody counted gets the rarest one's.

    Both weights and offsets are largest for the rarest place.  values: (C,), labels: (B,) of
    any size and kind of number -> (B,).
    """
    known = (labels >= 0) & (labels < len(values))
    return values[labels.where(known, 0).long()].where(known, values.max())


@dataclass(frozen=True)
class PullPush:
    """Settings of one call: Eq. 7's gamma_p, gamma_n and tau, and an epsilon to mine with."""

    gamma_p: float
    gamma_n: float
    tau: float
    mining: float | None


def anchor_losses(s: Tensor, pairs: Pairs, how: PullPush, shift: Tensor) -> Tensor:
    """Add up each anchor's pull and push, the bracket of Eq. 7, forward and backward by hand.

        1/gamma_p log(1 + sum_pos e^{-gamma_p (s_ij - tau)})
      + 1/gamma_n log(1 + sum_neg e^{ gamma_n (s_ij - shift_j - tau)})

    s: (B, R) cosines, shift: (R,) -> (B,).  A handful of passes over (B, R): positives are few and
    kept as a list, negatives many and kept as a matrix.
    """
    losses: Tensor = _AnchorLosses.apply(  # type: ignore[no-untyped-call]
        s, pairs, how, shift.to(s.dtype)
    )
    return losses


class _AnchorLosses(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, s: Tensor, pairs: Pairs, how: PullPush, shift: Tensor) -> Tensor:
        anchors, others = pairs.positive.nonzero(as_tuple=True)  # (P,) each
        closed = ~pairs.negative  # (B, R) what is *no* negative
        if how.mining is not None and s.numel():
            anchors, others = _mine(s, anchors, others, closed, how.mining)
        pull, pulled = _pull(s[anchors, others], anchors, len(s), how)  # (B,), (P,)
        push, pushed = _push(s, closed, shift, how)  # (B,), (B, R)
        ctx.save_for_backward(anchors, others, pulled, pushed)
        return pull + push

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, incoming: Tensor) -> tuple[Tensor | None, ...]:
        anchors, others, pulled, pushed = ctx.saved_tensors
        by_cosine = pushed * incoming[:, None]  # (B, R) gradient by s_ij
        by_cosine[anchors, others] -= incoming[anchors] * pulled
        return by_cosine, None, None, None


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
    """Sum up the negatives: (B,) losses, and (B, R) their gradient by the cosine."""
    exponents = torch.add(-how.gamma_n * (shift + how.tau), s, alpha=how.gamma_n)  # (B, R)
    exponents.masked_fill_(closed, -torch.inf)
    top = exponents.amax(dim=1).clamp(min=0) if s.numel() else s.new_zeros(len(s))
    terms = exponents.sub_(top[:, None]).exp_()
    total = torch.exp(-top) + terms.sum(dim=1)  # (B,)
    return (top + torch.log(total)) / how.gamma_n, terms.div_(total[:, None])
