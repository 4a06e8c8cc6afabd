"""Places' scores: one cosine classifier a group of places, or one a partition (a level).

B batch · C places · L levels · D descriptor
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenplace.errors import SettingError, unknown_name

COMBINE = ("product", "sum")


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
    def set_prototypes(self, prototypes: Tensor) -> None:
        """Start from given prototypes, such as the mean descriptor of each place.  (C, D)."""
        for rows, own in zip(self.members, self.prototypes, strict=True):
            own.copy_(F.normalize(prototypes[rows].to(own.device), dim=1))


class LevelClassifiers(nn.Module):
    """A cosine classifier for each level; a place scores by the classes it lies in, one of each.

        product   Π_l p_l(parent_l(c))     HGE: coarse levels rule out, fine ones decide
        sum       Σ_l p_l(parent_l(c))     CPlaNet: any level may vouch for a place

    The product is `joint`'s, the sum `retrieval.level_scores`'.  parents: (L, C), the class of each
    place at each level, counted from 0.
    """

    parents: Tensor

    def __init__(
        self, parents: Sequence[Sequence[int]] | Tensor, dim: int, combine: str = "product"
    ) -> None:
        super().__init__()
        table = torch.as_tensor(parents).long()
        if table.ndim != 2 or (table.numel() and int(table.min()) < 0):
            raise SettingError(f"parents of shape {tuple(table.shape)} must be (levels, places)")
        if combine not in COMBINE:
            raise unknown_name("way to combine levels", combine, COMBINE)
        self.combine = combine
        self.register_buffer("parents", table)
        self.prototypes = nn.ParameterList(
            nn.Parameter(F.normalize(torch.randn(int(row.max()) + 1, dim), dim=1)) for row in table
        )

    def __len__(self) -> int:
        return len(self.prototypes)

    @property
    def place_count(self) -> int:
        return self.parents.shape[1]

    def forward(self, descriptors: Tensor, level: int) -> Tensor:
        """Cosines to the classes of one level.  descriptors: (B, D) unit -> (B, C_l)."""
        return descriptors @ F.normalize(self.prototypes[level], dim=1).T

    def joint(self) -> Tensor:
        """One vector a place that ranks places as `product` does.  -> (C, D).

        log Π_l p_l = Σ_l s w_l·z − Σ_l log Z_l, and the last sum is the same for every place;
        so the sum of a place's prototypes is its prototype, and one matrix product scores all.
        """
        rows = zip(self.prototypes, self.parents, strict=True)
        return torch.stack([F.normalize(own, dim=1)[row] for own, row in rows]).sum(dim=0)

    @torch.no_grad()
    def set_prototypes(self, prototypes: Tensor) -> None:
        """Start each class where the places in it are.  prototypes: (C, D), longer counts more."""
        for own, row in zip(self.prototypes, self.parents, strict=True):
            sums = torch.zeros_like(own).index_add_(0, row, prototypes.to(own))
            own.copy_(F.normalize(sums, dim=1))
