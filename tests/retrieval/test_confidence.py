"""How sure an answer is: each source on a pool where the right number is plain."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evenplace.errors import SettingError
from evenplace.photos import Photos
from evenplace.places import Grid
from evenplace.retrieval import Search
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.candidates import Pool, Ranking
from evenplace.retrieval.confidence import (
    CONFIDENCES,
    LearnedConfidence,
    build_confidence,
    evidence,
    fit_confidence,
    mass,
    ratio,
    same_answer,
    sue,
    witnesses,
)


def pool_of(cosines: list[float], log_posterior: float = -0.1) -> tuple[Pool, Ranking]:
    values = np.array(cosines, np.float32)
    count = len(values)
    pool = Pool(np.arange(count), np.arange(count), values,
                np.full(count, log_posterior, np.float32), np.ones(2, np.float32))  # fmt: skip
    return pool, Ranking(np.argsort(-values), np.sort(1 - values))


def test_mass_is_the_share_of_likeness_near_the_answer() -> None:
    pool, ranking = pool_of([0.9, 0.9, 0.9])
    spots = np.array([[0.0, 0.0], [10.0, 0.0], [500.0, 0.0]])
    assert mass(pool, ranking, spots, same_answer(0, spots)) == pytest.approx(2 / 3)


def test_the_same_answer_is_near_and_looks_the_same_way_where_that_is_known() -> None:
    spots = np.array([[0.0, 0.0], [25.0, 0.0], [25.1, 0.0], [0.0, 1.0], [0.0, 2.0]])
    assert same_answer(0, spots).tolist() == [True, True, False, True, True]
    headings = np.array([350.0, 35.0, 350.0, 36.0, np.nan], np.float32)
    assert same_answer(0, spots, headings).tolist() == [True, True, False, False, True]


def test_mass_is_one_when_everything_is_here() -> None:
    pool, ranking = pool_of([0.9, 0.2, 0.1])
    assert mass(pool, ranking, np.zeros((3, 2)), np.ones(3, bool)) == pytest.approx(1)


def test_the_ratio_looks_past_neighbours_of_the_answer() -> None:
    pool, ranking = pool_of([0.9, 0.89, 0.5])
    spots = np.array([[0.0, 0.0], [5.0, 0.0], [500.0, 0.0]])
    expected = -np.sqrt(2 - 1.8) / np.sqrt(2 - 1.0)
    assert ratio(pool, ranking, spots, same_answer(0, spots)) == pytest.approx(expected, rel=1e-4)


def test_sue_is_surer_when_references_agree() -> None:
    pool, ranking = pool_of([0.9, 0.88, 0.87])
    near, same = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]]), np.ones(3, bool)
    assert sue(pool, ranking, near, same) > sue(pool, ranking, near * 100, same)


def test_sue_is_the_weighted_spread_of_the_ten_best_as_in_loops() -> None:
    dice = np.random.default_rng(0)
    cosines = dice.uniform(0.5, 0.95, 14).round(3).tolist()
    pool, ranking = pool_of(cosines)
    spots = dice.uniform(0, 300, (14, 2))
    spots[int(ranking.order[2])] += 900.0  # offsets beyond 500 m count as 500
    best = sorted(range(14), key=lambda at: -cosines[at])[:10]
    away = [np.sqrt(2 - 2 * cosines[at]) for at in best]
    weights = [np.exp(-40 * (one - min(away))) for one in away]
    spread = 0.0
    for axis in (0, 1):
        where = [spots[at][axis] for at in best]
        centre = sum(w * x for w, x in zip(weights, where, strict=True)) / sum(weights)
        spread += sum(w * min(abs(x - centre), 500.0) ** 2
                      for w, x in zip(weights, where, strict=True)) / sum(weights) / 2  # fmt: skip
    assert sue(pool, ranking, spots, np.ones(14, bool)) == pytest.approx(-spread, rel=1e-3)


def test_simple_sources_are_what_they_say() -> None:
    pool, _ = pool_of([0.6, 0.82, 0.7], log_posterior=-0.5)
    seen = Ranking(np.array([1, 0, 2]), np.array([3.0, 4, 5], np.float32),
                   np.array([17, np.nan, 3], np.float32))  # fmt: skip
    found = {name: CONFIDENCES[name](pool, seen, np.zeros((3, 2)), np.array([True, True, False]))
             for name in ("l2", "ratio", "posterior", "distance", "inliers")}  # fmt: skip
    assert found == pytest.approx({
        "l2": -0.6, "ratio": -0.6 / np.sqrt(0.6), "posterior": np.exp(-0.5), "distance": -3.0,
        "inliers": 17.0,
    }, rel=1e-5)  # fmt: skip
    unseen = replace(seen, inliers=np.full(3, np.nan, np.float32))
    nobody = replace(seen, inliers=None)
    for ranking in (unseen, nobody):
        assert CONFIDENCES["inliers"](pool, ranking, np.zeros((3, 2)), np.ones(3, bool)) == 0.0
    beyond, first = pool_of([1.0001, 0.5])
    assert CONFIDENCES["l2"](beyond, first, np.zeros((2, 2)), np.ones(2, bool)) == 0.0
    assert ratio(pool, seen, np.zeros((3, 2)), np.ones(3, bool)) == 0.0


def test_witnesses_are_weighed_where_the_penalised_likelihood_is_greatest() -> None:
    dice = np.random.default_rng(1)
    right = dice.random(200) < 0.6
    heard = dice.normal(2, 3, (200, 2)) + right[:, None] * [1.5, 3.0]
    heard = np.column_stack([heard, np.full(200, 4.0), dice.normal(0, 1, 200) - right])
    found = fit_confidence(heard, right)
    assert found.weights[2:] == (0.0, 0.0), "what is constant, or speaks against itself, is silent"
    spread = heard.std(axis=0)
    scaled = (heard - heard.mean(axis=0)) / np.where(spread > 1e-9, spread, np.inf)
    own = np.array(found.weights[:2]) * spread[:2]
    missed = 1 / (1 + np.exp(-(heard @ found.weights + found.offset))) - right
    np.testing.assert_allclose(scaled[:, :2].T @ missed + own, 0, atol=1e-6)
    assert missed.sum() == pytest.approx(0.0, abs=1e-4)


def test_a_learned_confidence_is_the_weighted_sum_of_its_witnesses() -> None:
    pool, ranking = pool_of([0.9, 0.8])
    spots, same = np.array([[0.0, 0.0], [500.0, 0.0]]), np.array([True, False])
    said = witnesses(pool, ranking, spots, same)
    learned = LearnedConfidence((0.5, 2.0, 3.0, 4.0), -1.0)
    expected = 0.5 * said[0] + 2 * said[1] + 3 * said[2] + 4 * said[3] - 1
    assert learned(pool, ranking, spots, same) == pytest.approx(expected)
    assert said.tolist() == pytest.approx([0.1, 0.0, 0.0, 0.9], abs=1e-6)


def test_a_few_answers_of_which_every_one_fits_are_weighed_with_doubt() -> None:
    heard = np.arange(6.0)[:, None]
    right = heard[:, 0] > 2.5
    found = fit_confidence(heard, right)
    scaled = (heard[:, 0] - 2.5) / heard.std()
    missed = 1 / (1 + np.exp(-(heard[:, 0] * found.weights[0] + found.offset))) - right
    assert scaled @ missed + found.weights[0] * heard.std() == pytest.approx(0.0, abs=1e-6)
    assert found.weights[0] * 2.5 + found.offset == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("name", CONFIDENCES)
def test_every_source_gives_a_number_for_a_pool_of_one(name: str) -> None:
    pool, ranking = pool_of([0.8])
    assert np.isfinite(build_confidence(name)(pool, ranking, np.zeros((1, 2)), np.ones(1, bool)))


def test_an_unknown_source_lists_the_known_ones() -> None:
    with pytest.raises(SettingError, match="mass"):
        build_confidence("masss")


def test_evidence_is_the_log_odds_of_the_answers_surroundings() -> None:
    pool, _ = pool_of([0.9, 0.8, 0.7])
    ranking = Ranking(np.array([0, 1, 2]), np.array([1.0, 2.0, 4.0], np.float32))
    spots = np.array([[0.0, 0.0], [10.0, 0.0], [500.0, 0.0]])
    expected = np.log(np.exp(-1) + np.exp(-2)) + 4
    assert evidence(pool, ranking, spots, same_answer(0, spots)) == pytest.approx(expected)


def test_a_place_is_one_witness_however_many_photos_it_has() -> None:
    pool, _ = pool_of([0.9, 0.8, 0.8, 0.8])
    pool = replace(pool, places=np.array([0, 1, 1, 1]))
    ranking = Ranking(np.array([0, 2, 3, 1]), np.array([1.0, 2.0, 2.5, 4.0], np.float32))
    spots = np.array([[0.0, 0.0], [500.0, 0.0], [501.0, 0.0], [502.0, 0.0]])
    assert evidence(pool, ranking, spots, same_answer(0, spots)) == pytest.approx(1.0)


def test_a_place_across_the_edge_is_a_witness_on_both_sides() -> None:
    pool, _ = pool_of([0.9, 0.8])
    pool = replace(pool, places=np.array([3, 3]))
    ranking = Ranking(np.array([0, 1]), np.array([1.0, 2.0], np.float32))
    spots = np.array([[0.0, 0.0], [26.0, 0.0]])
    assert evidence(pool, ranking, spots, same_answer(0, spots)) == pytest.approx(1.0)


def test_evidence_is_bounded_when_nothing_lies_elsewhere() -> None:
    pool, ranking = pool_of([0.9, 0.8])
    assert evidence(pool, ranking, np.zeros((2, 2)), np.ones(2, bool)) == 30
    far = Ranking(np.array([0, 1]), np.array([100.0, 0.0], np.float32))
    assert evidence(pool, far, np.zeros((2, 2)), np.array([True, False])) == -30


def test_an_engine_to_which_headings_matter_is_less_sure_where_views_differ(tmp_path: Path) -> None:
    spots = np.array([[0.0, 0.0], [1.0, 0.0], [300.0, 0.0]])
    photos = Photos.from_arrays(east=spots[:, 0], north=spots[:, 1], heading=[0.0, 180.0, 0.0])
    alike = np.array([[1.0, 0.1], [1.0, 0.0], [0.9, 0.5]], np.float32)
    alike /= np.linalg.norm(alike, axis=1, keepdims=True)
    index = index_descriptors(alike, photos, Grid(20.0).partition(photos), tmp_path)
    sure, facing = (
        float(Search(index, facing=matter).search(alike[:1], k=1).confidence[0])
        for matter in (False, True)
    )
    cosines = alike @ alike[0]
    weight = np.exp(30 * cosines)
    assert sure == pytest.approx(weight[:2].sum() / weight.sum(), abs=0.01)
    assert facing == pytest.approx(weight[0] / weight.sum(), abs=0.01)
