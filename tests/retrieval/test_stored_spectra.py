"""Characteristic functions as they lie on disk, against those of the formulas."""

from pathlib import Path

import numpy as np
import pytest

from evenplace.retrieval import spectrum
from evenplace.retrieval.stored_spectra import PolarSpectra, as_turns, draw_points, write_spectra
from tests.drawn import unit

SIZES = np.array([4, 1, 0, 7])
STARTS = np.concatenate([[0], SIZES.cumsum()])


@pytest.mark.parametrize("phase", ["wrapped", "weighted"])
@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("mode", ["paper", "multiscale", "matched"])
def test_distances_from_disk_equal_the_formula(
    mode: str, unbiased: bool, phase: str, tmp_path: Path
) -> None:
    rows = unit(12, 8, 0)
    points = draw_points(mode, 8, count=64, seed=0, spread=0.5)
    write_spectra(tmp_path, mode, rows.astype(np.float16), STARTS, points)
    kept = PolarSpectra.open(tmp_path, mode)
    phi = spectrum.place_spectra(rows.astype(np.float16), STARTS, points)
    amplitude = spectrum.amplitudes(phi, SIZES, unbiased=unbiased)
    query = unit(1, 8, 3)
    places = np.array([3, 0, 1])
    expected = spectrum.cfd(
        spectrum.characteristic(query, points)[0], phi[places], amplitude[places], 0.6, phase=phase
    )
    asked = as_turns(np.repeat(query @ points.T, 3, axis=0))
    found = kept.distances(asked, places, 0.6, phase=phase, unbiased=unbiased)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-4)
    assert np.isfinite(kept.levels).all()


def test_measuring_in_memory_equals_writing(tmp_path: Path) -> None:
    rows = unit(12, 8, 0).astype(np.float16)
    points = draw_points("paper", 8, count=32, seed=0, spread=1.0)
    write_spectra(tmp_path, "paper", rows, STARTS, points)
    kept, measured = (
        PolarSpectra.open(tmp_path, "paper"),
        PolarSpectra.measure(rows, STARTS, points),
    )
    np.testing.assert_array_equal(kept.phases, measured.phases)
    np.testing.assert_allclose(kept.levels, measured.levels, atol=1e-3)


def test_turns_wrap_round_by_themselves() -> None:
    angles = np.array([0.1, 2 * np.pi + 0.1, -0.1 - 4 * np.pi], np.float32)
    turns = as_turns(angles)
    assert abs(int(turns[0]) - int(turns[1])) <= 1
    a, b = (
        as_turns(np.array([np.pi - 0.05], np.float32)),
        as_turns(np.array([-np.pi + 0.05], np.float32)),
    )
    assert (b - a) * np.pi / 2**15 == pytest.approx(0.1, abs=2e-4)


def test_photos_in_no_place_come_last() -> None:
    points = draw_points("paper", 8, count=16, seed=0, spread=1.0)
    spectra = PolarSpectra.measure(unit(12, 8, 0), STARTS, points)
    found = spectra.distances(
        np.zeros((2, 16), np.int16), np.array([-1, 0]), 0.0, phase="wrapped", unbiased=False
    )
    assert found[0] > found[1]
