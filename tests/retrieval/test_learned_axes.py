"""Axes learned from places: what parts photos of one place counts for less, and no more."""

import numpy as np
import pytest

from evenplace.arrays import Floats
from evenplace.retrieval import learned_axes
from evenplace.retrieval.codec import Codec, fit_codec, half_whitened
from evenplace.retrieval.index_writer import Order, by_place
from evenplace.retrieval.learned_axes import learn_axes

PLACES, EACH, DIM = 40, 6, 24


def drawn(seed: int = 0) -> tuple[Floats, Order]:
    """Places differ along all axes; photos of one place along the first six, and there widely."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(PLACES), EACH))
    rows = rng.normal(size=(PLACES, DIM))[labels]
    rows[:, :6] += 3 * rng.normal(size=(len(labels), 6))
    rows += 0.1 * rng.normal(size=rows.shape)
    unit = np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)
    return unit, by_place(labels, PLACES)


def within(codec: Codec, rows: Floats, order: Order) -> Floats:
    """The covariance of what parts photos of one place, before lengths are made one."""
    assert codec.axes is not None
    short = rows[order.rows] @ codec.axes
    total = np.zeros((short.shape[1],) * 2)
    for place in range(PLACES):
        mine = short[order.starts[place] : order.starts[place + 1]]
        total += np.cov(mine, rowvar=False)
    return np.asarray(total / PLACES, np.float32)


def found(codec: Codec, rows: Floats, order: Order) -> float:
    """How often the nearest other photo is of the same place."""
    turned = codec.turn(rows[order.rows])
    cosines = turned @ turned.T - 9 * np.eye(len(turned))
    return float(np.mean(order.labels[cosines.argmax(axis=1)] == order.labels))


def test_photos_of_one_place_part_alike_along_every_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned_axes, "_SHRINK", 1e-6)
    rows, order = drawn()
    start = fit_codec("learned24", rows)
    even = within(learn_axes(start, rows, order), rows, order)
    along = np.linalg.eigvalsh(within(start, rows, order))
    spread = np.linalg.eigvalsh(even)
    assert along[-1] / along[0] > 50
    assert spread[-1] / spread[0] < 3  # lengths are made one first, and pairs are drawn


def test_learned_axes_find_places_that_half_whitened_ones_confuse() -> None:
    rows, order = drawn()
    start = fit_codec("learned24", rows)
    learned = learn_axes(start, rows, order)
    assert found(learned, rows, order) > found(start, rows, order) + 0.1


def test_the_axes_stay_where_there_is_nothing_to_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, order = drawn()
    start = fit_codec("learned24", rows)
    alone = by_place(np.arange(len(rows)), len(rows))
    assert learn_axes(start, rows, alone) is start
    monkeypatch.setattr(learned_axes, "_SHRINK", 1e6)
    stayed = learn_axes(start, rows, order)
    before, after = start.turn(rows), stayed.turn(rows)
    np.testing.assert_allclose(after @ after.T, before @ before.T, atol=1e-4)


def test_half_whitened_axes_part_photos_by_the_root_of_what_they_did() -> None:
    rows, _ = drawn()
    axes, offset = half_whitened(rows, 8)
    centred = rows - rows.mean(axis=0)
    spread = np.sqrt(np.linalg.eigvalsh(centred.T @ centred / len(rows))[::-1][:8])
    along = rows @ axes - offset
    np.testing.assert_allclose(along.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(np.square(along).mean(axis=0), spread * spread[0], rtol=1e-3)


def test_axes_that_no_photo_parts_along_are_left_out() -> None:
    rows, _ = drawn()
    flat = np.concatenate([rows, np.zeros_like(rows)], axis=1)
    codec = fit_codec("white1024", flat)
    assert codec.axes is not None
    assert codec.axes.shape == (48, 48)
    assert np.linalg.matrix_rank(codec.axes) == 24
    assert np.isfinite(codec.turn(flat)).all()
