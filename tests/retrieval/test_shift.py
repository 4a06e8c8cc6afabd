"""Queries that look less like their answers than rehearsed ones did are noticed."""

import numpy as np

from evenplace.retrieval.shift import find_shift


def likeness(mean: float, count: int, seed: int) -> list[float]:
    drawn: list[float] = np.random.default_rng(seed).normal(mean, 0.15, count).tolist()
    return drawn


def test_queries_like_the_rehearsed_ones_are_let_be() -> None:
    said = [find_shift(likeness(0.6, 100, seed), likeness(0.6, 800, 1000)) for seed in range(200)]
    assert sum(map(bool, said)) <= 2


def test_queries_less_alike_are_told() -> None:
    said = find_shift(likeness(0.45, 100, 0), likeness(0.6, 800, 1))
    assert said.startswith("these photos look less like the database")
    assert "(similarity 0.4" in said


def test_queries_more_alike_are_no_harm() -> None:
    assert find_shift(likeness(0.9, 100, 0), likeness(0.6, 800, 1)) == ""


def test_a_few_tell_nothing() -> None:
    assert find_shift([-1.0] * 19, likeness(0.6, 800, 1)) == ""
