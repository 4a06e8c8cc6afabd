"""Characteristic functions, step by step and as they lie on disk, against the formulas."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from evenplace.errors import SettingError
from evenplace.retrieval import spectrum
from evenplace.retrieval.spectrum import PolarSpectra, as_turns, draw_frequencies, write_spectra
from tests import oracle_search as oracle
from tests.drawn import unit

Floats = NDArray[np.float32]
Spectrum = NDArray[np.complex64]
SIZES = np.array([4, 1, 0, 7])
STARTS = np.concatenate([[0], SIZES.cumsum()])


def characteristic(descriptors: Floats, frequencies: Floats) -> Spectrum:
    """exp(i <t_k, z>) of each descriptor: a point on the unit circle.  -> (N, F)."""
    return np.asarray(np.exp(1j * (descriptors @ frequencies.T)), np.complex64)


def cfd(
    query: Spectrum, spectra: Spectrum, amplitude: Floats, alpha: float, phase: str = "wrapped"
) -> Floats:
    """Eq. 13 in complex numbers.  query: (F,), spectra and amplitude: (P, F) -> (P,)."""
    weight = np.minimum(alpha / amplitude.mean(axis=1), 1)
    turned = query.conj() * spectra
    wrapped = (np.angle(turned) ** 2).mean(axis=1)
    turn = wrapped if phase == "wrapped" else 2 * (np.abs(spectra) - turned.real).mean(axis=1)
    return np.asarray(
        weight * ((1 - amplitude) ** 2).mean(axis=1) + (1 - weight) * turn, np.float32
    )


@pytest.fixture
def places() -> tuple[Floats, NDArray[np.int64]]:
    """Five photos in three places, of two, one and two photos."""
    return unit(5, 4, seed=1), np.array([0, 2, 3, 5])


@pytest.mark.parametrize("mode", spectrum.FREQUENCIES)
def test_spectra_equal_the_loops_of_eq_8(
    mode: str, places: tuple[Floats, NDArray[np.int64]]
) -> None:
    descriptors, starts = places
    points = spectrum.draw_frequencies(mode, 4, count=8, seed=0, spread=0.5)
    spectra = spectrum.place_spectra(descriptors, starts, points)
    for place in range(3):
        rows = descriptors[starts[place] : starts[place + 1]].tolist()
        for k, t in enumerate(points.tolist()):
            assert spectra[place, k] == pytest.approx(
                oracle.characteristic_function(t, rows), abs=1e-5
            )


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("mode", ["paper", "multiscale"])
def test_cfd_equals_the_loops_of_eq_13(
    mode: str, alpha: float, places: tuple[Floats, NDArray[np.int64]]
) -> None:
    descriptors, starts = places
    points = spectrum.draw_frequencies(mode, 4, count=8, seed=0)
    spectra = spectrum.place_spectra(descriptors, starts, points)
    amplitude = np.abs(spectra)
    query = unit(1, 4, seed=9)[0]
    found = cfd(characteristic(query[None], points)[0], spectra, amplitude, alpha)
    for place in range(3):
        rows = descriptors[starts[place] : starts[place + 1]].tolist()
        expected = oracle.cfd(query.tolist(), rows, points.tolist(), alpha)
        assert found[place] == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_mean_amplitude_equals_the_loops_of_eq_10(
    places: tuple[Floats, NDArray[np.int64]],
) -> None:
    descriptors, starts = places
    points = spectrum.draw_frequencies("multiscale", 4, count=8, seed=0)
    spectra = spectrum.place_spectra(descriptors, starts, points)
    mean = PolarSpectra.measure(descriptors, starts, points).levels[:, 0, 0]
    np.testing.assert_allclose(np.abs(spectra).mean(axis=1), mean, rtol=1e-4)
    for place in range(3):
        rows = descriptors[starts[place] : starts[place + 1]].tolist()
        assert mean[place] == pytest.approx(oracle.mean_amplitude(points.tolist(), rows), rel=1e-4)


@given(st.floats(-50, 50), st.floats(-50, 50))
def test_the_phase_distance_is_symmetric_and_wraps(a: float, b: float) -> None:
    there, back = (float(spectrum.wrapped(np.array([x], np.float32))[0]) for x in (a - b, b - a))
    once_round = float(spectrum.wrapped(np.array([a - b + 2 * np.pi], np.float32))[0])
    assert there == pytest.approx(back, abs=1e-4)
    assert there == pytest.approx(once_round, abs=1e-3)
    assert 0 <= there <= np.pi + 1e-5


@given(st.integers(0, 10_000))
def test_a_tighter_place_has_the_higher_amplitude(seed: int) -> None:
    centre, noise = unit(1, 8, seed), np.random.default_rng(seed).normal(size=(6, 8))
    points = spectrum.draw_frequencies("matched", 8, count=64, seed=seed, spread=1.0)
    means = []
    for width in (0.02, 0.5):
        rows = (centre + width * noise).astype(np.float32)
        spectra = spectrum.place_spectra(rows, np.array([0, 6]), points)
        means.append(float(np.abs(spectra).mean()))
    assert means[0] > means[1]


def test_the_paper_s_frequencies_all_have_length_one() -> None:
    points = spectrum.draw_frequencies("paper", 16, count=64, seed=0)
    assert points.shape == (64, 16)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, rtol=1e-5)


def test_the_paper_never_uses_its_four_scales() -> None:
    """The first K of the pool are the base samples: scaling the rest changes nothing."""
    rng = np.random.default_rng(3)
    base = [rng.normal(0, s * np.pi / 4, (4, 16)) for s in (0.01, 0.1, 1.0, 10.0)]
    assert len(base) == 4
    kept = rng.normal(0, np.pi / 4, (16, 16))
    kept /= np.linalg.norm(kept, axis=1, keepdims=True)
    points = spectrum.draw_frequencies("paper", 16, count=16, seed=3)
    np.testing.assert_allclose(points, kept, rtol=1e-5)


def test_multiscale_frequencies_keep_the_four_lengths() -> None:
    points = spectrum.draw_frequencies("multiscale", 64, count=400, seed=0)
    lengths = np.linalg.norm(points, axis=1).reshape(4, 100).mean(axis=1)
    np.testing.assert_allclose(lengths[1:] / lengths[:-1], 10, rtol=0.05)


def test_one_query_has_modulus_one_so_the_amplitude_term_ignores_it() -> None:
    points = spectrum.draw_frequencies("multiscale", 8, count=32, seed=0)
    spectra = spectrum.place_spectra(unit(6, 8, 0), np.array([0, 3, 6]), points)
    amplitude = np.abs(spectra)
    queries = characteristic(unit(2, 8, 5), points)
    np.testing.assert_allclose(np.abs(queries), 1, rtol=1e-5)
    blind = [cfd(query, spectra, amplitude, 1.0) for query in queries]
    np.testing.assert_array_equal(blind[0], blind[1])


def test_literal_cfd_ranks_places_like_l2_to_their_means() -> None:
    """Phases of unit frequencies are small, so the phase term is a sketch of squared distance."""
    rng = np.random.default_rng(0)
    means = unit(40, 256, 1)
    rows = (np.repeat(means, 5, axis=0) + 0.02 * rng.normal(size=(200, 256))).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    starts = np.arange(0, 201, 5)
    points = spectrum.draw_frequencies("paper", 256, count=2048, seed=7)
    spectra = spectrum.place_spectra(rows, starts, points)
    amplitude = np.abs(spectra)
    centres = rows.reshape(40, 5, 256).mean(axis=1)
    agree = 0
    for query in unit(30, 256, 2):
        distance = cfd(characteristic(query[None], points)[0], spectra, amplitude, 0.7)
        nearest = np.argsort(((centres - query) ** 2).sum(axis=1))[:5]
        agree += int(distance.argmin() in nearest)
    assert agree >= 25


def test_the_amplitude_of_one_photo_is_one_whatever_it_shows() -> None:
    points = spectrum.draw_frequencies("multiscale", 8, count=32, seed=0)
    spectra = spectrum.place_spectra(unit(1, 8, 0), np.array([0, 1]), points)
    np.testing.assert_allclose(np.abs(spectra), 1, rtol=1e-5)


def test_unbiased_amplitudes_do_not_grow_as_places_shrink() -> None:
    """The same spread seen through 3 or 60 photos: only the biased amplitude tells them apart."""
    rng = np.random.default_rng(0)
    points = spectrum.draw_frequencies("matched", 16, count=512, seed=7, spread=1.0)
    sizes = np.array([3] * 150 + [60] * 50)
    rows = rng.normal(0, 0.25, (sizes.sum(), 16)).astype(np.float32)
    spectra = spectrum.place_spectra(rows, np.concatenate([[0], sizes.cumsum()]), points)
    small, large = slice(0, 150), slice(150, 200)
    plain = np.abs(spectra) ** 2
    fair = spectrum.fair_amplitudes(np.abs(spectra), sizes) ** 2
    assert plain[small].mean() - plain[large].mean() > 0.1
    assert abs(fair[small].mean() - fair[large].mean()) < 0.05


def test_weighted_phase_and_amplitude_add_up_to_the_squared_difference() -> None:
    points = spectrum.draw_frequencies("multiscale", 8, count=16, seed=0)
    spectra = spectrum.place_spectra(unit(6, 8, 0), np.array([0, 3, 6]), points)
    query = characteristic(unit(1, 8, 4), points)[0]
    amplitude = np.abs(spectra)
    # alpha r = 1/2 for both terms: half the squared difference
    halves = [
        cfd(query, spectra[j : j + 1], amplitude[j : j + 1],
                     float(0.5 * amplitude[j].mean()), phase="weighted")[0]
        for j in range(2)
    ]  # fmt: skip
    expected = 0.5 * (np.abs(query - spectra) ** 2).mean(axis=1)
    np.testing.assert_allclose(halves, expected, rtol=1e-4)


def test_an_empty_place_has_no_spectrum() -> None:
    points = spectrum.draw_frequencies("paper", 8, count=4, seed=0)
    spectra = spectrum.place_spectra(unit(2, 8, 0), np.array([0, 0, 2]), points)
    assert not spectra[0].any()


def test_unknown_modes_name_the_known_ones() -> None:
    with pytest.raises(SettingError, match=r"did you mean 'multiscale'.*known: matched"):
        spectrum.draw_frequencies("multi-scale", 8, count=4, seed=0)


@pytest.mark.parametrize("phase", ["wrapped", "weighted"])
@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("mode", ["paper", "multiscale", "matched"])
def test_distances_from_disk_equal_the_formula(
    mode: str, unbiased: bool, phase: str, tmp_path: Path
) -> None:
    rows = unit(12, 8, 0)
    points = draw_frequencies(mode, 8, count=64, seed=0, spread=0.5)
    write_spectra(tmp_path, mode, rows.astype(np.float16), STARTS, points)
    kept = PolarSpectra.open(tmp_path, mode)
    phi = spectrum.place_spectra(rows.astype(np.float16), STARTS, points)
    amplitude = np.abs(phi)
    if unbiased:
        amplitude = spectrum.fair_amplitudes(amplitude, SIZES)
    query = unit(1, 8, 3)
    places = np.array([3, 0, 1])
    expected = cfd(
        characteristic(query, points)[0], phi[places], amplitude[places], 0.6, phase=phase
    )
    asked = as_turns(np.repeat(query @ points.T, 3, axis=0))
    found = kept.distances(asked, places, 0.6, phase=phase, unbiased=unbiased)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-4)
    assert np.isfinite(kept.levels).all()


def test_measuring_in_memory_equals_writing(tmp_path: Path) -> None:
    rows = unit(12, 8, 0).astype(np.float16)
    points = draw_frequencies("paper", 8, count=32, seed=0, spread=1.0)
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
    points = draw_frequencies("paper", 8, count=16, seed=0, spread=1.0)
    spectra = PolarSpectra.measure(unit(12, 8, 0), STARTS, points)
    found = spectra.distances(
        np.zeros((2, 16), np.int16), np.array([-1, 0]), 0.0, phase="wrapped", unbiased=False
    )
    assert found[0] > found[1]
