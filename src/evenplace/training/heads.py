"""Classifiers as training sees them: whole in one process, a shard of each on every rank.

b this rank's batch · B all ranks' · C places of a group · D descriptor
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenplace.errors import SettingError
from evenplace.losses import Columns
from evenplace.networks.classifiers import GroupClassifiers
from evenplace.training.distributed import Ranks


class SoftmaxHeads:
    """The prototypes of each group; with several ranks, each holds and trains its part of them.

    110,000 places of 512 numbers are 225 MB, and Adam's moments twice that: dealt to eight
    ranks, 84 MB each, and a step multiplies by an eighth of the matrix.
    """

    def __init__(self, classifiers: GroupClassifiers, ranks: Ranks) -> None:
        self.classifiers, self.ranks = classifiers, ranks
        if ranks.count == 1:
            self.prototypes = list(classifiers.prototypes)
            return
        smallest = min(len(rows) for rows in classifiers.members)
        if smallest < ranks.count:
            raise SettingError(
                f"a group of {smallest} place(s) cannot be dealt to {ranks.count} ranks; "
                "use fewer ranks or fewer groups"
            )
        classifiers.requires_grad_(False)  # only the shards train; the whole is filled at the end
        self.prototypes = []
        for whole in classifiers.prototypes:
            start, stop = ranks.edges(len(whole))
            self.prototypes.append(nn.Parameter(whole.detach()[start:stop].clone()))

    def cosines(self, descriptors: Tensor, head: int) -> tuple[Tensor, Columns | None]:
        """Cosines of gathered descriptors to the places at hand.  (B, D) -> (B, S)."""
        columns = None
        if self.ranks.group is not None:
            total = len(self.classifiers.members[head])
            start, stop = self.ranks.edges(total)
            here = torch.arange(start, stop, device=descriptors.device)
            columns = Columns(here, group=self.ranks.group)
        return descriptors @ F.normalize(self.prototypes[head], dim=1).T, columns

    def shards(self) -> dict[str, nn.Parameter]:
        """What the network itself does not hold, to be kept in a checkpoint."""
        if self.ranks.count == 1:
            return {}
        return {f"shard.{number}": one for number, one in enumerate(self.prototypes)}

    @torch.no_grad()
    def collect(self) -> None:
        """Fill the whole classifiers from the shards, on every rank."""
        if self.ranks.group is None:
            return
        for whole, part in zip(self.classifiers.prototypes, self.prototypes, strict=True):
            whole.copy_(self.ranks.gather(part.detach()))
