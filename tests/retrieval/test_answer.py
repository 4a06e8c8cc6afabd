"""Answers: hits, places, one position with its ellipse, and when not to answer."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evenplace.errors import SettingError
from evenplace.places import Grid
from evenplace.retrieval import Index, Position, Search
from evenplace.retrieval.answers import say_bar
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.calibration import fit_calibration
from evenplace.retrieval.candidates import Pools
from evenplace.retrieval.positions import Around
from tests.drawn import EAST, NORTH, photos_at, unit


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """Three places 100 m apart: ten photos, four, and one."""
    spots = np.repeat([[10.0, 10], [110, 10], [210, 10]], [10, 4, 1], axis=0)
    spots += np.random.default_rng(0).uniform(-5, 5, spots.shape)
    vectors = 4 * np.repeat(unit(3, 16, 0), [10, 4, 1], axis=0) + unit(15, 16, 1)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    photos = photos_at(spots)
    return index_descriptors(
        vectors.astype(np.float32), photos, Grid(20).partition(photos), tmp_path / "index"
    )


def asked(index: Index, row: int) -> np.ndarray:
    query = np.asarray(index.descriptors[[row]], np.float32)
    return query / np.linalg.norm(query)


def fuse_position(spots: NDArray[np.float64], cosines: NDArray[np.float32], best: int) -> Position:
    """The position of one query's candidates."""
    nobody, nothing = np.zeros(len(spots), np.int64), np.zeros(len(spots), np.float32)
    pools = Pools(
        rows=nobody,
        places=nobody,
        cosines=cosines,
        log_posterior=nothing,
        queries=np.zeros((1, 0), np.float32),
        cuts=np.array([0, len(spots)]),
    )
    return Around(pools, spots, np.array([best])).positions()[0]


def test_an_answer_says_it_all(index: Index) -> None:
    answer = Search(index).answers(asked(index, 12), k=3)[0]
    assert [hit.place for hit in answer.hits] == [1, 1, 1]
    first = answer.places[0]
    assert (first.place, first.photos, first.centre) == (1, 4, (EAST + 110, NORTH + 10))
    assert first.tier in ("head", "middle", "tail")
    assert sum(guess.posterior for guess in answer.places) == pytest.approx(1, abs=1e-4)
    assert np.hypot(answer.position.east - EAST - 110, answer.position.north - NORTH - 10) < 8
    assert not answer.abstains
    assert answer.reason == ""
    assert set(answer.elapsed_ms) >= {"classify", "gather", "rank"}


def test_doubtful_answers_are_kept_back(index: Index) -> None:
    raw = np.linspace(0, 1, 200).astype(np.float32)
    curve = fit_calibration(raw, raw > 0.5)
    sure = Search(index, calibration=curve, min_precision=0.9)
    unsure = Search(index, calibration=fit_calibration(raw, raw > 2), min_precision=0.9)
    assert not sure.answers(asked(index, 0))[0].abstains
    kept_back = unsure.answers(asked(index, 0))[0]
    assert kept_back.abstains
    assert "for 90 % right" in kept_back.reason
    assert kept_back.hits, "what it would have said is still there to be read"


@pytest.mark.parametrize(
    ("confidence", "least", "said"),
    [
        (0.41, 0.83, "95 % right, each answer and all together, takes 83 or more"),
        (0.9951, 0.9962, "95 % right, each answer and all together, takes 99.6 or more"),
        (1.0, 2.0, "enough for 95 % right, each answer and all together"),
    ],
)
def test_the_bar_is_a_number_that_the_confidence_is_not(
    confidence: float, least: float, said: str
) -> None:
    assert say_bar(0.95, least, confidence).endswith(said)


def test_an_answer_says_how_often_it_is_right_and_what_the_bar_is_about(index: Index) -> None:
    raw = np.linspace(0, 1, 200).astype(np.float32)
    curve = fit_calibration(raw, raw > 0.5)
    plain, barred, doubted = (
        Search(index, calibration=one, min_precision=least, insist=True).answers(asked(index, 0))[0]
        for one, least in ((curve, None), (curve, 0.9), (replace(curve, doubt="it rained"), 0.9))
    )
    often = f"answers like this one are right {100 * plain.confidence:.0f} times in 100"
    assert plain.meaning == often
    bar = r"90 % right, each answer and all together, takes \d+(\.\d+)? or more"
    assert re.fullmatch(f"{often}, and {bar}", barred.meaning)
    none = "uncalibrated, a score and no probability, as it rained; by the rehearsal there was"
    assert re.fullmatch(f"{none}, {bar}", doubted.meaning)
    assert [one.reason for one in (plain, barred, doubted)] == [""] * 3


def test_confidence_is_the_calibration_s(index: Index) -> None:
    raw = np.linspace(0, 1, 50).astype(np.float32)
    curve = fit_calibration(raw, raw > 0.3)
    queries = unit(4, 16, 9)
    plain = Search(index).search(queries, 1).confidence
    np.testing.assert_allclose(
        Search(index, calibration=curve).search(queries, 1).confidence, curve(plain), atol=1e-6
    )


def test_a_promise_of_precision_needs_a_calibration(index: Index) -> None:
    with pytest.raises(SettingError, match=r"min_precision=0.9 needs a calibration"):
        Search(index, min_precision=0.9)


def test_hidden_rows_are_not_seen(index: Index) -> None:
    query = asked(index, 12)
    engine = Search(index)
    hidden = np.flatnonzero(index.labels == 1)
    found = engine.search(np.repeat(query, 2, axis=0), 15, without=[hidden, np.empty(0, np.int64)])
    assert not set(found.rows[0]) & set(hidden)
    assert set(found.rows[1]) >= set(hidden)
    assert not set(next(engine.batches(query, without=[hidden])).pools.rows) & set(hidden)


def test_nothing_left_to_compare_with_is_said(index: Index) -> None:
    found = Search(index).search(asked(index, 0), 3, without=[np.arange(len(index))])
    assert found.rows.tolist() == [[-1, -1, -1]]
    assert found.confidence[0] == 0
    assert np.isnan(found.positions[0].east)


def test_the_ellipse_points_along_the_street() -> None:
    along = np.linspace(-30, 30, 21)
    street = np.stack([along, along], axis=1)  # north-east
    found = fuse_position(street, np.ones(21, np.float32), 10)
    assert (found.east, found.north) == pytest.approx((0, 0), abs=1e-9)
    assert found.ellipse.bearing == pytest.approx(45)
    assert found.ellipse.major > 2 * found.ellipse.minor


def test_the_ellipse_holds_95_of_100_gaussian_fixes() -> None:
    rng = np.random.default_rng(0)
    spread = np.array([12.0, 5.0])
    found = fuse_position(rng.normal(0, 1e-3, (50, 2)), np.ones(50, np.float32), 0)
    assert found.ellipse.major == pytest.approx(np.sqrt(5.991) * 8, rel=1e-3)
    cloud = rng.normal(size=(4000, 2)) * spread
    near = cloud[np.hypot(*cloud.T) < 40]
    found = fuse_position(near, np.ones(len(near), np.float32), int(np.hypot(*near.T).argmin()))
    axes = np.array([found.ellipse.major, found.ellipse.minor])
    fixes = rng.normal(size=(4000, 2)) * np.sqrt(spread**2 + 64)
    inside = ((fixes / axes) ** 2).sum(axis=1) <= 1
    assert found.ellipse.bearing == pytest.approx(90, abs=5)
    assert 0.93 < inside.mean() < 0.97


def test_the_ellipse_is_about_the_mean_whichever_photo_is_best() -> None:
    corners = np.array([[0.0, 0], [20, 0], [20, 6], [0, 6]])
    for best in range(4):
        found = fuse_position(corners, np.full(4, 0.5, np.float32), best)
        assert (found.east, found.north) == pytest.approx((10, 3))
        axes = np.sqrt(5.991 * np.array([10**2 + 64, 3**2 + 64]))  # variance, and the step's
        assert (found.ellipse.major, found.ellipse.minor) == pytest.approx(tuple(axes))
        assert found.ellipse.bearing == pytest.approx(90)


def test_look_alikes_elsewhere_do_not_move_the_position() -> None:
    spots = np.array([[0.0, 0], [10, 0], [5000, 0]])
    found = fuse_position(spots, np.array([0.9, 0.9, 0.9], np.float32), 0)
    assert found.east == pytest.approx(5)
    assert found.ellipse.major < 30
