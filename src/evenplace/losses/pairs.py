"""Losses over the pairs of a batch: photos of one place together, of two places apart (Eq. 7).

Every loss is called as pytorch-metric-learning calls its own, (descriptors, labels,
indices_tuple=None), makes the descriptors unit length, and returns a float32 scalar (float64
for float64).  Labels are place numbers, the rows of `counts`; a number beyond them is a place
nobody counted and is treated as the rarest one.
"""

# B batch · D descriptor · C places · w weights · ν offsets · s_ij cosine of two photos

from functools import partial
from typing import Any, ClassVar

from torch import Tensor

from evenplace.errors import SettingError

from .multi_similarity_kernel import PullPush, anchor_losses
from .prior import Counts, PriorLoss, class_weights, logit_offsets
from .similarity import IndicesTuple, list_pairs, of_places, similarities


def multi_similarity(
    descriptors: Tensor,
    labels: Tensor,
    indices_tuple: IndicesTuple | None = None,
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
    how = PullPush(gamma_p, gamma_n, tau, mining)
    shift = None if offsets is None else of_places(offsets, labels)  # (B,)
    losses = anchor_losses(descriptors, labels, indices_tuple, how, shift)
    if weights is not None:
        losses = losses * of_places(weights, labels).to(losses.dtype)
    return losses.sum() / max(len(losses), 1)


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
    first, positives, second, negatives = list_pairs(labels, indices_tuple)
    d = distances(similarities(descriptors, labels))  # (B, B)
    apart = d if offsets is None else d + of_places(offsets, labels).to(d.dtype)
    w = None if weights is None else of_places(weights, labels).to(d.dtype)  # (B,)
    near = _hinge_mean(d[first, positives] - pos_margin, first, squared, w)
    return near + _hinge_mean(neg_margin - apart[second, negatives], second, squared, w)


def distances(similarity: Tensor) -> Tensor:
    """Turn cosines into distances of unit descriptors, sqrt(2 - 2s), flat where they meet."""
    return (2 - 2 * similarity).clamp(min=1e-12).sqrt()


def _hinge_mean(excess: Tensor, anchors: Tensor, squared: bool, w: Tensor | None) -> Tensor:
    """Average the hinge of (T,) pairs over those where it is not 0."""
    hinge = excess.relu()
    count = hinge.count_nonzero().clamp(min=1)
    losses = hinge**2 / 2 if squared else hinge
    return (losses if w is None else losses * w[anchors]).sum() / count


def _pair_prior(
    counts: Counts,
    all_counts: Counts | None,
    *,
    beta: float,
    kappa: float,
    centred: bool,
    constant: bool,
) -> tuple[Tensor, Tensor]:
    offsets = logit_offsets(counts, kappa, all_counts=all_counts)
    if centred:
        offsets = offsets - offsets.mean()
    elif constant:
        offsets = offsets.mean().repeat(len(offsets))
    return class_weights(counts, beta, all_counts=all_counts), offsets


class MultiSimilarity(PriorLoss):
    """`multi_similarity` with its settings."""

    takes: ClassVar[str] = "descriptors"

    def __init__(
        self,
        counts: Counts | None = None,
        *,
        gamma_p: float = 1.0,
        gamma_n: float = 50.0,
        tau: float = 0.0,
        mining: float | None = None,
    ) -> None:
        super().__init__(counts)
        self.gamma_p, self.gamma_n, self.tau, self.mining = gamma_p, gamma_n, tau, mining

    def forward(
        self, descriptors: Tensor, labels: Tensor, indices_tuple: IndicesTuple | None = None
    ) -> Tensor:
        """Average the loss of (B, D) descriptors over their anchors."""
        return multi_similarity(
            descriptors,
            labels,
            indices_tuple,
            gamma_p=self.gamma_p,
            gamma_n=self.gamma_n,
            tau=self.tau,
            mining=self.mining,
        )

    def reach(self) -> dict[str, Any]:
        """Offsets would be multiplied by gamma_n, and a constant one move the threshold."""
        return {"gain": self.gamma_n, "cancels": False, "margin": 0.0}


class LowVisitBiasPairs(PriorLoss):
    """The paper's loss on pairs (Eq. 7), in place of `MultiSimilarityLoss`.

    At the paper's kappa nearly all of nu is one constant, which does not cancel here: it
    raises the threshold of every negative.  `centred` leaves that constant out (nu minus its
    mean), `constant` keeps nothing else: the control to run beside it.
    """

    takes: ClassVar[str] = "descriptors"

    def __init__(
        self,
        counts: Counts,
        beta: float = 0.01,
        kappa: float = 0.01,
        gamma_p: float = 1.0,
        gamma_n: float = 50.0,
        tau: float = 0.0,
        *,
        mining: float | None = None,
        centred: bool = False,
        constant: bool = False,
        all_counts: Counts | None = None,
    ) -> None:
        if centred and constant:
            raise SettingError(
                "centred=True leaves out the mean offset and constant=True all else; choose one"
            )
        shape = partial(_pair_prior, beta=beta, kappa=kappa, centred=centred, constant=constant)
        super().__init__(counts, beta=beta, kappa=kappa, all_counts=all_counts, prior=shape)
        self.gamma_p, self.gamma_n, self.tau, self.mining = gamma_p, gamma_n, tau, mining

    def forward(
        self, descriptors: Tensor, labels: Tensor, indices_tuple: IndicesTuple | None = None
    ) -> Tensor:
        """Average the loss of (B, D) descriptors over their anchors."""
        return self.weighed(
            multi_similarity,
            descriptors,
            labels,
            indices_tuple,
            gamma_p=self.gamma_p,
            gamma_n=self.gamma_n,
            tau=self.tau,
            mining=self.mining,
        )

    def reach(self) -> dict[str, Any]:
        """Offsets are multiplied by gamma_n, and a constant one moves the threshold."""
        return {"gain": self.gamma_n, "cancels": False, "margin": 0.0}


class Contrastive(PriorLoss):
    """`contrastive` with its settings; with counts, beta and kappa, its low-visit-bias form."""

    takes: ClassVar[str] = "descriptors"

    def __init__(
        self,
        counts: Counts | None = None,
        *,
        pos_margin: float = 0.0,
        neg_margin: float = 0.7,
        squared: bool = True,
        beta: float = 0.0,
        kappa: float = 0.0,
        all_counts: Counts | None = None,
    ) -> None:
        super().__init__(counts, beta=beta, kappa=kappa, all_counts=all_counts)
        self.pos_margin, self.neg_margin, self.squared = pos_margin, neg_margin, squared

    def forward(
        self, descriptors: Tensor, labels: Tensor, indices_tuple: IndicesTuple | None = None
    ) -> Tensor:
        """Average the loss of (B, D) descriptors over their pairs."""
        return self.weighed(
            contrastive,
            descriptors,
            labels,
            indices_tuple,
            pos_margin=self.pos_margin,
            neg_margin=self.neg_margin,
            squared=self.squared,
        )

    def reach(self) -> dict[str, Any]:
        """Offsets are distances, and a constant one moves the margin."""
        return {"gain": 1.0, "cancels": False, "margin": self.neg_margin}
