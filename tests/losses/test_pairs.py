"""Losses over the pairs and triplets of a batch: loops, gradients, limits, edges."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_metric_learning.losses import (
    ContrastiveLoss,
    CrossBatchMemory,
    MultiSimilarityLoss,
    TripletMarginLoss,
)
from pytorch_metric_learning.miners import (
    BatchHardMiner,
    MultiSimilarityMiner,
    TripletMarginMiner,
)
from torch import Tensor, nn

from evenplace import losses as ev
from evenplace.errors import SettingError
from evenplace.losses.similarity import of_places
from tests import oracle_losses as oracle

COUNTS = [4, 20, 0, 7]
LABELS = [0, 0, 1, 1, 1, 3, 9, 3]  # 9 is a place nobody counted
WEIGHTS = oracle.class_weights(COUNTS, 0.4)
OFFSETS = oracle.logit_offsets(COUNTS, 0.1)

Rows = list[list[float]]


@dataclass(frozen=True)
class Case:
    """A loss as a module, and its loops."""

    module: Callable[[], nn.Module]
    loops: Callable[[Rows], float]


CASES = {
    "multi_similarity": Case(
        lambda: ev.MultiSimilarity(gamma_p=2.0, gamma_n=10.0, tau=0.3),
        lambda z: oracle.multi_similarity(z, LABELS, oracle.all_pairs(LABELS), 2.0, 10.0, 0.3),
    ),
    "multi_similarity_mined": Case(
        lambda: ev.MultiSimilarity(mining=0.1),
        lambda z: oracle.multi_similarity(
            z, LABELS, oracle.mined_pairs(z, LABELS, 0.1), 1.0, 50.0, 0.0
        ),
    ),
    "low_visit_bias_pairs": Case(
        lambda: ev.LowVisitBiasPairs(COUNTS, beta=0.4, kappa=0.1),
        lambda z: oracle.multi_similarity(
            z, LABELS, oracle.all_pairs(LABELS), 1.0, 50.0, 0.0, WEIGHTS, OFFSETS
        ),
    ),
    "low_visit_bias_pairs_centred": Case(
        lambda: ev.LowVisitBiasPairs(COUNTS, beta=0.4, kappa=0.1, centred=True),
        lambda z: oracle.multi_similarity(
            z,
            LABELS,
            oracle.all_pairs(LABELS),
            1.0,
            50.0,
            0.0,
            WEIGHTS,
            [nu - sum(OFFSETS) / 4 for nu in OFFSETS],
        ),
    ),
    "low_visit_bias_pairs_constant": Case(
        lambda: ev.LowVisitBiasPairs(COUNTS, beta=0.0, kappa=0.1, constant=True),
        lambda z: oracle.multi_similarity(
            z, LABELS, oracle.all_pairs(LABELS), 1.0, 50.0, 0.0, None, [sum(OFFSETS) / 4] * 4
        ),
    ),
    "contrastive": Case(
        lambda: ev.Contrastive(pos_margin=0.1, neg_margin=1.3),
        lambda z: oracle.contrastive(z, LABELS, 0.1, 1.3, squared=True),
    ),
    "contrastive_with_low_visit_bias": Case(
        lambda: ev.Contrastive(COUNTS, neg_margin=1.3, squared=False, beta=0.4, kappa=0.1),
        lambda z: oracle.contrastive(z, LABELS, 0.0, 1.3, False, WEIGHTS, OFFSETS),
    ),
    "triplet_hard": Case(
        lambda: ev.Triplet(margin=0.2),
        lambda z: oracle.triplet(z, LABELS, oracle.hardest_triplets(z, LABELS), 0.2),
    ),
    "triplet_all": Case(
        lambda: ev.Triplet(margin=0.2, mining="all"),
        lambda z: oracle.triplet(z, LABELS, oracle.all_triplets(LABELS), 0.2),
    ),
    "triplet_with_low_visit_bias": Case(
        lambda: ev.Triplet(COUNTS, margin=0.2, beta=0.4, kappa=0.1),
        lambda z: oracle.triplet(
            z, LABELS, oracle.hardest_triplets(z, LABELS), 0.2, WEIGHTS, OFFSETS
        ),
    ),
    "sare": Case(
        lambda: ev.Sare(temperature=0.3),
        lambda z: oracle.sare(z, LABELS, 0.3, joint=False),
    ),
    "sare_joint_with_low_visit_bias": Case(
        lambda: ev.Sare(COUNTS, temperature=0.3, joint=True, beta=0.4, kappa=0.1),
        lambda z: oracle.sare(z, LABELS, 0.3, True, WEIGHTS, OFFSETS),
    ),
}

every_loss = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
labels = torch.tensor(LABELS)


@pytest.fixture
def descriptors() -> Tensor:
    draw = torch.Generator().manual_seed(5)
    return torch.randn(len(LABELS), 4, generator=draw, dtype=torch.float64)


@every_loss
def test_loss_equals_its_loops(case: Case, descriptors: Tensor) -> None:
    expected = case.loops(descriptors.tolist())
    assert expected > 0
    # Weights and offsets are held in float32.
    assert case.module()(descriptors, labels).item() == pytest.approx(expected, rel=1e-6)


@every_loss
def test_gradient_equals_differences(case: Case, descriptors: Tensor) -> None:
    loss = case.module()
    assert torch.autograd.gradcheck(lambda z: loss(z, labels), descriptors.requires_grad_())


@every_loss
def test_half_precision_is_widened(
    case: Case, descriptors: Tensor, check_widening: Callable[..., None]
) -> None:
    check_widening(case.module(), descriptors, labels)


@every_loss
def test_autocast_changes_nothing(case: Case, descriptors: Tensor) -> None:
    loss, single = case.module(), descriptors.float().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = loss(single, labels)
        (gradient,) = torch.autograd.grad(inside, single)
    outside = loss(single, labels)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, outside)
    assert torch.equal(gradient, torch.autograd.grad(outside, single)[0])


@every_loss
def test_the_gradient_is_as_exact_as_its_numbers(case: Case, descriptors: Tensor) -> None:
    """bfloat16 anywhere on the way would be off by a hundredth."""
    gradients = []
    for numbers in (descriptors, descriptors.float()):
        z = numbers.clone().requires_grad_()
        gradients.append(torch.autograd.grad(case.module()(z, labels), z)[0].double())
    exact, single = gradients
    assert torch.allclose(single, exact, rtol=1e-3, atol=1e-5)


@every_loss
@pytest.mark.parametrize(
    "few",
    [[], [3], [0, 1, 3, 9]],
    ids=["no photos", "one photo", "no positives"],
)
def test_a_batch_without_pairs_costs_nothing_or_only_its_negatives(
    case: Case, few: list[int]
) -> None:
    z = torch.randn(len(few), 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    loss = case.module()
    found = loss(z, torch.tensor(few, dtype=torch.int64))
    (gradient,) = torch.autograd.grad(found, z)
    assert bool(torch.isfinite(gradient).all())
    pushes = len(few) > 1 and (
        isinstance(loss, ev.Contrastive)
        or (isinstance(loss, ev.MultiSimilarity | ev.LowVisitBiasPairs) and loss.mining is None)
    )
    assert (found.item() > 0) == pushes


@every_loss
def test_a_batch_of_one_place_has_no_negatives_to_fear(case: Case) -> None:
    z = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    found = case.module()(z, torch.ones(5, dtype=torch.int64))
    (gradient,) = torch.autograd.grad(found, z)
    assert math.isfinite(found.item())
    assert bool(torch.isfinite(gradient).all())


@every_loss
@pytest.mark.parametrize("arrays", [3, 4])
def test_no_mined_pairs_cost_nothing(case: Case, arrays: int, descriptors: Tensor) -> None:
    none = [torch.zeros(0, dtype=torch.int64)] * arrays
    z = descriptors.requires_grad_()
    found = case.module()(z, labels, none)
    (gradient,) = torch.autograd.grad(found, z)
    assert found.item() == 0.0
    assert bool((gradient == 0).all())


@every_loss
def test_equal_and_zero_descriptors_give_finite_gradients(case: Case) -> None:
    z = torch.ones(len(LABELS), 4)
    z[3] = 0.0
    z.requires_grad_()
    found = case.module()(z, labels)
    (gradient,) = torch.autograd.grad(found, z)
    assert math.isfinite(found.item())
    assert bool(torch.isfinite(gradient).all())


@every_loss
def test_length_does_not_matter(case: Case, descriptors: Tensor) -> None:
    longer = descriptors * torch.linspace(0.1, 50, len(LABELS), dtype=torch.float64)[:, None]
    loss = case.module()
    assert loss(longer, labels).item() == pytest.approx(loss(descriptors, labels).item())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_without_strength_low_visit_bias_is_multi_similarity_bit_for_bit(
    descriptors: Tensor, dtype: torch.dtype
) -> None:
    ours = descriptors.to(dtype).requires_grad_()
    host = descriptors.to(dtype).requires_grad_()
    biased = ev.LowVisitBiasPairs(COUNTS, beta=0.0, kappa=0.0)(ours, labels)
    plain = ev.MultiSimilarity()(host, labels)
    assert torch.equal(biased, plain)
    assert torch.equal(torch.autograd.grad(biased, ours)[0], torch.autograd.grad(plain, host)[0])


@pytest.mark.parametrize("kind", [ev.Triplet, ev.Contrastive, ev.Sare])
def test_counts_without_strength_change_nothing_bit_for_bit(
    kind: type[nn.Module], descriptors: Tensor
) -> None:
    single = descriptors.float()
    assert torch.equal(kind(COUNTS)(single, labels), kind()(single, labels))


@settings(deadline=None, max_examples=25)
@given(st.floats(0.05, 0.5), st.integers(0, 1000))
def test_a_constant_offset_does_not_cancel_in_pairs(shift: float, seed: int) -> None:
    z = torch.randn(8, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    plain = ev.multi_similarity(z, labels)
    moved = ev.multi_similarity(z, labels, offsets=torch.full((4,), shift, dtype=torch.float64))
    assert moved < plain  # it raises the threshold of every negative


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 500), min_size=2, max_size=30), st.floats(0, 1))
def test_centred_and_constant_offsets_make_up_the_papers(counts: list[int], kappa: float) -> None:
    whole = ev.LowVisitBiasPairs(counts, kappa=kappa).offsets
    centred = ev.LowVisitBiasPairs(counts, kappa=kappa, centred=True).offsets
    constant = ev.LowVisitBiasPairs(counts, kappa=kappa, constant=True).offsets
    assert whole is not None
    assert centred is not None
    assert constant is not None
    assert float(centred.mean()) == pytest.approx(0.0, abs=1e-5)
    assert bool((constant == constant[0]).all())
    assert torch.allclose(centred + constant, whole, atol=1e-5)


def test_centred_and_constant_together_are_refused() -> None:
    with pytest.raises(SettingError, match="choose one"):
        ev.LowVisitBiasPairs(COUNTS, centred=True, constant=True)


def compare(theirs: Any, ours: nn.Module, z: Tensor, chosen: Any = None, **ref: Tensor) -> None:
    mine, yours = z.clone().requires_grad_(), z.clone().requires_grad_()
    found, wanted = ours(mine, labels, chosen, **ref), theirs(yours, labels, chosen, **ref)
    assert found.item() == pytest.approx(wanted.item(), rel=1e-9)
    (a,), (b,) = torch.autograd.grad(found, mine), torch.autograd.grad(wanted, yours)
    assert torch.allclose(a, b, rtol=1e-7, atol=1e-10)


PAIRED = [
    (MultiSimilarityLoss(alpha=1, beta=50, base=0.0), ev.MultiSimilarity()),
    (MultiSimilarityLoss(), ev.MultiSimilarity(gamma_p=2.0, tau=0.5)),
    (MultiSimilarityLoss(alpha=1, base=0.0), ev.LowVisitBiasPairs(COUNTS, 0.0, 0.0)),
    (ContrastiveLoss(), ev.Contrastive(neg_margin=1.0, squared=False)),
    (TripletMarginLoss(margin=0.2), ev.Triplet(margin=0.2, mining="all")),
]


@pytest.mark.parametrize(("theirs", "ours"), PAIRED)
@pytest.mark.parametrize(
    "miner", [None, MultiSimilarityMiner(0.1), BatchHardMiner(), TripletMarginMiner(0.2)]
)
def test_losses_equal_pytorch_metric_learning(
    theirs: Any, ours: nn.Module, miner: Any, descriptors: Tensor
) -> None:
    chosen = None if miner is None else miner(descriptors, labels)
    compare(theirs, ours, descriptors, chosen)


@pytest.mark.parametrize(("theirs", "ours"), PAIRED)
@pytest.mark.parametrize("miner", [None, MultiSimilarityMiner(0.1), TripletMarginMiner(0.2)])
def test_references_equal_pytorch_metric_learning(
    theirs: Any, ours: nn.Module, miner: Any, descriptors: Tensor
) -> None:
    others = torch.randn(
        11, descriptors.shape[1], generator=torch.Generator().manual_seed(77), dtype=torch.float64
    )
    where = torch.tensor([0, 1, 3, 9, 2, 0, 1, 3, 9, 2, 0])
    chosen = None if miner is None else miner(descriptors, labels, others, where)
    compare(theirs, ours, descriptors, chosen, ref_emb=others, ref_labels=where)
    compare(theirs, ours, descriptors, ref_emb=descriptors.flip(1), ref_labels=labels)


class Memory(CrossBatchMemory):  # type: ignore[misc]
    """As docs/plugins.md has it."""

    @staticmethod
    def supported_losses() -> list[str]:
        return [type(ours).__name__ for _, ours in PAIRED]


@pytest.mark.parametrize(("theirs", "ours"), PAIRED)
@pytest.mark.parametrize("miner", [None, MultiSimilarityMiner(0.1), TripletMarginMiner(0.2)])
def test_a_memory_of_batches_equals_pytorch_metric_learning(
    theirs: Any, ours: nn.Module, miner: Any
) -> None:
    memories = CrossBatchMemory(theirs, 4, 20, miner), Memory(ours, 4, 20, miner)
    for step in range(4):  # the third batch of eight begins to forget the first
        z = torch.randn(8, 4, generator=torch.Generator().manual_seed(step), dtype=torch.float64)
        compare(*memories, z)


def test_what_a_batch_is_compared_with_is_not_compared_with_itself() -> None:
    kept: list[int] = []

    def keep(x: Tensor) -> Tensor:
        kept.append(x.numel())
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        z, others = torch.randn(8, 4, requires_grad=True), torch.randn(500, 4)
        for loss in (ev.MultiSimilarity(), ev.Contrastive(), ev.Triplet()):
            loss(z, labels, ref_emb=others, ref_labels=torch.arange(500) % 4).backward()
    assert max(kept) == 8 * 500  # not 508 * 508


def test_our_mining_finds_references_as_their_miners_do(descriptors: Tensor) -> None:
    others = torch.randn(
        11, descriptors.shape[1], generator=torch.Generator().manual_seed(7), dtype=torch.float64
    )
    where = torch.arange(11) % 4
    for mined, plain, miner in (
        (ev.MultiSimilarity(mining=0.1), ev.MultiSimilarity(), MultiSimilarityMiner(0.1)),
        (ev.Triplet(), ev.Triplet(mining="all"), BatchHardMiner()),
    ):
        wanted = plain(
            descriptors, labels, miner(descriptors, labels, others, where), others, where
        )
        found = mined(descriptors, labels, None, others, where)
        assert found.item() == pytest.approx(wanted.item(), rel=1e-12)


def test_pairs_that_a_miner_chose_twice_make_triplets_twice(descriptors: Tensor) -> None:
    first, positives, second, negatives = MultiSimilarityMiner(0.1)(descriptors, labels)
    some = torch.tensor([*range(len(first)), 0, 0])
    twice = (first[some], positives[some], second.flip(0), negatives.flip(0))
    compare(TripletMarginLoss(margin=0.2), ev.Triplet(margin=0.2), descriptors, twice)


@pytest.mark.parametrize("kind", [torch.uint8, torch.int32, torch.float32])
def test_place_numbers_of_any_kind_find_their_prior(kind: torch.dtype, descriptors: Tensor) -> None:
    loss = ev.LowVisitBiasPairs(COUNTS, beta=0.5, kappa=0.5)
    assert loss(descriptors, labels.to(kind)).item() == loss(descriptors, labels).item()


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize(("theirs", "ours"), PAIRED)
def test_a_photo_that_is_twice_in_a_batch_counts_as_theirs_does(
    theirs: Any, ours: nn.Module, kind: torch.dtype
) -> None:
    draw = torch.Generator().manual_seed(8)
    once = torch.randn(8, 64, generator=draw, dtype=kind)
    twice = torch.cat([once[:1], once[:1], once[2:]])  # two rows of place 0
    assert ours(twice, labels).item() == pytest.approx(theirs(twice, labels).item(), rel=1e-5)
    grad = torch.autograd.grad(ours(twice.requires_grad_(), labels), twice)[0]
    assert grad.isfinite().all()


def test_references_without_what_they_need_are_a_sentence(descriptors: Tensor) -> None:
    with pytest.raises(SettingError, match="pass both"):
        ev.MultiSimilarity()(descriptors, labels, ref_emb=descriptors)
    with pytest.raises(SettingError, match=r"descriptors of shape \(8, 4\) and labels of shape"):
        ev.Sare()(descriptors, labels, ref_emb=descriptors, ref_labels=labels[:3])
    pair = (labels, labels)
    with pytest.raises(SettingError, match="indices_tuple holds 2 arrays"):
        ev.Contrastive()(descriptors, labels, pair, ref_emb=descriptors, ref_labels=labels)


def test_our_mining_equals_their_miner(descriptors: Tensor) -> None:
    for seed in range(20):
        z = torch.randn(8, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        chosen = MultiSimilarityMiner(0.1)(z, labels)
        theirs = ev.MultiSimilarity()(z, labels, chosen)
        ours = ev.MultiSimilarity(mining=0.1)(z, labels)
        assert ours.item() == pytest.approx(theirs.item(), rel=1e-12)


def test_a_pair_exactly_epsilon_from_confusion_is_not_mined() -> None:
    z, y = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0, 1])
    assert ev.MultiSimilarity(mining=1.0)(z, y).item() == 0.0
    assert ev.MultiSimilarity(mining=1.01)(z, y).item() > 0.0


def test_a_steep_pull_and_push_do_not_overflow() -> None:
    apart = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], requires_grad=True)
    same = torch.tensor([[1.0, 0.0], [1.0, 0.0]], requires_grad=True)
    pull = ev.MultiSimilarity(gamma_p=2000.0)(apart, torch.tensor([0, 0]))
    push = ev.MultiSimilarity(gamma_n=2000.0)(same, torch.tensor([0, 1]))
    assert (pull.item(), push.item()) == pytest.approx((1.0, 1.0))
    for loss, z in ((pull, apart), (push, same)):
        assert bool(torch.isfinite(torch.autograd.grad(loss, z)[0]).all())


def test_hard_triplets_equal_the_batch_hard_miner(descriptors: Tensor) -> None:
    chosen = BatchHardMiner()(descriptors, labels)
    theirs = TripletMarginLoss(margin=0.2)(descriptors, labels, chosen)
    ours = ev.Triplet(margin=0.2)(descriptors, labels)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-9)


def test_sare_joint_takes_chosen_triplets(descriptors: Tensor) -> None:
    everything = torch.tensor(oracle.all_triplets(LABELS)).T
    loss = ev.Sare(temperature=0.3, joint=True)
    chosen = loss(descriptors, labels, tuple(everything))
    assert chosen.item() == pytest.approx(loss(descriptors, labels).item(), rel=1e-12)


def test_sare_alone_and_joint_agree_on_one_negative() -> None:
    z, y = torch.eye(3) + 0.3, torch.tensor([0, 0, 1])
    alone, joint = ev.Sare(), ev.Sare(joint=True)
    assert alone(z, y).item() == pytest.approx(joint(z, y).item())


def test_the_first_place_is_as_well_known_as_the_last() -> None:
    found = of_places(torch.tensor([1.0, 5.0, 2.0]), torch.tensor([0, 1, 2, 3, -1]))
    assert found.tolist() == [1, 5, 2, 5, 5]


@pytest.mark.parametrize("stranger", [4, 9, 10**9, -1])
def test_a_place_nobody_counted_is_treated_as_the_rarest_one(stranger: int) -> None:
    z = torch.randn(6, 3, generator=torch.Generator().manual_seed(3))
    loss = ev.LowVisitBiasPairs([1, 50, 50], beta=0.4, kappa=0.1)
    strange, rarest = torch.tensor([1, 1, stranger] * 2), torch.tensor([1, 1, 0] * 2)
    assert torch.equal(loss(z, strange), loss(z, rarest))


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: ev.build_loss("triplet", mining="hardest"), "did you mean 'hard'"),
        (lambda: ev.Sare(temperature=0.0), "temperature is 0.0"),
        (lambda: ev.MultiSimilarity()(torch.zeros(3), torch.zeros(3)), "pass \\(B, D\\) and"),
        (
            lambda: ev.MultiSimilarity()(torch.zeros(2, 3), torch.zeros(2), [torch.zeros(1)] * 2),
            "indices_tuple holds 2 arrays",
        ),
    ],
)
def test_impossible_arguments_are_refused(build: Callable[[], Any], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        build()
