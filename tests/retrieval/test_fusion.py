"""Weights of the fused score are found again from answers drawn with them."""

from dataclasses import replace

import numpy as np
import pytest

from evenplace.retrieval.fusion import Evidence, fit_fused
from evenplace.retrieval.rerank import Fused

TRUTH = Fused(scale=14.0, posterior=0.8, balance=1.5, impostor=0.9)


def drawn(queries: int, seed: int, rule: Fused = TRUTH, candidates: int = 30) -> list[Evidence]:
    """Queries whose one right candidate is drawn by the softmax of the rule's own score."""
    generator = np.random.default_rng(seed)
    asked = []
    for _ in range(queries):
        cosines = generator.uniform(0.2, 0.8, candidates)
        impostors = generator.uniform(0.2, 0.8, candidates)
        posterior = generator.normal(-4, 2, candidates)
        sizes = np.log(generator.integers(1, 30, candidates))
        score = rule.scale * (cosines - rule.impostor * impostors)
        score += rule.posterior * (posterior - rule.balance * sizes)
        chance = np.exp(score - score.max())
        right = np.zeros(candidates, bool)
        right[generator.choice(candidates, p=chance / chance.sum())] = True
        terms = [x.astype(np.float32) for x in (cosines, impostors, posterior, sizes)]
        asked.append(Evidence(terms[0], terms[1], terms[2], terms[3], right))
    return asked


def surprise(rule: Fused, asked: list[Evidence]) -> float:
    """Eq. of the module, in plain loops."""
    total = 0.0
    for one in asked:
        score = [
            rule.scale * (c - rule.impostor * r) + rule.posterior * (p - rule.balance * n)
            for c, r, p, n in zip(
                one.cosines, one.impostors, one.log_posterior, one.log_sizes, strict=True
            )
        ]
        best = max(s for s, good in zip(score, one.right, strict=True) if good)
        wrong = sum(np.exp(s - best) for s, good in zip(score, one.right, strict=True) if not good)
        total += float(np.log(1 + wrong))
    return total / len(asked)


def test_many_answers_give_the_weights_back() -> None:
    found = fit_fused(drawn(3000, seed=0))
    assert found.scale == pytest.approx(TRUTH.scale, rel=0.1)
    assert found.posterior == pytest.approx(TRUTH.posterior, rel=0.1)
    assert found.balance == pytest.approx(TRUTH.balance, rel=0.15)
    assert found.impostor == pytest.approx(TRUTH.impostor, rel=0.15)


def test_fitted_weights_explain_new_answers_better_than_the_defaults() -> None:
    found, fresh = fit_fused(drawn(300, seed=1)), drawn(300, seed=2)
    assert surprise(found, fresh) < surprise(Fused(), fresh) - 0.05


def test_a_few_answers_move_little() -> None:
    start = Fused()
    few, many = fit_fused(drawn(3, seed=3)), fit_fused(drawn(1000, seed=3))
    assert abs(few.scale - start.scale) < abs(many.scale - start.scale)


def test_queries_without_a_right_candidate_say_nothing() -> None:
    asked = drawn(50, seed=4)
    lost = [Evidence(e.cosines, e.impostors, e.log_posterior, e.log_sizes, e.right & False)
            for e in drawn(50, seed=5)]  # fmt: skip
    assert fit_fused(asked + lost).scale == pytest.approx(fit_fused(asked).scale, rel=1e-4)
    assert fit_fused(lost).scale == Fused().scale


def test_pools_of_several_sizes_are_weighed_alike() -> None:
    asked = drawn(40, seed=6, candidates=5) + drawn(40, seed=7, candidates=50)
    found = fit_fused(asked)
    assert surprise(found, asked) < surprise(Fused(), asked)


def test_a_right_photo_counts_once_however_many_lie_beside_it() -> None:
    asked = drawn(100, seed=8)
    once, often = fit_fused(asked), fit_fused([crowded(one) for one in asked])
    for name in ("scale", "posterior", "balance", "impostor"):
        assert getattr(often, name) == pytest.approx(getattr(once, name), rel=1e-4)


def crowded(one: Evidence) -> Evidence:
    """The same query, its right photo there five times."""
    rows = np.append(np.arange(len(one.right)), np.repeat(np.flatnonzero(one.right), 4))
    cosines, impostors = one.cosines[rows], one.impostors[rows]
    return Evidence(
        cosines, impostors, one.log_posterior[rows], one.log_sizes[rows], one.right[rows]
    )


def test_the_fit_is_the_least_surprised() -> None:
    asked = [crowded(one) for one in drawn(200, seed=9)]
    found = fit_fused(asked)
    others = [
        replace(found, scale=found.scale * 1.2),
        replace(found, posterior=found.posterior * 0.8),
        replace(found, balance=found.balance + 0.3),
        replace(found, impostor=found.impostor - 0.2),
    ]
    for other in others:
        assert surprise(found, asked) < surprise(other, asked)
