"""Several processes, one training: who am I, and how do rows of all of us come together.

`torchrun` starts the processes and tells each its rank; without it there is one, and every
function here does nothing at no cost.

    b this rank's rows · B all ranks' · D columns
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache

import torch
import torch.distributed as dist
from torch import Tensor

from evenplace.arrays import Array
from evenplace.errors import RunError
from evenplace.losses.sampled import GatherRows, gather_rows, share_of


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together."""

    rank: int = 0
    count: int = 1
    local: int = 0  # the rank on this machine
    group: "dist.ProcessGroup | None" = None
    patient: "dist.ProcessGroup | None" = None  # the same processes; it waits for days

    @property
    def first(self) -> bool:
        """Whether this process writes what is written once."""
        return self.rank == 0

    def wait(self) -> None:
        """Go on when all ranks are here."""
        if self.group is not None:
            dist.barrier(self.group)

    def lead(self, work: Callable[[], object]) -> None:
        """Rank 0 works, however long that takes; the others wait.  Where it fails, all fail.

        A barrier ends in the group's time-out (10 minutes with nccl, 30 with gloo), and filling
        the cache of a city takes longer.
        """
        if self.patient is None:
            work()
            return
        done = torch.zeros(1)
        try:
            if self.first:
                work()
                done += 1
        finally:
            dist.broadcast(done, 0, self.patient)
        if not done:
            raise RunError("the first process has failed, and its own error says why; start again")

    def edges(self, rows: int) -> tuple[int, int]:
        """Where this rank's part of so many rows begins and ends; parts differ by one at most."""
        return share_of(rows, self.rank, self.count)

    def gather(self, rows: Tensor, *, sharded: bool = False) -> Tensor:
        """Put the rows of all ranks under each other, on every rank, differentiably.

        A row's gradient comes back times the number of ranks, because DistributedDataParallel
        will divide by it.  sharded: each rank's loss sees only its own columns, so that gradients
        are summed over the ranks first; otherwise every rank computes the whole loss.
        """
        if self.group is None:
            return rows
        gathered: Tensor = GatherRows.apply(  # type: ignore[no-untyped-call]
            rows, self.group, sharded, True
        )
        return gathered

    def gather_array(self, rows: Array) -> Array:
        """The same for numbers that nobody differentiates."""
        if self.group is None:
            return rows
        home = "cuda" if dist.get_backend(self.group) == "nccl" else "cpu"  # where it can be sent
        there = torch.from_numpy(rows).to(home)
        return gather_rows(there, self.group).cpu().numpy()

    def share(self, mine: dict[str, str]) -> dict[str, str]:
        """What any rank has found, for all of them."""
        if self.group is None:
            return mine
        parts: list[dict[str, str]] = [{} for _ in range(self.count)]
        dist.all_gather_object(parts, mine, self.group)
        return {key: value for part in parts for key, value in part.items()}


def join_ranks(device: str = "auto") -> Ranks:
    """Join the processes that torchrun started; alone where it did not."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        return Ranks()
    cuda = device.startswith("cuda") or (device == "auto" and torch.cuda.is_available())
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if cuda:
        torch.cuda.set_device(local)
    if not dist.is_initialized():
        dist.init_process_group("nccl" if cuda else "gloo")
    return Ranks(dist.get_rank(), dist.get_world_size(), local, dist.group.WORLD, _patient_group())


@cache
def _patient_group() -> "dist.ProcessGroup":
    return dist.new_group(timeout=timedelta(days=365), backend="gloo")  # type: ignore[no-any-return]


def rank_of_process() -> int:
    """Which of torchrun's processes this is; 0 without torchrun."""
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    """How many processes torchrun started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def leave_ranks() -> None:
    """Say good-bye to the other processes, if there are any."""
    if dist.is_available() and dist.is_initialized():
        _patient_group.cache_clear()
        dist.destroy_process_group()
