"""Coverage, diversity, imbalance and needs, on numbers small enough to check by hand."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenplace.errors import PhotoError, PlaceError
from evenplace.photos import Photos
from evenplace.places import Grid
from evenplace.places.coverage import cover, find_needs, measure_diversity
from evenplace.places.tiers import gini, imbalance_ratio
from evenplace.places.wanted import (
    SIDES,
    Curve,
    HeldOut,
    _openness,
    find_gaps,
    find_wanted,
    weigh_views,
)
from tests import oracle_places as oracle


def photos() -> Photos:
    """Three in the first cell, one in the second."""
    return Photos.from_arrays(
        east=[1.0, 2.0, 3.0, 25.0], north=[1.0] * 4, zone=10, heading=[0.0, 10.0, 359.0, np.nan],
        time=["2014-01-01", "2014-05-01", "2019-01-01", "NaT"],
    )  # fmt: skip


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=40))
def test_gini_is_half_the_relative_mean_difference(counts: list[int]) -> None:
    assert gini(counts) == pytest.approx(oracle.gini(counts), abs=1e-12)
    assert imbalance_ratio(counts) == max(counts) / min(counts)


def test_headings_years_and_sides_are_counted() -> None:
    found = cover(photos(), Grid(cell=20).partition(photos()))
    assert found.headings.sum() == 3
    assert found.headings[:, 0].sum() == 2
    assert found.headings[:, 11].sum() == 1
    assert found.years.tolist() == [2014, 2019]
    assert found.by_year.sum(axis=0).tolist() == [2, 1]
    assert found.sides.tolist() == [2, 0]


def test_places_of_other_photos_are_refused() -> None:
    with pytest.raises(PlaceError, match="4 photos and here are 2"):
        cover(photos()[:2], Grid().partition(photos()))


def test_new_photos_help_where_most_places_lack_some() -> None:
    east = [1.0] * 5 + [21.0] * 5 + [41.0] * 5 + [1001.0, 1021.0]
    places = Grid(cell=20).partition(Photos.from_arrays(east=east, north=[1.0] * 17))
    needs = find_needs(places)
    assert len(needs) == 1
    assert (needs[0].below, needs[0].places, needs[0].photos) == (2, 2, 8)
    assert needs[0].centre == (1020.0, 10.0)


def test_diversity_is_the_mean_and_spread_of_all_pairs() -> None:
    places = Grid(cell=20).partition(photos())
    descriptors = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [1.0, 0.0]])
    found = measure_diversity(descriptors, places)
    pairs = [0.0, np.sqrt(0.5), np.sqrt(0.5)]
    np.testing.assert_allclose(found.mean, [np.mean(pairs), np.nan])
    np.testing.assert_allclose(found.spread, [np.std(pairs), np.nan])


def test_two_photos_are_enough_to_disagree() -> None:
    places = Grid(cell=20).partition(photos()[np.array([0, 1, 3])])
    found = measure_diversity(np.array([[1.0, 0.0], [3.0, 4.0], [1.0, 0.0]]), places)
    np.testing.assert_allclose(found.mean, [0.6, np.nan])
    np.testing.assert_allclose(found.spread, [0.0, np.nan])


def test_descriptors_of_other_photos_are_refused() -> None:
    with pytest.raises(PhotoError, match=r"shape \(3, 2\) and there are 4"):
        measure_diversity(np.zeros((3, 2)), Grid().partition(photos()))


def test_a_place_that_fails_more_than_its_photos_say_is_more_open() -> None:
    many = np.full(4, 1e9)  # photos, so that the curve is at its height
    held = HeldOut(np.array([0, 0, 0, 1]), many, np.array([False, False, True, True]))
    found = _openness(Curve(height=0.5), held, 3)
    np.testing.assert_allclose(found, [(2 + 10) / (1.5 + 10), 10 / (0.5 + 10), 1.0])


def scattered(count: int, seed: int, reach: float = 60.0) -> Photos:
    """Photos all over a square, every fourth without a heading."""
    dice = np.random.default_rng(seed)
    heading = np.where(np.arange(count) % 4 == 3, np.nan, dice.uniform(0, 360, count))
    east, north = dice.uniform(0, reach, (2, count))
    return Photos.from_arrays(east=east, north=north, zone=31, heading=heading)


def weight_by_loops(photos: Photos, spot: Any, heading: float, beyond: float = -1.0) -> float:
    total = 0.0
    for (east, north), own in zip(photos.positions, photos.heading, strict=True):
        away = math.hypot(east - spot[0], north - spot[1])
        angle = abs(float(own) - heading) % 360
        facing = 0.25 if math.isnan(own) else max(0.0, 1 - min(angle, 360 - angle) / 90)
        if beyond < away <= 25:
            total += (1 - away / 25) * facing
    return total


@pytest.mark.parametrize("beyond", [-1.0, 8.0])
def test_views_weigh_what_their_loops_say(beyond: float) -> None:
    photos, spots = scattered(40, 0), scattered(12, 1)
    for heading in (0.0, 90.0, 215.0):
        expected = [weight_by_loops(photos, spot, heading, beyond) for spot in spots.positions]
        np.testing.assert_allclose(weigh_views(photos, spots, heading, beyond), expected, rtol=1e-6)


def test_the_first_photo_goes_where_all_views_around_gain_most() -> None:
    photos = scattered(30, 2, reach=150.0)
    places, curve = Grid().partition(photos), Curve()
    gaps = find_gaps(places)
    assert len(gaps)
    spots = [*map(tuple, places.centres), *((east, north) for east, north, _ in gaps)]
    leave = [1.0] * len(places) + [0.1] * len(gaps)  # a gap is seldom asked for
    best: tuple[float, int, str] = (0.0, -1, "")
    for at, spot in enumerate(spots):
        for side, heading in SIDES.items():
            gain = 0.0
            for near, share in zip(spots, leave, strict=True):
                away = math.dist(spot, near)
                if away <= 25:
                    have = weight_by_loops(photos, near, heading)
                    before, after = curve(np.array([have, have + 1 - away / 25]))
                    gain += share * float(after - before)
            best = max(best, (gain, at, side))
    (found,) = find_wanted(photos, places, most=1)
    gain, at, side = best
    assert (found.east, found.north) == pytest.approx(spots[at])
    assert (found.sides, found.photos) == ((side,), 1)
    assert found.gain == pytest.approx(100 * gain / 4, abs=0.05001)
    assert found.between == (at >= len(places))
    assert found.have == sum(math.dist(spots[at], one) <= 25 for one in photos.positions.tolist())
