"""The approximate shortlist against the exact one, and its posterior."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evenplace.retrieval import shortlist_codes
from evenplace.retrieval.prototypes import PlaceMeans, fit_scale
from evenplace.retrieval.shortlist_codes import Coarse, exact_pass
from evenplace.retrieval.shortlist_tuning import build_coarse, made_up_queries
from tests.drawn import unit

Floats = NDArray[np.float32]


def drawn_places(count: int, dim: int, seed: int, noise: float = 0.5) -> Floats:
    """Unit prototypes along a walk, so that neighbours look alike."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(count + 8, 24))
    walk = sum(steps[i : count + i] for i in range(8)) / 8**0.5
    rows = walk @ rng.normal(size=(24, dim)) + noise * rng.normal(size=(count, dim))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@pytest.fixture(scope="module")
def places() -> tuple[Floats, Floats, Coarse]:
    prototypes = drawn_places(6000, 96, 0)
    rng = np.random.default_rng(1)
    queries = prototypes[rng.integers(6000, size=400)] + 0.06 * rng.normal(size=(400, 96))
    queries = (queries / np.linalg.norm(queries, axis=1, keepdims=True)).astype(np.float32)
    built = build_coarse(prototypes, np.arange(6000), queries[:200], 30.0)
    assert built is not None
    return prototypes, queries[200:], built


def test_at_most_one_in_a_thousand_of_the_exact_shortlist_is_lost(
    places: tuple[Floats, Floats, Coarse],
) -> None:
    prototypes, queries, built = places
    exact = exact_pass(prototypes, np.arange(6000), queries, 30.0)
    found = built.search(queries, prototypes, 20, 30.0)
    kept = [np.isin(a, b).mean() for a, b in zip(exact.places, found.places, strict=True)]
    assert 1 - np.mean(kept) <= 1e-3
    same = found.places == exact.places
    np.testing.assert_allclose(found.scores[same], exact.scores[same], atol=1e-5)
    assert built.tuning.refine < 1500, "the test must not read all prototypes"


def test_the_posterior_s_sum_needs_no_exact_pass(places: tuple[Floats, Floats, Coarse]) -> None:
    prototypes, queries, built = places
    exact = exact_pass(prototypes, np.arange(6000), queries, 30.0).log_total
    brute = np.log(np.exp(30.0 * (queries @ prototypes.T).astype(np.float64)).sum(axis=1))
    np.testing.assert_allclose(exact, brute, rtol=1e-5)
    found = built.search(queries, prototypes, 20, 30.0).log_total
    assert np.percentile(np.abs(found - brute), 95) < 0.1  # a tenth of a nat
    assert np.abs(found - brute).max() < 0.3


def test_longer_shortlists_refine_more(places: tuple[Floats, Floats, Coarse]) -> None:
    prototypes, queries, built = places
    exact = exact_pass(prototypes, np.arange(6000), queries[:50], 30.0, n=60)
    found = built.search(queries[:50], prototypes, 60, 30.0)
    kept = [np.isin(a, b).mean() for a, b in zip(exact.places, found.places, strict=True)]
    assert np.mean(kept) > 0.995


def test_codes_come_back_from_disk(places: tuple[Floats, Floats, Coarse], tmp_path: Path) -> None:
    prototypes, queries, built = places
    tuning = built.write(tmp_path)
    again = Coarse.open(tmp_path, tuning)
    assert again is not None
    np.testing.assert_array_equal(
        again.search(queries, prototypes, 20, 30.0).places,
        built.search(queries, prototypes, 20, 30.0).places,
    )


def test_an_update_keeps_the_axes_until_there_are_many_more_places(
    places: tuple[Floats, Floats, Coarse],
) -> None:
    _, queries, built = places
    prototypes = drawn_places(6700, 96, 0)
    for count, kept in ((6500, True), (6700, False)):
        grown = build_coarse(prototypes, np.arange(count), queries, 30.0, built)
        assert grown is not None
        assert np.array_equal(grown.axes, built.axes) is kept
        assert grown.tuning.fitted == (6000 if kept else count)
        assert grown.tuning.lost <= 1e-3, "measured on the places as they are now"
        np.testing.assert_array_equal(grown.members, np.arange(count))
    assert len(built.members) == built.codes.ntotal == 6000, "a reader of the old ones goes on"


def test_what_was_measured_lasts_while_few_places_change(
    places: tuple[Floats, Floats, Coarse],
) -> None:
    prototypes, queries, built = places
    known = replace(built, tuning=replace(built.tuning, lost=0.5, line=(2.0, 0.1)))
    for since, changed, lasts in ((0, 60, True), (59, 2, False), (0, 61, False)):
        before = replace(known, tuning=replace(known.tuning, changed=since))
        grown = build_coarse(prototypes, np.arange(6000), queries, 30.0, before, changed)
        assert grown is not None
        assert (grown.tuning.lost == 0.5) is lasts
        assert grown.tuning.line == (2.0, 0.1), "terms that are kept follow it"
        assert grown.tuning.changed == (since + changed if lasts else 0)


def test_white_noise_is_left_to_the_exact_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenplace.retrieval.shortlist_tuning._AXES", (64,))
    noise = unit(shortlist_codes.FEWEST, 512, 0)
    assert build_coarse(noise, np.arange(len(noise)), unit(64, 512, 1), 30.0) is None


def test_few_places_need_no_codes() -> None:
    few = drawn_places(200, 32, 0)
    assert build_coarse(few, np.arange(200), few[:20], 30.0) is None


def test_made_up_queries_lie_off_their_photo_as_photos_of_a_place_do() -> None:
    rng = np.random.default_rng(0)
    centres = unit(50, 64, 0)
    rows = np.repeat(centres, 4, axis=0) + 0.05 * rng.normal(size=(200, 64))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    made = made_up_queries(rows, np.arange(0, 201, 4), np.random.default_rng(1), 300)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, rtol=1e-5)
    nearest = (made @ centres.T).max(axis=1)
    assert 0.7 < nearest.mean() < (rows.astype(np.float32) @ centres.T).max(axis=1).mean()


def test_the_fitted_scale_foretells_photos_to_come() -> None:
    rng = np.random.default_rng(0)
    centres = drawn_places(60, 32, 3)
    labels = np.repeat(np.arange(60), 12)

    def photos() -> Floats:
        rows = centres[labels] + 0.18 * rng.normal(size=(720, 32))
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    database = photos()
    sums = PlaceMeans(60, 32)
    sums.add(labels, database)
    means = sums.directions()
    scale = fit_scale(database, np.arange(0, 721, 12), means)
    cosines = photos() @ means.T

    def surprise(scale: float) -> float:
        logits = scale * cosines
        total = np.log(np.exp(logits).sum(axis=1))
        return float(np.mean(total - logits[np.arange(720), labels]))

    assert surprise(scale) < min(surprise(scale / 1.6), surprise(scale * 1.6))


def test_a_scale_without_pairs_is_the_usual_one() -> None:
    assert fit_scale(unit(5, 8, 0), np.arange(6), unit(5, 8, 0)) == 30.0
