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
    build_confidence,
    evidence,
    mass,
    ratio,
    same_answer,
    sue,
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
