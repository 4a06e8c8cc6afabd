"""Losses over pairs and triplets of a batch: one place together, two places apart (Eq. 7).

Every loss is called as pytorch-metric-learning calls its own, (descriptors, labels,
indices_tuple=None, ref_emb=None, ref_labels=None), makes the descriptors unit length, and returns
a float32 scalar (float64 for float64).  Labels are place numbers, the rows of `counts`; a number
beyond them is a place nobody counted and is treated as the rarest one.
"""

# B batch · D descriptor · C places · w weights · ν offsets · s_ij cosine of two photos
# T triplets · a anchor · p positive · n negative

from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from evenplace.errors import SettingError, unknown_name

from .prior import Counts, PriorLoss, class_weights, logit_offsets
from .similarity import (
    IndicesTuple,
    PullPush,
    Triplets,
    anchor_losses,
    find_pairs,
    find_triplets,
    hardest_triplets,
    list_pairs,
    of_places,
    similarities,
)

Mining = Literal["all", "hard"]


def multi_similarity(
    descriptors: Tensor,
    labels: Tensor,
    indices_tuple: IndicesTuple | None = None,
    ref_emb: Tensor | None = None,
    ref_labels: Tensor | None = None,
    *,
    gamma_p: float = 1.0,
    gamma_n: float = 50.0,
    tau: float = 0.0,
    mining: float | None = None,
    weights: Tensor | None = None,
    offsets: Tensor | None = None,
) -> Tensor:
    """Pull positives and push negatives, the hard ones most (Wang et al. 2019; Eq. 7).

        L = 1/B sum_i w_yi [ 1/gamma_p log(1 + sum_pos e^{-gamma_p (s_ij - tau)})
                           + 1/gamma_n log(1 + sum_neg e^{ gamma_n (s_ij - nu_yj - tau)}) ]

    Defaults as SALAD and BoQ.  Pairs: all, or `indices_tuple`'s, or with `mining` those within
    that epsilon of being confused, from the same cosines.  Anchors without pairs count as 0 in
    the mean; no pairs at all give 0.
    """
    s = similarities(descriptors, labels, ref_emb, ref_labels)  # (B, R)
    how = PullPush(gamma_p, gamma_n, tau, mining if indices_tuple is None else None)
    shift = _shift(offsets, labels, ref_labels)  # (R,)
    losses = anchor_losses(s, find_pairs(labels, indices_tuple, ref_labels), how, shift)
    return _weighted(losses, labels, weights).sum() / max(len(losses), 1)


def low_visit_bias_pairs(
    descriptors: Tensor,
    labels: Tensor,
    counts: Counts,
    indices_tuple: IndicesTuple | None = None,
    *,
    beta: float = 0.01,
    kappa: float = 0.01,
    gamma_p: float = 1.0,
    gamma_n: float = 50.0,
    tau: float = 0.0,
    mining: float | None = None,
) -> Tensor:
    """Multi-similarity that knows how often places were visited (Eq. 7).

    counts: (C,) photos per place.  beta = kappa = 0 is `multi_similarity`, bit for bit.
    """
    return multi_similarity(
        descriptors,
        labels,
        indices_tuple,
        gamma_p=gamma_p,
        gamma_n=gamma_n,
        tau=tau,
        mining=mining,
        weights=class_weights(counts, beta).to(descriptors.device),
        offsets=logit_offsets(counts, kappa).to(descriptors.device),
    )


def contrastive(
    descriptors: Tensor,
    labels: Tensor,
    indices_tuple: IndicesTuple | None = None,
    ref_emb: Tensor | None = None,
    ref_labels: Tensor | None = None,
    *,
    pos_margin: float = 0.0,
    neg_margin: float = 0.7,
    squared: bool = True,
    weights: Tensor | None = None,
    offsets: Tensor | None = None,
) -> Tensor:
    """Pull positives to a distance, push negatives beyond one (Hadsell et al. 2006).

        L = mean_pos w_yi h(d_ij - pos_margin) + mean_neg w_yi h(neg_margin - d_ij - nu_yj)
        h(x) = max(0, x)^2 / 2        squared, as GeM trains; else max(0, x)

    Each mean is over its pairs with h > 0.  d is the distance of unit descriptors.
    squared = False is pytorch-metric-learning's.
    """
    d = distances(similarities(descriptors, labels, ref_emb, ref_labels))  # (B, R)
    first, positives, second, negatives = list_pairs(labels, indices_tuple, ref_labels)
    apart = d + _shift(offsets, labels, ref_labels).to(d.dtype)
    near, far = d[first, positives] - pos_margin, neg_margin - apart[second, negatives]
    pull = _hinge_mean(near, labels[first], weights, squared=squared)
    return pull + _hinge_mean(far, labels[second], weights, squared=squared)


def triplet(
    descriptors: Tensor,
    labels: Tensor,
    indices_tuple: IndicesTuple | None = None,
    ref_emb: Tensor | None = None,
    ref_labels: Tensor | None = None,
    *,
    margin: float = 0.1,
    mining: Mining = "hard",
    weights: Tensor | None = None,
    offsets: Tensor | None = None,
) -> Tensor:
    """Want the positive nearer than the negative by a margin (deep-vg's 0.1).

        L = mean_T w_ya max(0, d_ap - (d_an + nu_yn) + margin)

    The mean is over triplets that violate it, as in pytorch-metric-learning.  Triplets: each
    anchor's farthest positive and nearest negative (`hard`), `all`, or `indices_tuple`'s.
    """
    s = similarities(descriptors, labels, ref_emb, ref_labels)  # (B, R)
    if indices_tuple is None and mining == "hard":
        found = hardest_triplets(s, find_pairs(labels, None, ref_labels))
    else:
        found = find_triplets(labels, indices_tuple, ref_labels)
    d = distances(s)
    apart = d + _shift(offsets, labels, ref_labels).to(d.dtype)
    gap = d[found.anchors, found.positives] - apart[found.anchors, found.negatives]  # (T,)
    return _hinge_mean(gap + margin, labels[found.anchors], weights)


def sare(
    descriptors: Tensor,
    labels: Tensor,
    indices_tuple: IndicesTuple | None = None,
    ref_emb: Tensor | None = None,
    ref_labels: Tensor | None = None,
    *,
    temperature: float = 0.07,
    joint: bool = False,
    weights: Tensor | None = None,
    offsets: Tensor | None = None,
) -> Tensor:
    """Make the positive the likelier neighbour (SARE, Liu et al. 2019; SFRS's settings).

        alone:  L = mean_T    w_ya log(1 + e^{(s_an - nu_yn - s_ap) / temperature})
        joint:  L = mean_(ap) w_ya log(1 + sum_n e^{(s_an - nu_yn - s_ap) / temperature})

    temperature = 0.5 is the Gaussian kernel of the SARE paper, since d^2 = 2 - 2s.
    """
    s = similarities(descriptors, labels, ref_emb, ref_labels)  # (B, R)
    found = find_triplets(labels, indices_tuple, ref_labels)
    pushed = s - _shift(offsets, labels, ref_labels).to(s.dtype)
    gap = pushed[found.anchors, found.negatives] - s[found.anchors, found.positives]  # (T,)
    if joint:
        anchors, losses = _joint_losses(gap / temperature, found, s.shape[1])
    else:
        anchors, losses = found.anchors, F.softplus(gap / temperature)
    return _weighted(losses, labels[anchors], weights).sum() / max(len(losses), 1)


def _shift(offsets: Tensor | None, labels: Tensor, ref_labels: Tensor | None) -> Tensor:
    """The offset of each photo that anchors are compared with, (R,); 0 without a prior."""
    others = labels if ref_labels is None else ref_labels
    if offsets is None:
        return torch.zeros(len(others), device=others.device)
    return of_places(offsets, others)


def distances(similarity: Tensor) -> Tensor:
    """Turn cosines into distances of unit descriptors, sqrt(2 - 2s), 0 and flat where they meet.

    A photo that is twice in a batch is 0 from itself, so no mean over losses above 0 counts it.
    """
    squared = 2 - 2 * similarity
    meet = squared <= 8 * torch.finfo(squared.dtype).eps  # what rounding leaves of 0
    return squared.masked_fill(meet, 1.0).sqrt().masked_fill(meet, 0.0)


def _hinge_mean(
    excess: Tensor, labels: Tensor, weights: Tensor | None, *, squared: bool = False
) -> Tensor:
    """Average the hinge of (T,) pairs or triplets over those where it is not 0."""
    hinge = excess.relu()
    count = hinge.count_nonzero().clamp(min=1)
    return _weighted(hinge**2 / 2 if squared else hinge, labels, weights).sum() / count


def _weighted(losses: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    """Each of (T,) losses times the weight of its anchor's place.  labels: (T,) of the anchors."""
    return losses if weights is None else losses * of_places(weights, labels).to(losses.dtype)


def _joint_losses(exponents: Tensor, found: Triplets, others: int) -> tuple[Tensor, Tensor]:
    """log(1 + sum over the negatives of each anchor and positive): their anchors, losses."""
    keys, row = torch.unique(found.anchors * others + found.positives, return_inverse=True)
    table = exponents.new_full((len(keys), others + 1), -torch.inf)
    table[:, others] = 0.0
    table = table.index_put((row, found.negatives), exponents)
    return keys // others, torch.logsumexp(table, dim=1)


class PairLoss(PriorLoss):
    """A formula over a batch, with its settings."""

    takes: ClassVar[str] = "descriptors"

    def forward(
        self,
        descriptors: Tensor,
        labels: Tensor,
        indices_tuple: IndicesTuple | None = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Tensor:
        """Average the loss of (B, D) descriptors over their anchors, pairs or triplets.

        ref_emb, ref_labels: (R, D), (R,) what anchors are compared with instead of one another.
        """
        return self.compute(descriptors, labels, indices_tuple, ref_emb, ref_labels)

    def reach(self) -> dict[str, Any]:
        """Offsets are distances, and a constant one moves the margin."""
        return {"gain": 1.0, "cancels": False, "margin": self.settings.get("margin", 0.0)}


class MultiSimilarity(PairLoss):
    """`multi_similarity` with its settings."""

    formula = staticmethod(multi_similarity)

    def reach(self) -> dict[str, Any]:
        """Offsets are multiplied by gamma_n, and a constant one moves the threshold."""
        return super().reach() | {"gain": self.settings["gamma_n"]}


class LowVisitBiasPairs(MultiSimilarity):
    """The paper's loss on pairs (Eq. 7), in place of `MultiSimilarityLoss`.

    At the paper's kappa nearly all of nu is one constant, which does not cancel here: it
    raises the threshold of every negative.  `centred` leaves that constant out (nu minus its
    mean), `constant` keeps nothing else: the control to run beside it.
    """

    own: ClassVar[dict[str, Any]] = {"centred": False, "constant": False}
    needs_counts = True
    centred: bool
    constant: bool

    def __init__(
        self,
        counts: Counts,
        beta: float = 0.01,
        kappa: float = 0.01,
        gamma_p: float = 1.0,
        gamma_n: float = 50.0,
        tau: float = 0.0,
        **settings: Any,
    ) -> None:
        strengths = {"beta": beta, "kappa": kappa, "gamma_p": gamma_p, "gamma_n": gamma_n}
        super().__init__(counts, tau=tau, **strengths, **settings)

    def check(self) -> None:
        if self.centred and self.constant:
            raise SettingError(
                "centred=True leaves out the mean offset and constant=True all else; choose one"
            )

    def prior(self, counts: Counts, all_counts: Counts | None) -> tuple[Tensor, Tensor]:
        weights, offsets = super().prior(counts, all_counts)
        if self.centred:
            return weights, offsets - offsets.mean()
        return weights, offsets.mean().repeat(len(offsets)) if self.constant else offsets


class Contrastive(PairLoss):
    """`contrastive` with its settings; with counts, beta and kappa, its low-visit-bias form."""

    formula = staticmethod(contrastive)

    def reach(self) -> dict[str, Any]:
        """The margin is that of negatives."""
        return super().reach() | {"margin": self.settings["neg_margin"]}


class Triplet(PairLoss):
    """`triplet` with its settings; with counts, beta and kappa, its low-visit-bias form."""

    formula = staticmethod(triplet)
    mining: Mining

    def check(self) -> None:
        if self.mining not in ("all", "hard"):
            raise unknown_name("mining of triplets", self.mining, ("all", "hard"))


class Sare(PairLoss):
    """`sare` with its settings; with counts, beta and kappa, its low-visit-bias form."""

    formula = staticmethod(sare)
    temperature: float

    def check(self) -> None:
        if self.temperature <= 0:
            raise SettingError(
                f"temperature is {self.temperature}; pass a number above 0, such as 0.07"
            )

    def reach(self) -> dict[str, Any]:
        """Offsets are divided by the temperature, and a constant one moves the threshold."""
        return super().reach() | {"gain": 1 / self.temperature}
