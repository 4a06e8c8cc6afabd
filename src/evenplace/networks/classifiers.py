"""One cosine classifier a group of places, and their joint scores over all places.

B batch · C places · D descriptor
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class GroupClassifiers(nn.Module):
    """A prototype for each place, kept group by group, because each group is its own softmax.

    Cells of a group are never neighbours, so no softmax has to tell two sides of a line apart.
    groups: (C,) the group of each place.
    """

    order: Tensor

    def __init__(self, groups: Sequence[int] | Tensor, dim: int) -> None:
        super().__init__()
        group_of = torch.as_tensor(groups, device="cpu").long()
        self.members = [torch.where(group_of == g)[0] for g in torch.unique(group_of).tolist()]
        self.prototypes = nn.ParameterList(
            nn.Parameter(F.normalize(torch.randn(len(rows), dim), dim=1)) for rows in self.members
        )
        joined = torch.cat(self.members) if self.members else group_of
        self.register_buffer("order", torch.argsort(joined), persistent=False)

    def __len__(self) -> int:
        return len(self.members)

    @property
    def place_count(self) -> int:
        return len(self.order)

    def forward(self, descriptors: Tensor, group: int) -> Tensor:
        """Cosines to the places of one group.  descriptors: (B, D) unit -> (B, C_group)."""
        return descriptors @ F.normalize(self.prototypes[group], dim=1).T

    def joint(self, *, raw: bool = False) -> Tensor:
        """Prototypes of all places, in the order of the places.  -> (C, D).

        Unit ones make scores cosines.  Raw ones are what Divide&Classify ranks by: there a
        prototype's length acts as a learnt prior, and weighs the groups against each other.
        """
        stacked = torch.cat(list(self.prototypes))[self.order]
        return stacked if raw else F.normalize(stacked, dim=1)

    @torch.no_grad()
    def set_prototypes(self, prototypes: Tensor, *, raw: bool = False) -> None:
        """Start from given prototypes, such as the mean descriptor of each place.  (C, D)."""
        for rows, own in zip(self.members, self.prototypes, strict=True):
            mine = prototypes[rows].to(own.device)
            own.copy_(mine if raw else F.normalize(mine, dim=1))
