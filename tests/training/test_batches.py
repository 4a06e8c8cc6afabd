"""Samplers: how often a place is met."""

import numpy as np
import pytest
import torch

from evenplace.training.augment import Augmentation, augmented
from evenplace.training.batches import epoch_rows, split_batches

LABELS = np.repeat([0, 1, 2], [900, 90, 10])


def shares(sampler: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    drawn = np.concatenate([epoch_rows(LABELS, sampler, rng) for _ in range(20)])
    return np.bincount(LABELS[drawn], minlength=3) / len(drawn)


def test_by_photo_every_photo_is_seen_once() -> None:
    rows = epoch_rows(LABELS, "photo", np.random.default_rng(0))
    assert sorted(rows) == list(range(1000))


def test_by_place_every_place_is_met_equally_often() -> None:
    np.testing.assert_allclose(shares("place"), 1 / 3, atol=0.02)


def test_by_root_places_are_met_by_the_root_of_their_count() -> None:
    roots = np.sqrt([900, 90, 10])
    np.testing.assert_allclose(shares("sqrt"), roots / roots.sum(), atol=0.02)


@pytest.mark.parametrize("sampler", ["photo", "place", "sqrt"])
def test_the_same_seed_draws_the_same_photos(sampler: str) -> None:
    one, two = (epoch_rows(LABELS, sampler, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_batches_are_of_nearly_one_size_and_lose_nothing() -> None:
    parts = split_batches(np.arange(130), 64)
    assert sorted(np.concatenate(parts)) == list(range(130))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_views_stay_pictures_and_follow_the_generator() -> None:
    photos = torch.randint(0, 255, (4, 3, 32, 32), dtype=torch.uint8)
    first, again, other = (
        augmented(photos, torch.Generator().manual_seed(seed), Augmentation(flip=True))
        for seed in (1, 1, 2)
    )
    assert first.shape == photos.shape
    assert float(first.min()) >= 0
    assert float(first.max()) <= 1
    torch.testing.assert_close(first, again)
    assert not torch.equal(first, other)


def test_a_crop_of_a_plain_wall_is_the_plain_wall() -> None:
    wall = torch.tensor([200, 100, 50], dtype=torch.uint8).view(1, 3, 1, 1).expand(2, 3, 16, 16)
    seen = augmented(wall, torch.Generator().manual_seed(0), Augmentation(jitter=0.0))
    torch.testing.assert_close(seen, wall / 255, atol=1e-5, rtol=0)
