"""Cities that nobody named: zones, and clusters more than 20 km apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenplace.photos.cities import find_cities, find_clusters, is_made_up


@pytest.mark.parametrize("turn", [0.0, 0.3, np.pi / 4, 1.4])
@pytest.mark.parametrize(("gap", "cities"), [(19_800, 1), (20_200, 2)])
def test_twenty_kilometres_part_cities_whatever_the_direction(
    gap: float, cities: int, turn: float
) -> None:
    rng = np.random.default_rng(0)
    near = rng.uniform(0, 200, (50, 2))
    across = np.array([np.cos(turn), np.sin(turn)])
    near -= np.outer(near @ across, across)  # a line square to the gap
    spots = np.concatenate([near, near[:20] + gap * across]) + np.array([432_100, 5_432_100])
    found = find_clusters(*spots.T)
    assert found.max() + 1 == cities
    assert (found[:50] == 0).all()  # the largest comes first


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 60), st.floats(20_000, 400_000))
def test_clusters_are_those_of_single_linkage(seed: int, count: int, reach: float) -> None:
    spots = np.random.default_rng(seed).uniform(0, reach, (count, 2)).round(-3)
    gaps = np.hypot(*(spots[:, None] - spots[None]).transpose(2, 0, 1))
    if (np.abs(gaps - 20_000) < 300).any():  # told to 100 m only
        return
    same = gaps <= 20_000
    for _ in range(count):
        same = (same.astype(int) @ same) > 0
    found = find_clusters(*spots.T)
    assert ((found[:, None] == found[None]) == same).all()
    sizes = np.bincount(found)
    assert (np.diff(sizes) <= 0).all()


def test_names_say_zone_and_rank() -> None:
    east = np.array([0.0, 0.0, 100_000.0, 0.0])
    zone = np.array([31, 31, 31, -56], np.int8)
    names, numbers = find_cities(east, np.zeros(4), zone)
    assert [names[number] for number in numbers] == ["31N", "31N", "31N-2", "56S"]
    assert all(map(is_made_up, names))
    assert not is_made_up("Boston")
