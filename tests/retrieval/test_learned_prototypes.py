"""Prototypes learned from fixed descriptors: what a photo asks of its place without itself."""

from pathlib import Path

import numpy as np
import pytest
import torch

from evenplace.arrays import Floats
from evenplace.errors import SettingError
from evenplace.retrieval import learned_prototypes, prototypes
from evenplace.retrieval.learned_prototypes import LEARNED, find_prototypes, learn_prototypes
from evenplace.retrieval.prototypes import PlaceMeans, fit_scale

SIZES = np.array([9, 0, 2, 1, 14, 2, 3, 2, 6, 1, 2, 8])
STARTS = np.append(0, np.cumsum(SIZES))
LABELS = np.repeat(np.arange(len(SIZES)), SIZES)


def drawn(dim: int = 24, noise: float = 0.9) -> Floats:
    """Photos that resemble their place, whose direction they share with another half the time."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(len(SIZES), dim))
    centres[2:] += 0.7 * centres[:-2]
    rows = centres[LABELS] + noise * dim**0.5 * rng.normal(size=(len(LABELS), dim)) / 2
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def summed(rows: Floats) -> PlaceMeans:
    means = PlaceMeans(len(SIZES), rows.shape[1])
    means.add(LABELS, rows)
    return means


def asked_without_itself(rows: Floats, means: Floats, scale: float, least: int = 1) -> Floats:
    """-log p of each photo's own place among those of so many photos; nan for photos alone."""
    found = np.full(len(rows), np.nan)
    for photo, place in enumerate(LABELS):
        if SIZES[place] < 2:
            continue
        logits = []
        for other in np.flatnonzero(least <= SIZES):
            vector = means[other] * SIZES[other] - rows[photo] if other == place else means[other]
            logits.append(scale * rows[photo] @ vector / np.linalg.norm(vector))
        own = int((np.flatnonzero(least <= SIZES) == place).argmax())
        found[photo] = np.log(np.exp(np.array(logits)).sum()) - logits[own]
    return found


@pytest.mark.parametrize("rivals", [4096, 5])
def test_a_photo_asks_its_place_without_itself(
    rivals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned_prototypes, "_RIVALS", rivals)
    rows, held = drawn(), np.flatnonzero(SIZES)
    means = np.stack([rows[place == LABELS].mean(axis=0) for place in held])
    loss = learned_prototypes._loss("softmax", SIZES[held], 7.0)
    known = learned_prototypes._Left(loss, means.astype(np.float32), SIZES[held], 0)
    labels = np.searchsorted(held, LABELS)
    several = np.flatnonzero(SIZES[LABELS] > 1)
    every = np.zeros((len(SIZES), rows.shape[1]), np.float32)
    every[held] = means
    least = 1 if rivals > 5 else 2  # a sample of 5 is the batch's places, and none is alone there
    expected = asked_without_itself(rows, every, 7.0, least)[several].mean()
    asked = known(torch.from_numpy(rows[several]), torch.from_numpy(labels[several]))
    assert asked.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", LEARNED)
def test_learning_tells_places_apart_that_means_confuse(name: str) -> None:
    rows = drawn()
    means = np.stack([rows[p == LABELS].sum(axis=0) / max(n, 1) for p, n in enumerate(SIZES)])
    found, scale = learn_prototypes(name, rows, STARTS, summed(rows))
    directions = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    assert scale == fit_scale(rows, STARTS, directions.astype(np.float32))
    np.testing.assert_allclose(np.linalg.norm(found[SIZES > 0], axis=1), 1, atol=1e-6)
    assert not found[1].any()  # nobody has been there
    near = np.vecdot(found, directions)[SIZES > 0]
    assert (near > 0.9).all()
    assert (near < 1 - 1e-6).any()
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    before, after = (
        np.nanmean(asked_without_itself(rows, some * lengths, scale))
        for some in (directions, found)
    )
    assert after < before - 0.02


def test_low_visit_bias_gives_rare_places_more_than_softmax_does() -> None:
    rows, rare = drawn(), SIZES[SIZES > 0] <= 2
    given = {}
    for name in LEARNED:
        found, scale = learn_prototypes(name, rows, STARTS, summed(rows))
        logits = scale * rows @ found[SIZES > 0].T
        chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        given[name] = chance[:, rare].sum(axis=1).mean()
    assert given["low-visit-bias"] > given["softmax"] + 1e-3


def test_wide_descriptors_move_along_their_axes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned_prototypes, "_AXES", 8)
    monkeypatch.setattr(learned_prototypes, "AXES_SAMPLE", 40)
    rows = drawn()
    axes = learned_prototypes._axes(rows)
    assert axes is not None
    assert axes.shape == (24, 8)
    found, _ = learn_prototypes("low-visit-bias", rows, STARTS, summed(rows))
    means = summed(rows).directions()

    def outside(some: Floats) -> Floats:
        left = (some - some @ axes @ axes.T)[SIZES > 0]
        return np.asarray(left / np.linalg.norm(left, axis=1, keepdims=True))

    np.testing.assert_allclose(outside(found), outside(means), atol=1e-4)
    assert np.abs(found @ axes - means @ axes).max() > 1e-3


def test_places_of_one_photo_each_keep_their_means() -> None:
    rows = drawn()[:12]
    means = PlaceMeans(12, rows.shape[1])
    means.add(np.arange(12), rows)
    found, _ = find_prototypes("softmax", rows, np.arange(13), means)
    np.testing.assert_allclose(found, rows, atol=1e-6)


def test_what_folds_must_settle_is_not_made_up() -> None:
    with pytest.raises(SettingError, match=r"prototypes=best .* tune first: evenplace tune"):
        find_prototypes("best", drawn(), STARTS, summed(drawn()))


def test_sums_that_fill_memory_lie_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = drawn()
    expected = summed(rows).directions()
    monkeypatch.setattr(prototypes, "_IN_MEMORY", 10)
    means = PlaceMeans(len(SIZES), rows.shape[1], tmp_path)
    means.add(LABELS, rows)
    found = means.directions()
    assert isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, expected)
    assert not list(tmp_path.iterdir())  # the file has no name
