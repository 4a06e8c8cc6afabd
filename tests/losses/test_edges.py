"""Losses over all places at their edges: extreme cosines, memory, and what they refuse."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from evenplace import losses as ev
from evenplace.errors import SettingError

COUNTS = [3, 0, 40, 300, 7, 12]
labels = torch.tensor([0, 3, 3, 2, 5, 4, 0])


def test_the_truth_may_be_as_unlikely_as_it_likes() -> None:
    logits = torch.tensor([[-500.0, 500.0], [3.0, 1.0]], requires_grad=True)
    loss = ev.CrossEntropy(scale=1.0)(logits, torch.tensor([0, 0]))
    loss.backward()
    assert loss.item() == pytest.approx((1000 + math.log(1 + math.exp(-2))) / 2)
    assert logits.grad is not None
    assert logits.grad[0].tolist() == pytest.approx([-0.5, 0.5])


def test_the_small_loss_of_a_truth_that_is_almost_certain_keeps_its_digits() -> None:
    loss = ev.CrossEntropy(scale=1.0)(torch.tensor([[57.6, 45.0]]), torch.tensor([0]))
    assert loss.item() == pytest.approx(math.log1p(math.exp(45.0 - 57.6)), rel=0.02)


def test_angular_margin_is_finite_at_the_poles() -> None:
    poles = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], requires_grad=True)
    loss = ev.AngularMargin()(poles, torch.tensor([0, 0]))
    loss.backward()
    assert math.isfinite(loss.item())
    assert poles.grad is not None
    assert bool(torch.isfinite(poles.grad).all())


@settings(deadline=None, max_examples=50)
@given(st.floats(0.05, 1.5), st.booleans())
def test_angular_margin_never_helps_the_truth(margin: float, easy: bool) -> None:
    cosine = torch.linspace(-0.999, 0.999, 101, dtype=torch.float64)
    rows = torch.stack([cosine, torch.zeros_like(cosine)], dim=1)
    truth = torch.zeros(101, dtype=torch.int64)
    with_margin = ev.target_losses(rows, truth, scale=10.0, margin=_angular(margin, easy))
    plain = ev.target_losses(rows, truth, scale=10.0)
    assert bool((with_margin >= plain - 1e-12).all())


def _angular(margin: float, easy: bool) -> Callable[[Tensor], Tensor]:
    from evenplace.losses.classification import angular

    return angular(margin, easy)


def test_one_place_alone_is_always_right() -> None:
    alone, truth = torch.tensor([[0.2], [-0.9]]), torch.zeros(2, dtype=torch.int64)
    for name in ev.loss_names("cosines"):
        loss = ev.build_loss(name, [12])(alone, truth).item()
        assert math.isfinite(loss)
        if name != "distribution-balanced":  # asks yes or no, and gets a no
            assert loss == 0.0


def test_a_loss_can_be_differentiated_twice_over_the_same_graph(cosines: Tensor) -> None:
    c = cosines.requires_grad_()
    loss = ev.LowVisitBias(COUNTS)(c, labels)
    (first,) = torch.autograd.grad(loss, c, retain_graph=True)
    kept = first.clone()
    (second,) = torch.autograd.grad(loss, c)
    assert torch.equal(kept, second)


def test_hard_places_gain_weight_as_they_are_missed() -> None:
    loss = ev.HardClass([5, 5, 5], memory=0.5)
    easy, missed = [0.9, -0.9, -0.9], [0.9, -0.9, -0.9]
    for _ in range(20):
        loss(torch.tensor([easy, missed]), torch.tensor([0, 1]))
    assert loss.difficulty[1] > 0.99 > loss.difficulty[0]
    assert loss.difficulty[2] == 1.0
    kept = loss.difficulty.clone()
    loss.eval()(torch.tensor([easy]), torch.tensor([1]))
    assert torch.equal(loss.difficulty, kept)
    assert "difficulty" in loss.state_dict()


def test_a_batch_that_overflowed_does_not_make_places_hard_for_ever() -> None:
    loss = ev.HardClass([5, 5, 5], memory=0.5)
    cosines, labels = torch.eye(3) * 0.5, torch.arange(3)
    spoilt = cosines.clone()
    spoilt[1] = torch.nan
    assert loss(spoilt, labels).isnan()  # said by the loss: a GradScaler leaves this step out
    clean = ev.HardClass([5, 5, 5], memory=0.5)
    clean(cosines[[0, 2]], labels[[0, 2]])
    torch.testing.assert_close(loss.difficulty, clean.difficulty)
    assert loss(cosines, labels).isfinite()


def test_a_place_without_memory_is_as_hard_as_it_was_last() -> None:
    loss = ev.HardClass([5, 5], memory=0.0, scale=1.0)
    loss(torch.tensor([[1.0, 0.0]]), torch.tensor([0]))
    assert loss.difficulty.tolist() == pytest.approx([1 - 1 / (1 + math.exp(-1)), 1.0])


def test_a_place_never_missed_keeps_a_little_weight() -> None:
    assert ev.hard_weights(torch.tensor([0.0, 1.0])).tolist() == pytest.approx([2e-6, 2.0])


def test_hard_places_are_remembered_by_the_mean_of_their_photos() -> None:
    loss = ev.HardClass([5, 5], memory=0.75, scale=1.0)
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    loss(rows, torch.tensor([0, 0]))
    p = [1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1))]
    expected = 0.75 + 0.25 * (1 - sum(p) / 2)
    assert loss.difficulty[0].item() == pytest.approx(expected)


def test_deferred_weights_wait_for_their_epoch(cosines: Tensor) -> None:
    loss = ev.LabelDistributionMargin(COUNTS, reweight_from=3)
    early = loss(cosines, labels)
    loss.set_epoch(2)
    assert torch.equal(loss(cosines, labels), early)
    loss.set_epoch(3)
    assert not torch.equal(loss(cosines, labels), early)
    never = ev.LabelDistributionMargin(COUNTS, reweight_from=None)
    never.set_epoch(500)
    assert torch.equal(never(cosines, labels), early)


@pytest.mark.parametrize(
    ("rows", "truth", "said"),
    [
        (torch.zeros(2, 3), torch.tensor([0]), "do not fit"),
        (torch.zeros(3), torch.tensor([0]), "do not fit"),
        (torch.zeros(2, 3), torch.tensor([0, 3]), "labels run from 0 to 3 but there are 3 places"),
        (torch.zeros(2, 3), torch.tensor([-1, 2]), "labels run from -1"),
        (torch.zeros(2, 3), torch.tensor([0.0, 1.0]), "torch.int64"),
    ],
)
def test_labels_that_fit_no_place_are_refused(rows: Tensor, truth: Tensor, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        ev.CrossEntropy()(rows, truth)


@pytest.mark.parametrize("name", ev.loss_names("cosines"))
def test_counts_of_other_places_are_refused(name: str, cosines: Tensor) -> None:
    loss = ev.build_loss(name, [*COUNTS, 5])
    with pytest.raises(SettingError, match="cosines to 6 places but counts of 7"):
        loss(cosines, labels)
    places = torch.arange(len(COUNTS))
    assert math.isfinite(loss(cosines, labels, ev.Columns(places)).item())
    assert math.isfinite(loss(cosines, labels, columns=ev.Columns(places)).item())


def test_offsets_of_other_places_are_refused(cosines: Tensor) -> None:
    with pytest.raises(SettingError, match="2 offsets for 6 places"):
        ev.cross_entropy(cosines, labels, offsets=torch.zeros(2))


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: ev.AngularMargin(margin=4.0), "angular margin of 4.0"),
        (lambda: ev.AngularMargin(margin=-0.1), "angular margin of -0.1"),
        (lambda: ev.ClassBalanced(COUNTS, base=1.0), "base is 1.0"),
        (lambda: ev.ClassBalanced(COUNTS, base=-0.1), "base is -0.1"),
        (lambda: ev.HardClass(COUNTS, memory=1.0), "memory is 1.0"),
        (lambda: ev.HardClass(COUNTS, memory=-0.1), "memory is -0.1"),
        (lambda: ev.HardClass(COUNTS, tau=-1.0)(torch.eye(6), torch.arange(6)), "tau is -1.0"),
        (lambda: ev.Focal(gamma=-1.0)(torch.eye(6), torch.arange(6)), "gamma is -1.0"),
        (lambda: ev.LogitAdjustment(COUNTS, tau=-1.0), "tau is -1.0"),
    ],
)
def test_impossible_settings_are_refused(build: Callable[[], nn.Module], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        build()
