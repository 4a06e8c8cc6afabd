"""Answers that are sure enough, counted."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from evenplace.evaluation.abstention import Delivered, abstain, deliver, together
from tests.evaluation.test_scores import scored

RIGHT = np.array([True, True, False, True, False])
KEPT = np.array([True, False, True, True, False])


def test_precision_is_of_the_answered_and_coverage_of_the_asked() -> None:
    found = deliver(RIGHT, KEPT)
    assert (found.asked, found.answered, found.right) == (5, 3, 2)
    assert found.precision == 2 / 3
    assert found.coverage == 3 / 5
    assert str(found) == "66.7 % right (2 of 3), 60 % answered"


def test_a_part_of_the_queries_is_counted_for_itself() -> None:
    found = deliver(RIGHT, KEPT, np.array([False, False, True, True, True]))
    assert (found.asked, found.answered, found.right) == (3, 2, 1)


def test_an_answer_exactly_as_sure_as_the_threshold_is_given(tmp_path: Path) -> None:
    run = scored(tmp_path).predictions[np.arange(5)]
    run = replace(
        run,
        confidence=np.array([0.9, 0.5, 0.75, 0.75, 0.2], np.float32),
        first_right=np.array([0, 0, 3, 0, -1]),
        tiers=np.array([2, 2, 1, 2, 0], np.int8),
    )
    found = abstain(run, 0.9, 0.75)
    assert (found.overall, found.tail) == (Delivered(5, 3, 2), Delivered(3, 2, 2))


def test_a_precision_is_kept_when_it_is_just_reached() -> None:
    assert Delivered(9, 4, 3).keeps(0.75)
    assert not Delivered(9, 4, 3).keeps(0.76)
    assert Delivered(9, 0, 0).keeps(0.99)
    assert together([Delivered(9, 4, 3), Delivered(2, 1, 0)]) == Delivered(11, 5, 3)
    assert math.isnan(Delivered(0, 0, 0).coverage)


def test_nothing_answered_is_said_not_divided() -> None:
    found = deliver(RIGHT, np.zeros(5, bool))
    assert math.isnan(found.precision)
    assert str(found) == "none of 5 answered"
