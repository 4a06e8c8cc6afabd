"""Coverage, diversity, imbalance and needs, on numbers small enough to check by hand."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenplace.errors import PhotoError, PlaceError, SettingError
from evenplace.photos import Photos
from evenplace.places import Given, Grid
from evenplace.places.coverage import cover, find_needs, measure_diversity
from evenplace.places.tiers import gini, imbalance_ratio
from evenplace.places.wanted import (
    SIDES,
    Curve,
    HeldOut,
    _openness,
    find_gaps,
    find_wanted,
    fit_curve,
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


def test_photos_are_counted_by_tier_heading_and_year_as_in_loops() -> None:
    dice = np.random.default_rng(0)
    heading = np.where(dice.random(300) < 0.2, np.nan, dice.uniform(0, 360, 300))
    heading[:3] = (0.0, 30.0, np.nextafter(np.float32(360), np.float32(0)))
    years = dice.integers(1968, 2024, 300)
    time = [f"{year}-07-01" if year % 5 else "NaT" for year in years]
    many = Photos.from_arrays(
        east=dice.uniform(0, 160, 300) ** 1.2, north=np.ones(300), zone=10, heading=heading,
        time=time,
    )  # fmt: skip
    places = Grid(cell=20, min_photos=9).partition(many)
    found = cover(many, places)
    headings, by_year = np.zeros((3, 12), int), np.zeros((3, len(found.years)), int)
    sides: dict[int, set[int]] = {place: set() for place in range(len(places))}
    for row, label in enumerate(places.labels.tolist()):
        if label >= 0 and not math.isnan(many.heading[row]):
            side = int(many.heading[row] // 30)
            headings[places.tiers[label], side] += 1
            sides[label].add(side)
        if label >= 0 and time[row] != "NaT":
            by_year[places.tiers[label], found.years.tolist().index(years[row])] += 1
    assert places.outside
    assert found.headings.tolist() == headings.tolist()
    assert found.by_year.tolist() == by_year.tolist()
    assert found.sides.tolist() == [len(sides[place]) for place in range(len(places))]


def test_without_a_heading_no_side_is_counted() -> None:
    blind = Photos.from_arrays(east=[1.0, 2.0], north=[1.0, 1.0], zone=10)
    found = cover(blind, Grid().partition(blind))
    assert found.headings.shape == (3, 0)
    assert found.sides.tolist() == [0]
    assert found.by_year.shape == (3, 0)


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


def test_needs_are_ranked_by_places_and_then_by_photos_that_lack() -> None:
    dice = np.random.default_rng(1)
    crowd = Photos.from_arrays(
        east=1000 * dice.beta(2, 4, 6000), north=600 * dice.beta(1, 3, 6000), zone=10
    )
    places = Grid(cell=20).partition(crowd)
    target = int(np.median(places.counts))
    blocks: dict[tuple[int, int], list[int]] = {}
    for place, (east, north) in enumerate(places.centres.tolist()):
        blocks.setdefault((int(east // 100), int(north // 100)), []).append(place)
    expected = []
    for block, mine in blocks.items():
        lack = [max(target - int(places.counts[place]), 0) for place in mine]
        below = sum(one > 0 for one in lack)
        centre = tuple(places.centres[mine].mean(axis=0).tolist())
        if below:
            expected.append((-below, -sum(lack), block, len(mine), centre))
    expected.sort()
    found = find_needs(places, block=100.0, most=20)
    assert len(expected) > 20
    assert len({below for below, *_ in expected}) < len(expected), "photos decide some"
    for need, (few, missing, _, total, centre) in zip(found, expected[:20], strict=True):
        assert (need.below, need.photos, need.places) == (-few, -missing, total)
        assert need.centre == pytest.approx(centre)
    assert find_needs(places) == find_needs(places, block=200.0, most=12)
    assert find_needs(Grid(min_photos=6001).partition(crowd)) == []


def test_of_a_crowded_place_64_photos_are_compared_evenly_spaced() -> None:
    many = Photos.from_arrays(east=np.full(150, 5.0), north=np.full(150, 5.0), zone=10)
    z = np.random.default_rng(0).normal(0, 1, (150, 3))
    found = measure_diversity(z, Grid().partition(many))
    rows = [int(149 * at / 63 + 1e-9) for at in range(64)]
    unit = [z[row] / np.linalg.norm(z[row]) for row in rows]
    cosines = [float(unit[i] @ unit[j]) for i in range(64) for j in range(i)]
    assert found.mean.tolist() == pytest.approx([np.mean(cosines)])
    assert found.spread.tolist() == pytest.approx([np.std(cosines)])


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


def test_a_curve_is_fitted_to_thirty_answers_and_more() -> None:
    def held(right: list[bool], near: float = 1.0) -> HeldOut:
        count = len(right)
        return HeldOut(np.zeros(count, np.int64), np.full(count, near), np.array(right))

    assert fit_curve(held([True] * 29)) == Curve(0.9, 0.8)
    best, worst = fit_curve(held([True] * 30)), fit_curve(held([False] * 30))
    assert (best.height, best.pace) == pytest.approx((1.0, 0.3))
    assert (worst.height, worst.pace) == pytest.approx((0.3, 30.0))
    near = np.repeat([0.5, 1.0, 2.0, 4.0, 9.0], 1000)
    drawn = np.tile(np.arange(1000) / 1000, 5) < 0.6 * (1 - np.exp(-near / 3))
    found = fit_curve(HeldOut(np.zeros(5000, np.int64), near, drawn))
    assert (found.height, found.pace) == pytest.approx((0.6, 3.0))


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


def test_a_photo_exactly_as_far_as_none_counts_does_not_count() -> None:
    spot = Photos.from_arrays(east=[0.0], north=[0.0], zone=31)
    photo = Photos.from_arrays(east=[8.0], north=[0.0], zone=31, heading=[0.0])
    assert weigh_views(photo, spot, 0.0, beyond=8.0).tolist() == [0.0]
    assert weigh_views(photo, spot, 0.0, beyond=7.9).tolist() == pytest.approx([1 - 8 / 25])
    here = Photos.from_arrays(east=[0.0], north=[0.0], zone=31, heading=[0.0])
    assert weigh_views(here, spot, 0.0).tolist() == [1.0]


def test_gaps_lie_halfway_between_places_as_in_loops() -> None:
    dice = np.random.default_rng(3)
    east, north = dice.uniform(0, 300, (2, 60))
    east[:4], north[:4] = (1005.0, 1035.0, 2005.5, 2034.5), 500.0  # at 30 m, and nearer
    photos = Photos.from_arrays(
        east=east, north=north, zone=np.repeat([31, 32], 30), place=np.arange(60)
    )
    places = Given().partition(photos)
    spots = set()
    for (one, zone), (other, theirs) in combinations(
        zip(places.centres.tolist(), places.zones.tolist(), strict=True), 2
    ):
        if zone == theirs and 30 <= math.dist(one, other) <= 60:
            east_of, north_of = (
                round((a + b) / 2 / 20) * 20.0 for a, b in zip(one, other, strict=True)
            )
            spots.add((east_of, north_of, zone))
    free = [
        spot for spot in sorted(spots)
        if all(spot[2] != zone or math.dist(spot[:2], one) > 14
               for one, zone in zip(places.centres.tolist(), places.zones.tolist(), strict=True))
    ]  # fmt: skip
    assert find_gaps(places).tolist() == [list(spot) for spot in free]
    assert (1020.0, 500.0, 31) in free
    assert not any(east > 1500 for east, _, _ in spots)
    assert find_gaps(places.take(np.array([0]))).shape == (0, 3)


def test_photos_are_given_out_one_by_one_as_in_loops() -> None:
    photos = scattered(30, 2, reach=150.0)
    places = Grid().partition(photos)
    held = HeldOut(np.arange(8), np.full(8, 2.0), np.arange(8) % 3 > 0)
    curve, gaps = Curve(), find_gaps(places)
    spots = [*map(tuple, places.centres), *((east, north) for east, north, _ in gaps)]
    leave = [*_openness(curve, held, len(places)).tolist(), *[0.1] * len(gaps)]
    have = {(at, side): weight_by_loops(photos, spot, heading)
            for at, spot in enumerate(spots) for side, heading in SIDES.items()}  # fmt: skip
    near = {
        at: [(other, 1 - math.dist(spot, place) / 25) for other, place in enumerate(spots)
             if math.dist(spot, place) <= 25]
        for at, spot in enumerate(spots)
    }  # fmt: skip
    gains = dict.fromkeys(range(len(spots)), 0.0)
    taken: dict[int, list[str]] = {}
    for _ in range(7):
        worth = {
            (at, side): sum(
                leave[other] * float(np.diff(curve(np.array([have[other, side],
                                                             have[other, side] + weight])))[0])
                for other, weight in near[at]
            )
            for at, side in have
        }  # fmt: skip
        at, side = max(worth, key=lambda view: worth[view])
        gains[at] += worth[at, side]
        taken.setdefault(at, []).append(side)
        for other, weight in near[at]:
            have[other, side] += weight
    found = find_wanted(photos, places, 7, held)
    wanted = sorted(taken, key=lambda at: -gains[at])
    assert [(one.east, one.north) for one in found] == [pytest.approx(spots[at]) for at in wanted]
    assert [one.sides for one in found] == [tuple(taken[at]) for at in wanted]
    assert [one.photos for one in found] == [len(taken[at]) for at in wanted]
    for one, at in zip(found, wanted, strict=True):
        assert one.gain == pytest.approx(100 * gains[at] / 4, abs=0.05001)
    assert {one.zone for one in found} == {31}
    assert sum(one.photos for one in find_wanted(photos, places)) == 100
    with pytest.raises(SettingError, match="--most 0 wants no photos"):
        find_wanted(photos, places, 0)


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
