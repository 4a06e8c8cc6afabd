"""A batch against itself: cosines between its photos, and which pairs and triplets count.

Knows no loss.  Index tuples are those of pytorch-metric-learning: (anchors, positives,
anchors, negatives) for pairs, (anchors, positives, negatives) for triplets.
"""

# B batch · D descriptor · C places · T triplets

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
