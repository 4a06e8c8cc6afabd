"""Losses over triplets of a batch: nearer to the same place than to another.

Same call as `pairs`; the offset of a rare negative makes it count as farther away.
"""

# B batch · D descriptor · C places · T triplets · a anchor · p positive · n negative

from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from evenplace.errors import SettingError, unknown_name

from .pairs import distances
from .prior import Counts, PriorLoss
from .similarity import (
    IndicesTuple,
    Triplets,
    find_pairs,
    find_triplets,
    hardest_triplets,
    of_places,
    similarities,
)

Mining = Literal["all", "hard"]


def triplet(
    descriptors: Tensor,
    labels: Tensor,
    indices_tuple: IndicesTuple | None = None,
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
    s = similarities(descriptors, labels)  # (B, B)
    if indices_tuple is None and mining == "hard":
        found = hardest_triplets(s, find_pairs(labels))
    else:
        found = find_triplets(labels, indices_tuple)
    d = distances(s)
    apart = d if offsets is None else d + of_places(offsets, labels).to(d.dtype)
    gap = d[found.anchors, found.positives] - apart[found.anchors, found.negatives]  # (T,)
    hinge = (gap + margin).relu()
    count = hinge.count_nonzero().clamp(min=1)
    return _weighted(hinge, found.anchors, labels, weights).sum() / count


def sare(
    descriptors: Tensor,
    labels: Tensor,
    indices_tuple: IndicesTuple | None = None,
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
    s = similarities(descriptors, labels)  # (B, B)
    found = find_triplets(labels, indices_tuple)
    pushed = s if offsets is None else s - of_places(offsets, labels).to(s.dtype)
    gap = pushed[found.anchors, found.negatives] - s[found.anchors, found.positives]  # (T,)
    if joint:
        anchors, losses = _joint_losses(gap / temperature, found, len(labels))
    else:
        anchors, losses = found.anchors, F.softplus(gap / temperature)
    return _weighted(losses, anchors, labels, weights).sum() / max(len(losses), 1)


def _joint_losses(exponents: Tensor, found: Triplets, batch: int) -> tuple[Tensor, Tensor]:
    """log(1 + sum over the negatives of each anchor and positive): their anchors, losses."""
    keys, row = torch.unique(found.anchors * batch + found.positives, return_inverse=True)
    table = exponents.new_full((len(keys), batch + 1), -torch.inf)
    table[:, batch] = 0.0
    table = table.index_put((row, found.negatives), exponents)
    return keys // batch, torch.logsumexp(table, dim=1)


def _weighted(losses: Tensor, anchors: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        return losses
    return losses * of_places(weights, labels)[anchors].to(losses.dtype)


class Triplet(PriorLoss):
    """`triplet` with its settings; with counts, beta and kappa, its low-visit-bias form."""

    takes: ClassVar[str] = "descriptors"

    def __init__(
        self,
        counts: Counts | None = None,
        *,
        margin: float = 0.1,
        mining: Mining = "hard",
        beta: float = 0.0,
        kappa: float = 0.0,
        all_counts: Counts | None = None,
    ) -> None:
        super().__init__(counts, beta=beta, kappa=kappa, all_counts=all_counts)
        if mining not in ("all", "hard"):
            raise unknown_name("mining of triplets", mining, ("all", "hard"))
        self.margin, self.mining = margin, mining

    def forward(
        self, descriptors: Tensor, labels: Tensor, indices_tuple: IndicesTuple | None = None
    ) -> Tensor:
        """Average the loss of (B, D) descriptors over the triplets that violate it."""
        return self.weighed(
            triplet, descriptors, labels, indices_tuple, margin=self.margin, mining=self.mining
        )

    def reach(self) -> dict[str, Any]:
        """Offsets are distances, and a constant one moves the margin."""
        return {"gain": 1.0, "cancels": False, "margin": self.margin}


class Sare(PriorLoss):
    """`sare` with its settings; with counts, beta and kappa, its low-visit-bias form."""

    takes: ClassVar[str] = "descriptors"

    def __init__(
        self,
        counts: Counts | None = None,
        *,
        temperature: float = 0.07,
        joint: bool = False,
        beta: float = 0.0,
        kappa: float = 0.0,
        all_counts: Counts | None = None,
    ) -> None:
        super().__init__(counts, beta=beta, kappa=kappa, all_counts=all_counts)
        if temperature <= 0:
            raise SettingError(f"temperature is {temperature}; pass a number above 0, such as 0.07")
        self.temperature, self.joint = temperature, joint

    def forward(
        self, descriptors: Tensor, labels: Tensor, indices_tuple: IndicesTuple | None = None
    ) -> Tensor:
        """Average the loss of (B, D) descriptors over their triplets."""
        return self.weighed(
            sare, descriptors, labels, indices_tuple, temperature=self.temperature, joint=self.joint
        )

    def reach(self) -> dict[str, Any]:
        """Offsets are divided by the temperature, and a constant one moves the threshold."""
        return {"gain": 1 / self.temperature, "cancels": False, "margin": 0.0}
