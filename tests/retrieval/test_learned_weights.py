"""Weights of the fused score are found again from answers drawn with them."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from evenplace.retrieval import learned_weights
from evenplace.retrieval.learned_weights import Evidence
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
        asked.append(
            Evidence(
                terms[0],
                terms[1],
                terms[2],
                terms[3],
                right,
                np.array([0, candidates]),
                np.ones(1, np.float32),
            )
        )
    return asked


def fit_fused(asked: list[Evidence]) -> Fused:
    return learned_weights.fit_fused(Evidence.join(asked))


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
    lost = [replace(one, right=one.right & False) for one in drawn(50, seed=5)]
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
        cosines,
        impostors,
        one.log_posterior[rows],
        one.log_sizes[rows],
        one.right[rows],
        np.array([0, len(rows)]),
        one.counts,
    )


def test_a_query_that_counts_three_is_as_three_that_count_one() -> None:
    asked, others = drawn(60, seed=10), drawn(60, seed=11)
    heavy = [replace(one, counts=np.full(1, 3, np.float32)) for one in asked]
    # the penalty is worth one query of as many as there are: in 180 it weighs less than in 120
    once, thrice = fit_fused(heavy + others), fit_fused(asked * 3 + others)
    assert once.scale == pytest.approx(thrice.scale, rel=1e-3)
    assert once.scale != pytest.approx(fit_fused(asked + others).scale, rel=1e-3)


def test_terms_that_are_left_out_weigh_nothing() -> None:
    asked = Evidence.join(drawn(80, seed=12))
    found = learned_weights.fit_fused(asked, without=("impostor", "posterior"))
    assert (found.impostor, found.posterior) == (0.0, 0.0)
    assert found.scale > 5
    nothing = replace(asked, right=asked.right & False)
    start = Fused(9.0, 0.3, 0.2, 0.1)
    assert learned_weights.fit_fused(nothing, start, ("balance",)) == replace(start, balance=0.0)


def test_the_fit_is_least_surprised_with_a_penalty_of_one_query() -> None:
    asked = drawn(25, seed=14)
    found, start = fit_fused(asked), Fused()

    def cost(rule: Fused) -> float:
        moved = [
            np.log(rule.scale / start.scale) / 0.5,
            (rule.impostor - start.impostor) / 0.5,
            np.log(rule.posterior / start.posterior),
            rule.balance - start.balance,
        ]
        return 25 * surprise(rule, asked) + float(np.square(moved).sum())

    least = cost(found)
    for times in (0.98, 1.02):
        for name in ("scale", "posterior", "balance", "impostor"):
            assert least < cost(replace(found, **{name: times * getattr(found, name)})), name


def test_places_share_what_queries_count() -> None:
    places = np.array([4, 4, 4, 7, -1])
    assert learned_weights.count_queries(places, "queries").tolist() == [1] * 5
    found = learned_weights.count_queries(places, "places")
    assert found.mean() == pytest.approx(1)
    assert found[:3].sum() == pytest.approx(found[3])
    assert len(learned_weights.count_queries(places[:0], "places")) == 0


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


@pytest.mark.parametrize("block", [1, 7, 100_000])
def test_the_fit_is_the_same_however_many_are_weighed_at_a_time(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = drawn(30, seed=10, candidates=5) + drawn(3, seed=11, candidates=200)
    whole = fit_fused(asked)
    monkeypatch.setattr(learned_weights, "_BLOCK", block)
    parts = fit_fused(asked)
    for name in ("scale", "posterior", "balance", "impostor"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-8)


def test_the_surprise_of_a_block_is_that_of_plain_loops() -> None:
    asked = drawn(6, seed=12, candidates=4) + drawn(2, seed=13, candidates=9)
    joined = Evidence.join(asked)
    score = 3.0 * (joined.cosines - 0.5 * joined.impostors)
    score = score + 0.7 * (joined.log_posterior - 0.2 * joined.log_sizes)
    of = np.repeat(np.arange(8), np.diff(joined.cuts))
    found = learned_weights.surprise(
        torch.from_numpy(score.astype(np.float64)), torch.from_numpy(joined.right),
        torch.from_numpy(of),
    )  # fmt: skip
    rule = Fused(scale=3.0, impostor=0.5, posterior=0.7, balance=0.2)
    expected = [surprise(rule, [one]) for one in asked]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)  # terms are float32


LIMITED = """
import resource
from pathlib import Path
import torch
from tests.retrieval.test_learned_weights import drawn, fit_fused

torch.set_num_threads(1)
fit_fused(drawn(5, seed=0))  # whatever is made once
now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + 200 * 2**20,) * 2)
print(fit_fused(drawn(600, seed=1, candidates=60) + drawn(1, seed=2, candidates=20_000)).scale)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not say")
def test_one_crowded_query_beside_many_small_ones_takes_little_memory() -> None:
    """Padded to the longest, these queries took 1.07 GB; as they are, some 50 MB."""
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, cwd=root, check=False
    )
    assert run.returncode == 0, run.stderr[-500:]
    assert 5 < float(run.stdout) < 40
