"""A classifier for very many places: a sample of them per step, a shard of them per rank.

After Partial FC (An et al. 2021).  Holds the prototypes and a classification loss; knows the
loss only by its call, ``loss(cosines, labels, columns)``.
"""

# b this rank's batch · B all ranks' · D descriptor · C places · S columns in this step

import math
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from evenplace.errors import SettingError

from .softmax import Columns


class SampledClassifier(nn.Module):
    """Prototypes of many places, and the loss of descriptors against a sample of them.

    `fraction` of the places are columns in each step: those of the batch, and others at random.
    At fraction = 1 it is the full classifier, bit for bit.  Below, the softmax's denominator
    lacks what was left out, as in Partial FC; `corrected` lets each random column speak for
    (C - P) / (S - P) of them (P the batch's places), which makes the denominator's expectation
    the full one.

    With `group`, each of its ranks holds C / ranks prototypes and calls with its own photos;
    the loss is that of all photos against all places, on every rank, and a descriptor's
    gradient is that of this loss.  Keep the classifier outside DistributedDataParallel, which
    averages over ranks: `data_parallel` multiplies descriptor gradients by their number to make
    up for it in the network before it.

    `sparse` gives the prototypes sparse gradients (for SGD or SparseAdam): a tenth of the
    places then costs a tenth of the memory.
    """

    def __init__(
        self,
        loss: nn.Module,
        places: int,
        dimension: int,
        *,
        fraction: float = 1.0,
        corrected: bool = False,
        sparse: bool = False,
        group: "dist.ProcessGroup | None" = None,
        data_parallel: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if not 0 < fraction <= 1:
            raise SettingError(f"fraction is {fraction}; pass a number above 0, at most 1")
        if sparse and fraction == 1:
            raise SettingError("sparse gradients of all places save nothing; pass fraction below 1")
        self.loss, self.places = loss, places
        self.fraction, self.corrected, self.sparse = fraction, corrected, sparse
        self.group, self.data_parallel, self.generator = group, data_parallel, generator
        self.first, self.last = _shard(places, group)
        start = torch.empty(self.last - self.first, dimension)
        self.prototypes = nn.Parameter(start.normal_(0, 0.01, generator=generator))  # (C', D)

    def forward(self, descriptors: Tensor, labels: Tensor) -> Tensor:
        """Average the loss of (b, D) descriptors at (b,) labels; over all ranks' photos."""
        if self.group is not None:
            descriptors = GatherRows.apply(  # type: ignore[no-untyped-call]
                descriptors, self.group, True, self.data_parallel
            )  # (B, D)
            labels = gather_rows(labels, self.group)
        columns = self._choose(labels)
        loss: Tensor = self.loss(self.compare(descriptors, labels, columns), labels, columns)
        return loss

    def compare(self, descriptors: Tensor, labels: Tensor, columns: Columns | None) -> Tensor:
        """Cosines of (B, D) descriptors to this step's places, (B, S).  labels: whose they are."""
        rows: Tensor = self.prototypes
        if columns is not None and len(columns.places) < len(rows):
            rows = F.embedding(columns.places - self.first, rows, sparse=self.sparse)
        return F.normalize(descriptors, dim=1) @ F.normalize(rows, dim=1).T

    def full_prototypes(self) -> Tensor:
        """Bring the prototypes of all places together, on every rank: (C, D), detached."""
        local = self.prototypes.detach()
        return local if self.group is None else gather_rows(local, self.group)

    def _choose(self, labels: Tensor) -> Columns | None:
        """Choose this step's places among the rank's own: the batch's, then others at random."""
        device, size = labels.device, self.last - self.first
        if self.fraction == 1:
            if self.group is None:
                return None
            return Columns(torch.arange(self.first, self.last, device=device), group=self.group)
        mine = labels[(labels >= self.first) & (labels < self.last)] - self.first
        lot = torch.rand(size, generator=self.generator).to(device)
        lot[mine] = 2.0  # above every draw
        wanted = max(math.ceil(self.fraction * size), int((lot == 2.0).sum()))
        kept = lot.topk(wanted).indices.sort().values  # (S,)
        bonus = _bonus(lot[kept] == 2.0, size) if self.corrected else None
        return Columns(kept + self.first, bonus, self.group)


def _bonus(present: Tensor, size: int) -> Tensor:
    """Let each random column stand for those like it that were left out, as a logit."""
    drawn = int((~present).sum())
    others = size - (len(present) - drawn)
    each = math.log(others / drawn) if drawn else 0.0
    return torch.where(present, 0.0, each)  # (S,)


def _shard(places: int, group: "dist.ProcessGroup | None") -> tuple[int, int]:
    if group is None:
        return 0, places
    ranks = dist.get_world_size(group)
    if places < ranks:
        raise SettingError(f"{places} places cannot be dealt to {ranks} ranks; use fewer ranks")
    return share_of(places, dist.get_rank(group), ranks)


def share_of(rows: int, rank: int, ranks: int) -> tuple[int, int]:
    """Where a rank's part of so many rows begins and ends; parts differ by one at most."""
    return rows * rank // ranks, rows * (rank + 1) // ranks


def gather_rows(rows: Tensor, group: "dist.ProcessGroup") -> Tensor:
    """All ranks' rows, of which each rank may have another number.  (b, ...) -> (B, ...)."""
    return _gather(rows, group)[0]


def _gather(rows: Tensor, group: "dist.ProcessGroup") -> tuple[Tensor, int]:
    """The same, and where this rank's own begin."""
    ranks = dist.get_world_size(group)
    sizes = torch.zeros(ranks, dtype=torch.int64, device=rows.device)
    sizes[dist.get_rank(group)] = len(rows)
    dist.all_reduce(sizes, dist.ReduceOp.SUM, group)
    padded = rows.new_zeros(int(sizes.max()), *rows.shape[1:])
    padded[: len(rows)] = rows
    parts = [torch.empty_like(padded) for _ in range(ranks)]
    dist.all_gather(parts, padded, group)
    every = torch.cat([part[:size] for part, size in zip(parts, sizes.tolist(), strict=True)])
    return every, int(sizes[: dist.get_rank(group)].sum())


class GatherRows(torch.autograd.Function):
    """All ranks' rows, and their gradients on the way back.

    summed: each rank's loss sees only its own columns, so that gradients are summed over the
    ranks first; otherwise every rank computes the whole loss.  multiplied: by the number of
    ranks, because DistributedDataParallel will divide by it.
    """

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, group: "dist.ProcessGroup", summed: bool, multiplied: bool
    ) -> Tensor:
        ctx.group, ctx.summed, ctx.rows = group, summed, len(rows)
        ctx.times = dist.get_world_size(group) if multiplied else 1
        every, ctx.start = _gather(rows, group)
        return every

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, incoming: Tensor) -> tuple[Tensor, None, None, None]:
        if ctx.summed:
            incoming = incoming.contiguous().clone()  # autograd owns the other
            dist.all_reduce(incoming, dist.ReduceOp.SUM, ctx.group)
        return incoming[ctx.start : ctx.start + ctx.rows] * ctx.times, None, None, None
