"""Weights and offsets from photos per place (Eq. 2-3)."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evenplace.errors import SettingError
from evenplace.losses import (
    LargeMarginCosine,
    LowVisitBias,
    LowVisitBiasPairs,
    PriorEffect,
    class_weights,
    logit_offsets,
)
from tests import oracle_losses as oracle

COUNTS = [3, 1, 40, 300, 7]

some_counts = st.lists(st.integers(0, 10_000), min_size=1, max_size=40).filter(any)
strengths = st.floats(0, 1)


@settings(deadline=None, max_examples=50)
@given(some_counts, strengths)
def test_weights_average_to_one(counts: list[int], beta: float) -> None:
    weights = class_weights(torch.tensor(counts, dtype=torch.float64), beta)
    assert float(weights.mean()) == pytest.approx(1.0, rel=1e-9)


@settings(deadline=None, max_examples=50)
@given(some_counts, strengths)
def test_a_rarer_place_never_weighs_less_nor_has_a_smaller_offset(
    counts: list[int], strength: float
) -> None:
    order = sorted(range(len(counts)), key=lambda c: counts[c])
    for values in (class_weights(counts, strength), logit_offsets(counts, strength)):
        ranked = values[order]
        assert bool((ranked[1:] <= ranked[:-1] + 1e-6).all())


@settings(deadline=None, max_examples=50)
@given(some_counts, strengths, st.integers(2, 50))
def test_only_shares_matter(counts: list[int], strength: float, times: int) -> None:
    more = [n * times for n in counts]
    assert torch.allclose(class_weights(more, strength), class_weights(counts, strength))
    assert torch.allclose(logit_offsets(more, strength), logit_offsets(counts, strength), atol=1e-5)


@pytest.mark.parametrize("strength", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("counts", [COUNTS, [5], [0, 4, 4], [1, 10**7]])
def test_prior_equals_the_loops(counts: list[int], strength: float) -> None:
    exact = torch.tensor(counts, dtype=torch.float64)
    assert class_weights(exact, strength).tolist() == pytest.approx(
        oracle.class_weights(counts, strength), rel=1e-12
    )
    assert logit_offsets(exact, strength).tolist() == pytest.approx(
        oracle.logit_offsets(counts, strength), rel=1e-12, abs=1e-15
    )


def test_prior_checked_by_hand() -> None:
    weights = class_weights([1, 3], beta=1.0)  # shares 1/4, 3/4; inverses 4, 4/3; mean 8/3
    assert weights.tolist() == pytest.approx([1.5, 0.5])
    assert logit_offsets([1, 3], kappa=2.0).tolist() == pytest.approx(
        [2 * math.log(3), -2 * math.log(3)]
    )


def test_no_strength_is_exactly_plain() -> None:
    assert class_weights(COUNTS, 0.0).tolist() == [1.0] * 5
    assert logit_offsets(COUNTS, 0.0).tolist() == [0.0] * 5


def test_published_beta_is_a_ratio_of_1_06_at_300_to_1() -> None:
    weights = class_weights(COUNTS, 0.01)
    assert float(weights.max() / weights.min()) == pytest.approx(300**0.01, rel=1e-5)
    assert round(300**0.01, 2) == 1.06


def test_an_empty_place_stands_in_as_the_rarest_one() -> None:
    weights, offsets = class_weights([0, 2, 9], 0.5), logit_offsets([0, 2, 9], 0.5)
    assert weights[0] == weights[1] > weights[2]
    assert offsets[0] == offsets[1] > offsets[2]


def test_one_place_alone_has_weight_one_and_a_finite_offset() -> None:
    assert class_weights([17], 1.0).tolist() == [1.0]
    assert logit_offsets([17], 1.0).tolist() == pytest.approx([-math.log(1e6)], rel=1e-3)


def test_global_prior_scales_group_weights_and_shifts_group_offsets() -> None:
    group, everywhere = [3, 1, 40], [3, 1, 40, 300, 7, 90]
    near, wide = class_weights(group, 0.5), class_weights(group, 0.5, all_counts=everywhere)
    assert wide.tolist() == pytest.approx(oracle.class_weights(group, 0.5, everywhere), rel=1e-6)
    ratio = wide / near
    assert ratio.tolist() == pytest.approx([float(ratio[0])] * 3, rel=1e-6)
    shift = logit_offsets(group, 0.5, all_counts=everywhere)
    assert shift.tolist() == pytest.approx(oracle.logit_offsets(group, 0.5, everywhere), rel=1e-6)
    assert bool((shift > logit_offsets(group, 0.5)).all())


def test_weights_and_offsets_keep_float64_and_default_to_float32() -> None:
    assert class_weights(torch.tensor([1.0, 2.0], dtype=torch.float64)).dtype == torch.float64
    assert logit_offsets(torch.tensor([1, 2])).dtype == torch.float32
    assert class_weights([1, 2]).dtype == torch.float32


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([], "one number of photos per place"),
        ([[1, 2]], "one number of photos per place"),
        ([0, 0], "none of 2 places has a photo"),
        ([1, -2], "finite numbers >= 0"),
        ([1.0, math.nan], "finite numbers >= 0"),
    ],
)
def test_impossible_counts_are_refused(counts: list[float], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        class_weights(counts)


@pytest.mark.parametrize("strength", [-0.1, math.nan, math.inf])
def test_impossible_strengths_are_refused(strength: float) -> None:
    with pytest.raises(SettingError, match="beta is"):
        class_weights(COUNTS, strength)
    with pytest.raises(SettingError, match="kappa is"):
        logit_offsets(COUNTS, strength)


def test_counts_are_not_changed() -> None:
    counts = torch.tensor([0.0, 2.0, 5.0])
    class_weights(counts, 0.5)
    logit_offsets(counts, 0.5)
    assert counts.tolist() == [0.0, 2.0, 5.0]


def test_refreshed_counts_change_the_loss() -> None:
    cosines, labels = torch.tensor([[0.9, 0.8], [0.1, 0.4]]), torch.tensor([0, 1])
    loss = LowVisitBias([5, 5], beta=0.5, kappa=0.5)
    before = loss(cosines, labels)
    loss.update_counts([1, 9])
    assert torch.equal(loss(cosines, labels), LowVisitBias([1, 9], 0.5, 0.5)(cosines, labels))
    assert not torch.equal(loss(cosines, labels), before)


def test_weights_from_elsewhere_hold_until_the_next_counts() -> None:
    loss = LowVisitBias([1, 9], beta=0.5)
    loss.update_weights(torch.tensor([0.5, 1.5]))
    assert loss.weights is not None
    assert loss.weights.tolist() == [0.5, 1.5]
    loss.update_counts([1, 9])
    assert torch.equal(loss.weights, class_weights([1, 9], 0.5))
    with pytest.raises(SettingError, match="3 weights for 2 places"):
        loss.update_weights(torch.ones(3))


def test_a_prior_stays_out_of_the_checkpoint_but_follows_the_device() -> None:
    loss = LowVisitBias(COUNTS)
    assert loss.state_dict() == {}
    assert {name for name, _ in loss.named_buffers()} == {"counts", "weights", "offsets"}


def test_description_gives_ratio_spread_and_margin() -> None:
    effect = LowVisitBias([1, 300, 300], beta=0.01, kappa=0.05).describe()
    assert effect.weight_ratio == pytest.approx(300**0.01, rel=1e-5)
    spread = oracle.logit_offsets([1, 300, 300], 0.05)
    assert effect.logit_spread == pytest.approx(spread[0] - spread[1], rel=1e-5)
    assert effect.margin == pytest.approx(12.0)
    assert "a ratio of 1.06" in str(effect)
    assert "which cancels" in str(effect)


def test_a_description_reads_as_four_lines() -> None:
    effect = PriorEffect(
        places=3, rarest=2.0, commonest=50.0, weights=(0.5, 1.5), offsets=(-1.0, 3.0),
        mean_offset=0.25, gain=2.0, cancels=False, margin=12.0,
    )  # fmt: skip
    assert str(effect).splitlines() == [
        "3 places, 2 to 50 photos (25:1)",
        "weights 0.5 to 1.5: a ratio of 3",
        "offsets -1 to 3: between two places at most 8 in logits, a factor of 2.98e+03, "
        "beside a margin of 12",
        "their mean moves every logit by -0.5, which does not cancel: it is a threshold",
    ]
    extreme = replace(effect, weights=(0.0, 1.5), gain=12.5, margin=0.0)
    assert extreme.weight_ratio == math.inf
    assert str(extreme).splitlines()[2].endswith("at most 50 in logits, a factor of e^50")


def test_a_description_leaves_places_without_photos_out() -> None:
    effect = LowVisitBias([0, 2, 9]).describe()
    assert (effect.places, effect.rarest, effect.commonest) == (3, 2.0, 9.0)


def test_description_of_pairs_counts_gamma_n_and_the_threshold() -> None:
    effect = LowVisitBiasPairs([4] * 50 + [20] * 50, kappa=0.01).describe()
    nu = oracle.logit_offsets([4] * 50 + [20] * 50, 0.01)
    assert effect.logit_spread == pytest.approx(50 * (max(nu) - min(nu)), rel=1e-4)
    assert effect.constant_logit == pytest.approx(50 * sum(nu) / 100, rel=1e-4)
    assert "does not cancel" in str(effect)


def test_a_plain_loss_has_nothing_to_describe() -> None:
    with pytest.raises(SettingError, match="no counts to describe"):
        LargeMarginCosine().describe()


def test_strengths_without_counts_are_refused() -> None:
    with pytest.raises(SettingError, match=r"beta=0.5 and kappa=0.0 needs photos per place"):
        LargeMarginCosine(beta=0.5)
