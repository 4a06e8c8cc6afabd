"""How well a system knows when it is right, against scikit-learn and against counting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from evenplace.errors import SettingError
from evenplace.evaluation.confidence_curves import (
    compare_sources,
    judge,
    reliability,
    trace,
)

answers = st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=1, max_size=60)


def drawn(seed: int, count: int = 300) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    sure = rng.random(count).round(2)  # with ties
    return rng.random(count) < sure, sure


@given(answers)
def test_auc_pr_is_scikit_learn_s_ties_included(pairs: list[tuple[bool, int]]) -> None:
    right, sure = np.array([a for a, _ in pairs]), np.array([b / 7 for _, b in pairs])
    if not right.any():
        assert trace(right, sure).average_precision == 0
        return
    assert trace(right, sure).average_precision == pytest.approx(
        average_precision_score(right, sure)
    )


@given(answers)
def test_auroc_is_scikit_learn_s_ties_included(pairs: list[tuple[bool, int]]) -> None:
    right, sure = np.array([a for a, _ in pairs]), np.array([b / 7 for _, b in pairs])
    if right.all() or not right.any():
        assert np.isnan(trace(right, sure).auroc)
        return
    assert trace(right, sure).auroc == pytest.approx(roc_auc_score(right, sure))


@pytest.mark.parametrize("seed", range(3))
def test_the_area_of_risk_is_a_mean_over_coverages(seed: int) -> None:
    right, _ = drawn(seed)
    sure = np.random.default_rng(seed + 9).permutation(len(right)).astype(float)  # no ties
    order = np.argsort(-sure)
    risks = [1 - right[order[:n]].mean() for n in range(1, len(right) + 1)]
    assert trace(right, sure).aurc == pytest.approx(np.mean(risks))


def test_the_area_of_risk_does_not_depend_on_the_order_of_ties() -> None:
    right = np.array([True, False, True, False])
    assert trace(right, np.zeros(4)).aurc == pytest.approx(0.5)
    assert trace(right[::-1], np.zeros(4)).aurc == pytest.approx(0.5)


def test_coverage_is_the_largest_share_at_that_precision() -> None:
    right = np.array([True, True, False, True, True, False])
    sure = np.array([6.0, 5, 4, 3, 2, 1])
    assert trace(right, sure).coverage_at(0.95) == pytest.approx(2 / 6)
    assert trace(right, sure).coverage_at(0.8) == pytest.approx(5 / 6)  # 4 of 5, past a dip
    assert trace(~right, sure).coverage_at(0.95) == 0


def test_the_calibration_error_is_counted_by_hand() -> None:
    right = np.array([True, True, False, True])
    found = reliability(right, np.array([0.95, 0.95, 0.15, 1.0]))
    assert found.queries.tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0, 3]
    assert found.ece == pytest.approx((0.15 + 3 * (1 - 2.9 / 3)) / 4)
    for sure, said in (([-1.0, 0, 0, 0], "from -1 to 0"), ([0, 0, 0.5, 1.5], "from 0 to 1.5")):
        with pytest.raises(SettingError, match=f"{said} are no probabilities; calibrate"):
            reliability(right, np.array(sure))


def test_a_perfect_source_is_perfect() -> None:
    right = np.array([True, True, False])
    found = judge(right, np.array([1.0, 1.0, 0.0]))
    assert (found.auc_pr, found.auroc, found.ece) == (1, 1, 0)
    assert found.coverage == {"95": pytest.approx(2 / 3), "99": pytest.approx(2 / 3)}
    assert np.isnan(judge(right, np.array([-1.0, -2, -3])).ece)


def test_the_curve_ends_with_every_query() -> None:
    right, sure = drawn(0)
    curve = trace(right, sure)
    assert curve.coverage[-1] == 1
    assert curve.precision[-1] == pytest.approx(right.mean())


def test_a_source_is_not_better_than_itself_and_beats_noise() -> None:
    right, sure = drawn(1, 600)
    noise = np.random.default_rng(2).random(600)
    same = compare_sources(right, sure, sure, np.arange(600))
    assert (same.mean, same.low, same.high) == (0, 0, 0)
    better = compare_sources(right, sure, noise, np.arange(600))
    assert better.low > 0
    expected = trace(right, sure).average_precision - trace(right, noise).average_precision
    assert better.mean == pytest.approx(100 * expected)


def test_answers_of_one_spot_leave_nothing_to_resample() -> None:
    right, sure = drawn(2, 80)
    found = compare_sources(right, sure, -sure, np.full(80, 7))
    expected = trace(right, sure).average_precision - trace(right, -sure).average_precision
    assert [found.mean, found.low, found.high] == pytest.approx([100 * expected] * 3)


def test_sources_of_several_runs_are_compared_within_each() -> None:
    right, sure = drawn(0, 600)
    noise = np.random.default_rng(3).random(600)
    runs = np.arange(600) % 2
    apart = sure + 100.0 * runs  # the second run is surer of everything, right or wrong
    joint = compare_sources(right, apart, noise, np.arange(600), runs)
    each = [
        100
        * (
            trace(right[of], sure[of]).average_precision
            - trace(right[of], noise[of]).average_precision
        )
        for of in (runs == 0, runs == 1)
    ]
    assert joint.mean == pytest.approx(np.mean(each))
    assert joint.low < joint.mean < joint.high


@pytest.mark.parametrize("sure", [np.array([np.nan, 1.0]), np.array([1.0])])
def test_what_cannot_be_judged_is_refused(sure: NDArray[np.float64]) -> None:
    with pytest.raises(SettingError):
        judge(np.array([True, False]), sure)
