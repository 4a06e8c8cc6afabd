"""Photos are parted by spot: none is on both sides."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evenplace.errors import SettingError
from evenplace.photos.choose import split_by_position, spots_of
from tests.drawn import photos_at


def bursts(spots: int, each: int) -> NDArray[np.float64]:
    return np.repeat(np.column_stack([np.arange(spots) * 7.0, np.zeros(spots)]), each, axis=0)


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(1, 4), st.integers(0, 9))
def test_every_photo_goes_to_one_part_and_spots_stay_whole(
    spots: int, each: int, seed: int
) -> None:
    photos = photos_at(bursts(spots, each))
    parts = split_by_position(photos, (0.6, 0.4), seed)
    paths = [set(part.paths) for part in parts]
    assert sum(len(p) for p in paths) == len(photos)
    assert set().union(*paths) == set(photos.paths)
    east = [set(part.east.tolist()) for part in parts]
    assert not east[0] & east[1]
    assert len(east[0]) == round(0.6 * spots)


def test_seeds_part_differently_and_repeat_themselves() -> None:
    photos = photos_at(bursts(30, 2))
    first, again, other = (split_by_position(photos, (0.5, 0.5), s)[0].paths for s in (1, 1, 2))
    assert first == again != other


def test_spots_are_told_apart_to_the_centimetre() -> None:
    photos = photos_at(np.array([[0.0, 0.0], [0.001, 0.0], [0.02, 0.0]]))
    spot = spots_of(photos)
    assert spot[0] == spot[1] != spot[2]


@pytest.mark.parametrize("shares", [(), (0.0, 0.0), (1.0, -0.5)])
def test_shares_that_part_nothing_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(SettingError, match="positive numbers"):
        split_by_position(photos_at(bursts(3, 1)), shares)
