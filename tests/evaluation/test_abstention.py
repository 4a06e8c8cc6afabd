"""Answers that are sure enough, counted."""

import math

import numpy as np

from evenplace.evaluation.abstention import deliver

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


def test_nothing_answered_is_said_not_divided() -> None:
    found = deliver(RIGHT, np.zeros(5, bool))
    assert math.isnan(found.precision)
    assert str(found) == "none of 5 answered"
