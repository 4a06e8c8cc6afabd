"""A classifier of very many places: all of them, a sample, a shard per rank."""

import math
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.multiprocessing.spawn import start_processes

from evenplace.errors import SettingError
from evenplace.losses import (
    Columns,
    CrossEntropy,
    LowVisitBias,
    SampledClassifier,
    build_loss,
    loss_names,
)
from evenplace.losses.sampled import gather_rows, share_of

PLACES, DIMENSION, PHOTOS, RANKS = 23, 6, 8, 2


def counts() -> Tensor:
    return torch.randint(0, 60, (PLACES,), generator=torch.Generator().manual_seed(1))


def batch() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(2)
    z = torch.randn(PHOTOS, DIMENSION, generator=draw)
    return z, torch.randint(0, PLACES, (PHOTOS,), generator=draw)


def classifier(
    loss: nn.Module,
    fraction: float,
    seed: int = 0,
    sparse: bool = False,
    corrected: bool = False,
) -> SampledClassifier:
    draw = torch.Generator().manual_seed(seed)
    return SampledClassifier(
        loss,
        PLACES,
        DIMENSION,
        fraction=fraction,
        sparse=sparse,
        corrected=corrected,
        generator=draw,
    )


def test_the_whole_fraction_is_the_full_classifier_bit_for_bit() -> None:
    loss, (z, labels) = LowVisitBias(counts(), 0.3, 0.5), batch()
    whole = classifier(loss, 1.0)
    full = loss(F.normalize(z) @ F.normalize(whole.prototypes).T, labels)
    assert torch.equal(whole(z, labels), full)


@pytest.mark.parametrize("name", loss_names("cosines"))
def test_every_loss_can_be_sampled(name: str) -> None:
    z, labels = batch()
    loss = build_loss(name, counts()).eval()
    full = classifier(loss, 1.0)
    nearly = classifier(loss, 1 - 1e-9)  # chosen column by column, but all of them
    assert nearly(z, labels).item() == pytest.approx(full(z, labels).item(), rel=1e-6)
    some = classifier(loss, 0.4)(z, labels)
    some.backward()
    assert math.isfinite(some.item())


def test_the_batch_is_always_among_the_columns() -> None:
    seen: list[Columns] = []

    class Watch(nn.Module):
        def forward(self, cosines: Tensor, labels: Tensor, columns: Columns) -> Tensor:
            seen.append(columns)
            return cosines.sum()

    z, labels = batch()
    few = classifier(Watch(), 0.5)
    for _ in range(20):
        few(z, labels)
    for columns in seen:
        assert len(columns.places) == math.ceil(0.5 * PLACES)
        assert bool(torch.isin(labels, columns.places).all())
        assert bool((columns.places.diff() > 0).all())
    assert len({tuple(columns.places.tolist()) for columns in seen}) > 10


def test_only_the_chosen_prototypes_move() -> None:
    z, labels = batch()
    few = classifier(CrossEntropy(), 0.1)
    few(z, labels).backward()
    gradient = few.prototypes.grad
    assert gradient is not None
    moved = gradient.abs().sum(dim=1) > 0
    assert set(moved.nonzero()[:, 0].tolist()) == set(labels.tolist())


def test_sparse_gradients_are_the_dense_ones() -> None:
    z, labels = batch()
    dense, sparse = (classifier(CrossEntropy(), 0.5, sparse=sparse) for sparse in (False, True))
    for one in (dense, sparse):
        one(z, labels).backward()
    assert dense.prototypes.grad is not None
    assert sparse.prototypes.grad is not None
    assert sparse.prototypes.grad.is_sparse
    assert torch.equal(sparse.prototypes.grad.to_dense(), dense.prototypes.grad)


def test_corrected_columns_have_the_full_denominator_on_average() -> None:
    z, labels = batch()
    full = classifier(CrossEntropy(scale=4.0), 1.0)

    def denominators(corrected: bool) -> float:
        few = classifier(CrossEntropy(scale=4.0), 0.5, seed=3, corrected=corrected)
        few.prototypes.data = full.prototypes.data
        # loss = log(denominator) - target; one photo, so its exponential is the denominator.
        draws = [few(z[:1], labels[:1]).exp().item() for _ in range(800)]
        return float(sum(draws) / len(draws))

    exact = full(z[:1], labels[:1]).exp().item()
    assert denominators(corrected=True) == pytest.approx(exact, rel=0.02)
    assert denominators(corrected=False) < 0.8 * exact


def test_a_random_column_speaks_for_those_left_out_and_the_batch_for_itself() -> None:
    few = classifier(CrossEntropy(), 0.5, corrected=True)
    labels = torch.tensor([2, 2, 7, 11])
    columns = few._choose(labels)
    assert columns is not None
    assert columns.bonus is not None
    assert len(columns.places) == 12  # half of 23, rounded up
    present = torch.isin(columns.places, labels)
    assert columns.bonus[present].tolist() == [0.0] * 3
    assert columns.bonus[~present].tolist() == pytest.approx([math.log(20 / 9)] * 9)
    whole = classifier(CrossEntropy(), 0.1, corrected=True)._choose(torch.arange(PLACES))
    assert whole is not None
    assert whole.bonus is not None
    assert whole.bonus.tolist() == [0.0] * PLACES


def test_rows_are_dealt_to_ranks_in_order_and_evenly() -> None:
    assert [share_of(10, rank, 4) for rank in range(4)] == [(0, 2), (2, 5), (5, 7), (7, 10)]


def test_rows_of_ranks_that_hold_unequal_numbers_are_gathered_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = torch.tensor([[7.0], [8.0], [9.0]])  # what the second of two ranks holds

    def all_reduce(sizes: Tensor, *_: object) -> None:
        sizes += torch.tensor([0, 3])

    def all_gather(parts: list[Tensor], own: Tensor, *_: object) -> None:
        parts[0].copy_(own)
        parts[1].copy_(other)

    monkeypatch.setattr(dist, "get_world_size", lambda group: 2)
    monkeypatch.setattr(dist, "get_rank", lambda group: 0)
    monkeypatch.setattr(dist, "all_reduce", all_reduce)
    monkeypatch.setattr(dist, "all_gather", all_gather)
    group: Any = None
    found = gather_rows(torch.tensor([[1.0], [2.0]]), group)
    assert found[:, 0].tolist() == [1, 2, 7, 8, 9]


def test_prototypes_begin_small() -> None:
    many = classifier(CrossEntropy(), 1.0).prototypes.detach()
    drawn = torch.empty(PLACES, DIMENSION).normal_(generator=torch.Generator().manual_seed(0))
    assert torch.allclose(many, 0.01 * drawn)


@pytest.mark.parametrize("fraction", [0.0, 1.1, -1.0])
def test_impossible_fractions_are_refused(fraction: float) -> None:
    with pytest.raises(SettingError, match="fraction is"):
        classifier(CrossEntropy(), fraction)
    with pytest.raises(SettingError, match="sparse gradients"):
        classifier(CrossEntropy(), 1.0, sparse=True)


SHARDED = [("low-visit-bias", 1.0), ("distribution-balanced", 1.0), ("low-visit-bias", 0.5)]


def run_rank(rank: int, folder: str) -> None:
    """Be one rank, with half of the photos and of the places; save losses and gradients."""
    torch.set_num_threads(1)
    meeting = f"file://{folder}/meet"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=RANKS)
    torch.manual_seed(rank)
    found = [run_sharded(rank, name, fraction) for name, fraction in SHARDED]
    torch.save(found, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def run_sharded(rank: int, name: str, fraction: float) -> dict[str, Tensor | str | None]:
    """In float64: what differs is then a mistake, not a processor's rounding."""
    z, labels = batch()
    z = z.double()
    part = SampledClassifier(
        build_loss(name, counts()), PLACES, DIMENSION, fraction=fraction, group=dist.group.WORLD
    )
    whole = classifier(CrossEntropy(), 1.0).prototypes.detach().double()
    part.prototypes.data = whole[part.first : part.last].clone()
    mine = z.chunk(RANKS)[rank].clone().requires_grad_()
    loss = part(mine, labels.chunk(RANKS)[rank])
    loss.backward()
    gradient, mine.grad = mine.grad, None
    part.data_parallel = True
    part.generator = torch.Generator().manual_seed(5)
    part(mine, labels.chunk(RANKS)[rank]).backward()
    return {
        "loss": loss.detach(),
        "descriptors": gradient,
        "for averaging": mine.grad,
        "prototypes": part.prototypes.grad,
        "full": part.full_prototypes(),
        "unequal": part(*(rows[rank : 2 * rank + 1] for rows in (z, labels))).detach(),
    }


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Tensor]]]:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    folder = tmp_path_factory.mktemp("ranks")
    how = {"nprocs": RANKS, "start_method": "spawn"}
    start_processes(run_rank, (str(folder),), **how)  # type: ignore[no-untyped-call]
    return [torch.load(folder / f"{rank}.pt") for rank in range(RANKS)]


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1])
def test_two_ranks_equal_one(ranks: list[list[dict[str, Tensor]]], which: int) -> None:
    one = classifier(build_loss(SHARDED[which][0], counts()), 1.0).double()
    z, labels = batch()
    z = z.double().requires_grad_()
    loss = one(z, labels)
    loss.backward()
    parts = [rank[which] for rank in ranks]
    assert z.grad is not None
    assert one.prototypes.grad is not None
    for part in parts:
        assert part["loss"].item() == pytest.approx(loss.item(), abs=1e-9)
        assert torch.equal(part["full"], one.prototypes)
    assert torch.allclose(torch.cat([p["descriptors"] for p in parts]), z.grad, atol=1e-9)
    averaged = torch.cat([p["for averaging"] for p in parts]) / RANKS
    assert torch.allclose(averaged, z.grad, atol=1e-9)
    # Two backward passes have added up.
    gradient = torch.cat([p["prototypes"] for p in parts]) / 2
    assert torch.allclose(gradient, one.prototypes.grad, atol=1e-9)


@pytest.mark.slow
def test_two_ranks_that_sample_agree_on_their_loss(ranks: list[list[dict[str, Tensor]]]) -> None:
    first, second = (rank[2] for rank in ranks)
    assert torch.equal(first["loss"], second["loss"])
    assert math.isfinite(first["loss"].item())
    for part in (first, second):
        assert bool(torch.isfinite(part["descriptors"]).all())
        assert bool((part["descriptors"].abs().sum(dim=1) > 0).all())


@pytest.mark.slow
def test_ranks_may_hold_unequal_batches(ranks: list[list[dict[str, Tensor]]]) -> None:
    z, labels = batch()
    one = classifier(build_loss(SHARDED[0][0], counts()), 1.0).double()
    wanted = one(z[:3].double(), labels[:3]).item()
    for rank in ranks:
        assert rank[0]["unequal"].item() == pytest.approx(wanted, abs=1e-9)


def test_one_rank_is_the_full_classifier_and_needs_a_place(tmp_path: Path) -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    try:
        torch.manual_seed(0)
        alone = SampledClassifier(CrossEntropy(), 3, 2, group=dist.group.WORLD).double()
        z = torch.tensor([[1.0, 0.5], [0.2, -0.9]], dtype=torch.float64, requires_grad=True)
        places = torch.tensor([1, 2])
        loss = alone(z, places)
        full = CrossEntropy()(F.normalize(z) @ F.normalize(alone.prototypes).T, places)
        assert loss.item() == pytest.approx(full.item(), rel=1e-9)
        for given in (z, alone.prototypes):
            (mine,), (theirs,) = (
                torch.autograd.grad(one, given, retain_graph=True) for one in (loss, full)
            )
            assert torch.allclose(mine, theirs, rtol=1e-9, atol=1e-12)
        assert torch.equal(alone.full_prototypes(), alone.prototypes)
        assert SampledClassifier(CrossEntropy(), 1, 2, group=dist.group.WORLD).last == 1
        with pytest.raises(SettingError, match="0 places cannot be dealt to 1 ranks"):
            SampledClassifier(CrossEntropy(), 0, 2, group=dist.group.WORLD)
    finally:
        dist.destroy_process_group()
