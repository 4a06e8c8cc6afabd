"""Another light changes what is seen and nothing else."""

import numpy as np
import pytest

from evenplace.run.relighting import relight


def street(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(60, 200, (3, 48, 64)).astype(np.uint8)


def test_a_photo_keeps_its_shape_and_its_seed_is_all_that_it_depends_on() -> None:
    first, again = (relight(street(), np.random.default_rng(5)) for _ in range(2))
    assert first.shape == (3, 48, 64)
    assert first.dtype == np.uint8
    np.testing.assert_array_equal(first, again)


def test_some_photos_become_night_and_others_keep_the_day() -> None:
    dice = np.random.default_rng(0)
    light = np.array([relight(street(), dice).mean() for _ in range(200)]) / street().mean()
    assert 0.15 < (light < 0.4).mean() < 0.5
    assert (light > 0.7).mean() > 0.3


@pytest.mark.parametrize("value", [0, 255])
def test_black_and_white_stay_within_the_range(value: int) -> None:
    flat = np.full((3, 32, 32), value, np.uint8)
    assert relight(flat, np.random.default_rng(1)).shape == flat.shape
