"""Losses over all places: each against its loops, its gradient, its limits and its edges."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_metric_learning.losses import ArcFaceLoss, CosFaceLoss
from torch import Tensor, nn

from evenplace import losses as ev
from evenplace.errors import SettingError
from tests import oracle_losses as oracle

COUNTS = [3, 0, 40, 300, 7, 12]
LABELS = [0, 3, 3, 2, 5, 4, 0]
WEIGHTS = [0.5, 1.0, 2.0, 0.25, 1.5, 0.75]
OFFSETS = [0.9, 0.1, -0.4, -1.2, 0.3, 0.0]
DIFFICULTY = [0.9, 1.0, 0.3, 0.1, 0.6, 0.5]

Rows = list[list[float]]


@dataclass(frozen=True)
class Case:
    """A loss, the same loss as a module, and its loops."""

    ours: Callable[[Tensor, Tensor], Tensor]
    module: Callable[[], nn.Module]
    loops: Callable[[Rows, list[int]], float]


def host(
    scale: float,
    margin: Callable[[float, int], float] = lambda cosine, y: cosine,
    finish: Callable[[list[float]], list[float]] = lambda losses: losses,
    weights: list[float] | None = None,
    offsets: list[float] | None = None,
) -> Callable[[Rows, list[int]], float]:
    def loops(rows: Rows, labels: list[int]) -> float:
        losses = oracle.cosine_losses(rows, labels, scale, offsets, margin)
        return oracle.weighted_mean(finish(losses), labels, weights)

    return loops


def log_shares(tau: float) -> list[float]:
    return [-tau * math.log(p) for p in oracle.shares(COUNTS)]


def balanced() -> nn.Module:
    loss = ev.LabelDistributionMargin(COUNTS, scale=8.0, reweight_from=2)
    loss.set_epoch(2)
    return loss


def hard() -> nn.Module:
    loss = ev.HardClass(COUNTS, tau=1.5, scale=8.0)
    loss.difficulty.copy_(torch.tensor(DIFFICULTY))
    return loss.eval()


CASES = {
    "cross_entropy": Case(
        lambda c, y: ev.cross_entropy(c, y, scale=8.0),
        lambda: ev.CrossEntropy(scale=8.0),
        host(8.0),
    ),
    "large_margin_cosine": Case(
        lambda c, y: ev.large_margin_cosine(c, y, scale=8.0, margin=0.3),
        lambda: ev.LargeMarginCosine(scale=8.0, margin=0.3),
        host(8.0, lambda cosine, y: cosine - 0.3),
    ),
    "angular": Case(
        lambda c, y: ev.additive_angular_margin(c, y, scale=8.0, margin=0.5),
        lambda: ev.AngularMargin(scale=8.0, margin=0.5),
        host(8.0, lambda cosine, y: oracle.turn(cosine, 0.5, easy=False)),
    ),
    "angular_easy": Case(
        lambda c, y: ev.additive_angular_margin(c, y, scale=8.0, margin=0.2, easy=True),
        lambda: ev.AngularMargin(scale=8.0, margin=0.2, easy=True),
        host(8.0, lambda cosine, y: oracle.turn(cosine, 0.2, easy=True)),
    ),
    "low_visit_bias": Case(
        lambda c, y: ev.low_visit_bias(c, y, COUNTS, beta=0.3, kappa=0.7, scale=8.0, margin=0.3),
        lambda: ev.LowVisitBias(COUNTS, 0.3, 0.7, 8.0, 0.3),
        lambda rows, labels: oracle.low_visit_bias(rows, labels, COUNTS, 0.3, 0.7, 8.0, 0.3),
    ),
    "angular_with_low_visit_bias": Case(
        lambda c, y: ev.additive_angular_margin(
            c,
            y,
            scale=8.0,
            margin=0.5,
            weights=ev.class_weights(COUNTS, 0.3),
            offsets=ev.logit_offsets(COUNTS, 0.7),
        ),
        lambda: ev.AngularMargin(COUNTS, scale=8.0, margin=0.5, beta=0.3, kappa=0.7),
        host(
            8.0,
            lambda cosine, y: oracle.turn(cosine, 0.5, easy=False),
            weights=oracle.class_weights(COUNTS, 0.3),
            offsets=oracle.logit_offsets(COUNTS, 0.7),
        ),
    ),
    "logit_adjustment": Case(
        lambda c, y: ev.logit_adjustment(c, y, COUNTS, tau=0.8, scale=8.0),
        lambda: ev.LogitAdjustment(COUNTS, tau=0.8, scale=8.0),
        host(8.0, offsets=log_shares(0.8)),
    ),
    "balanced_softmax": Case(
        lambda c, y: ev.balanced_softmax(c, y, COUNTS, scale=8.0),
        lambda: ev.BalancedSoftmax(COUNTS, scale=8.0),
        host(8.0, offsets=[-math.log(n) for n in oracle.fill(COUNTS)]),
    ),
    "focal": Case(
        lambda c, y: ev.focal(c, y, gamma=1.5, scale=8.0),
        lambda: ev.Focal(gamma=1.5, scale=8.0),
        host(8.0, finish=lambda losses: oracle.focal(losses, 1.5)),
    ),
    "class_balanced": Case(
        lambda c, y: ev.class_balanced(c, y, COUNTS, base=0.99, gamma=0.5, scale=8.0),
        lambda: ev.ClassBalanced(COUNTS, base=0.99, gamma=0.5, scale=8.0),
        host(
            8.0,
            finish=lambda losses: oracle.focal(losses, 0.5),
            weights=oracle.effective_weights(COUNTS, 0.99),
        ),
    ),
    "label_distribution_margin": Case(
        lambda c, y: ev.label_distribution_margin(c, y, ev.label_margins(COUNTS), scale=8.0),
        lambda: ev.LabelDistributionMargin(COUNTS, scale=8.0),
        host(8.0, lambda cosine, y: cosine - oracle.label_margins(COUNTS, 0.5)[y]),
    ),
    "label_distribution_margin_late": Case(
        lambda c, y: ev.label_distribution_margin(
            c, y, ev.label_margins(COUNTS), scale=8.0, weights=ev.effective_weights(COUNTS)
        ),
        balanced,
        host(
            8.0,
            lambda cosine, y: cosine - oracle.label_margins(COUNTS, 0.5)[y],
            weights=oracle.effective_weights(COUNTS, 0.9999),
        ),
    ),
    "adaptive_logit_adjustment": Case(
        lambda c, y: ev.adaptive_logit_adjustment(c, y, ev.rarities(COUNTS), scale=8.0),
        lambda: ev.AdaptiveLogitAdjustment(COUNTS, scale=8.0),
        host(8.0, lambda cosine, y: cosine - oracle.rarities(COUNTS)[y] * (1 - cosine) / 2),
    ),
    "hard_class": Case(
        lambda c, y: ev.hard_class(c, y, torch.tensor(DIFFICULTY), tau=1.5, scale=8.0),
        hard,
        host(8.0, weights=oracle.hard_weights(DIFFICULTY, 1.5)),
    ),
    "distribution_balanced": Case(
        lambda c, y: ev.distribution_balanced(c, y, COUNTS, scale=8.0),
        lambda: ev.DistributionBalanced(COUNTS, scale=8.0),
        lambda rows, labels: oracle.distribution_balanced(
            rows, labels, COUNTS, 8.0, 0.1, 10.0, 0.2, 2.0, 0.05
        ),
    ),
}

every_loss = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
labels = torch.tensor(LABELS)


@every_loss
def test_loss_equals_its_loops(case: Case, cosines: Tensor) -> None:
    expected = case.loops(cosines.tolist(), LABELS)
    assert case.ours(cosines, labels).item() == pytest.approx(expected, rel=1e-6)
    assert case.module()(cosines, labels).item() == pytest.approx(expected, rel=1e-6)


@every_loss
def test_gradient_equals_differences(case: Case, cosines: Tensor) -> None:
    loss = case.module()
    assert torch.autograd.gradcheck(lambda c: loss(c, labels), cosines.requires_grad_())


@every_loss
def test_half_precision_is_widened_before_the_exponential(
    case: Case, cosines: Tensor, check_widening: Callable[..., None]
) -> None:
    check_widening(case.module(), cosines, labels)


@every_loss
def test_autocast_changes_nothing(case: Case, cosines: Tensor) -> None:
    loss, single = case.module(), cosines.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = loss(single, labels)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, loss(single, labels))


@every_loss
def test_an_empty_batch_costs_nothing(case: Case) -> None:
    none = torch.zeros(0, len(COUNTS), requires_grad=True)
    loss = case.module()(none, torch.zeros(0, dtype=torch.int64))
    loss.backward()
    assert loss.item() == 0.0


@every_loss
def test_arguments_stay_as_they_were(case: Case, cosines: Tensor) -> None:
    before = cosines.clone()
    case.ours(cosines, labels)
    assert torch.equal(cosines, before)


@every_loss
def test_columns_of_all_places_are_the_plain_loss(case: Case, cosines: Tensor) -> None:
    columns = ev.Columns(torch.arange(len(COUNTS)))
    loss = case.module()
    assert torch.equal(loss(cosines, labels, columns), loss(cosines, labels))


def test_columns_left_out_are_left_out_of_the_denominator(cosines: Tensor) -> None:
    places = torch.tensor([0, 2, 3, 4, 5])
    found = ev.CrossEntropy(scale=8.0)(cosines[:, places], labels, ev.Columns(places))
    closed = cosines.clone()
    closed[:, 1] = -torch.inf
    assert found.item() == pytest.approx(F.cross_entropy(8.0 * closed, labels).item())


def test_a_label_without_a_column_is_refused(cosines: Tensor) -> None:
    places = torch.tensor([0, 1, 2, 3, 4])
    with pytest.raises(SettingError, match="place 5 is a label but has no column"):
        ev.CrossEntropy()(cosines[:, places], labels, ev.Columns(places))


@settings(deadline=None, max_examples=50)
@given(st.floats(-50, 50), st.integers(0, 10_000))
def test_a_constant_offset_cancels(shift: float, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    c = torch.rand(7, 6, generator=draw, dtype=torch.float64) * 2 - 1
    offsets = torch.tensor(OFFSETS, dtype=torch.float64)
    plain = ev.large_margin_cosine(c, labels, offsets=offsets)
    moved = ev.large_margin_cosine(c, labels, offsets=offsets + shift)
    assert moved.item() == pytest.approx(plain.item(), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_without_strength_low_visit_bias_is_cosface_bit_for_bit(
    cosines: Tensor, dtype: torch.dtype
) -> None:
    ours, host = cosines.to(dtype).requires_grad_(), cosines.to(dtype).requires_grad_()
    biased = ev.LowVisitBias(COUNTS, beta=0.0, kappa=0.0)(ours, labels)
    plain = ev.LargeMarginCosine()(host, labels)
    biased.backward()
    plain.backward()
    assert torch.equal(biased, plain)
    assert ours.grad is not None
    assert host.grad is not None
    assert torch.equal(ours.grad, host.grad)


@pytest.mark.parametrize(
    ("with_counts", "plain"),
    [
        (ev.AngularMargin(COUNTS), ev.AngularMargin()),
        (ev.CrossEntropy(COUNTS), ev.CrossEntropy()),
        (ev.Focal(COUNTS), ev.Focal()),
        (ev.LargeMarginCosine(margin=0.0), ev.CrossEntropy()),
        (ev.AngularMargin(scale=30.0, margin=0.0), ev.CrossEntropy()),
        (ev.Focal(gamma=0.0), ev.CrossEntropy()),
        (ev.ClassBalanced(COUNTS, base=0.0), ev.CrossEntropy()),
        (ev.LogitAdjustment(COUNTS, tau=0.0), ev.CrossEntropy()),
        (ev.HardClass(COUNTS), ev.CrossEntropy()),
        (ev.LabelDistributionMargin([9] * 6, max_margin=0.4), ev.LargeMarginCosine()),
    ],
)
def test_a_loss_without_its_own_idea_is_its_host_bit_for_bit(
    with_counts: nn.Module, plain: nn.Module, cosines: Tensor
) -> None:
    single = cosines.float()
    assert torch.equal(with_counts(single, labels), plain(single, labels))


def test_balanced_softmax_is_logit_adjustment_at_one(cosines: Tensor) -> None:
    balanced = ev.BalancedSoftmax(COUNTS)(cosines, labels)
    # COUNTS has an empty place, which both treat as the rarest: shares and counts agree.
    assert balanced.item() == pytest.approx(ev.LogitAdjustment(COUNTS)(cosines, labels).item())


def test_low_visit_bias_tends_to_logit_adjustment_for_many_places(cosines: Tensor) -> None:
    draw = torch.Generator().manual_seed(0)
    many = torch.randint(1, 300, (5000,), generator=draw)
    c = torch.rand(4, 5000, generator=draw) * 0.4
    y = torch.tensor([0, 1, 2, 3])
    near = ev.LowVisitBias(many, beta=0.0, kappa=1.0, margin=0.0)(c, y)
    assert near.item() == pytest.approx(ev.LogitAdjustment(many)(c, y).item(), abs=2e-3)


def test_scale_one_is_torch_cross_entropy(cosines: Tensor) -> None:
    ours = ev.cross_entropy(10 * cosines, labels, scale=1.0)
    assert ours.item() == pytest.approx(F.cross_entropy(10 * cosines, labels).item(), rel=1e-12)


def test_post_hoc_adjustment_takes_the_prior_out() -> None:
    logits = torch.tensor([[2.0, 2.0]])
    found = ev.adjust_logits(logits, [1, 3], tau=1.0)
    assert found.tolist()[0] == pytest.approx([2 - math.log(1 / 4), 2 - math.log(3 / 4)])
    assert int(found.argmax()) == 0


@pytest.mark.parametrize(("theirs", "ours"), [
    (CosFaceLoss(6, 5, margin=0.35, scale=64), ev.LargeMarginCosine(margin=0.35, scale=64.0)),
    (ArcFaceLoss(6, 5), ev.AngularMargin(margin=math.radians(28.6))),
])  # fmt: skip
def test_margins_equal_pytorch_metric_learning(theirs: Any, ours: nn.Module) -> None:
    draw = torch.Generator().manual_seed(1)
    z = torch.randn(7, 5, generator=draw, dtype=torch.float64)
    theirs.W.data = torch.randn(5, 6, generator=draw, dtype=torch.float64)
    mine, yours = z.clone().requires_grad_(), z.clone().requires_grad_()
    found = ours(F.normalize(mine) @ F.normalize(theirs.W.detach(), dim=0), labels)
    wanted = theirs(yours, labels)
    assert found.item() == pytest.approx(wanted.item(), rel=1e-9)
    (a,) = torch.autograd.grad(found, mine)
    (b,) = torch.autograd.grad(wanted, yours)
    assert torch.allclose(a, b, rtol=1e-7, atol=1e-9)
