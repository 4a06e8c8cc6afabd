"""Characteristic functions, step by step, against loops; and what follows from the formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from evenplace.errors import SettingError
from evenplace.retrieval import spectrum
from tests import oracle_search as oracle
from tests.drawn import unit

Floats = NDArray[np.float32]


@pytest.fixture
def places() -> tuple[Floats, NDArray[np.int64]]:
    """Five photos in three places, of two, one and two photos."""
    return unit(5, 4, seed=1), np.array([0, 2, 3, 5])


@pytest.mark.parametrize("mode", spectrum.FREQUENCIES)
def test_spectra_equal_the_loops_of_eq_8(
    mode: str, places: tuple[Floats, NDArray[np.int64]]
) -> None:
    descriptors, starts = places
    points = spectrum.draw_frequencies(mode, 8, 4, np.random.default_rng(0), spread=0.5)
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
    points = spectrum.draw_frequencies(mode, 8, 4, np.random.default_rng(0))
    spectra = spectrum.place_spectra(descriptors, starts, points)
    amplitude = spectrum.amplitudes(spectra, np.diff(starts))
    query = unit(1, 4, seed=9)[0]
    found = spectrum.cfd(spectrum.characteristic(query[None], points)[0], spectra, amplitude, alpha)
    for place in range(3):
        rows = descriptors[starts[place] : starts[place + 1]].tolist()
        expected = oracle.cfd(query.tolist(), rows, points.tolist(), alpha)
        assert found[place] == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_mean_amplitude_equals_the_loops_of_eq_10(
    places: tuple[Floats, NDArray[np.int64]],
) -> None:
    descriptors, starts = places
    points = spectrum.draw_frequencies("multiscale", 8, 4, np.random.default_rng(0))
    spectra = spectrum.place_spectra(descriptors, starts, points)
    r = spectrum.reliability(spectrum.amplitudes(spectra, np.diff(starts)))
    for place in range(3):
        rows = descriptors[starts[place] : starts[place + 1]].tolist()
        assert 1 / r[place] == pytest.approx(oracle.mean_amplitude(points.tolist(), rows), rel=1e-4)


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
    points = spectrum.draw_frequencies("matched", 64, 8, np.random.default_rng(seed), spread=1.0)
    means = []
    for width in (0.02, 0.5):
        rows = (centre + width * noise).astype(np.float32)
        spectra = spectrum.place_spectra(rows, np.array([0, 6]), points)
        means.append(float(spectrum.amplitudes(spectra, np.array([6])).mean()))
    assert means[0] > means[1]


def test_the_paper_s_frequencies_all_have_length_one() -> None:
    points = spectrum.draw_frequencies("paper", 64, 16, np.random.default_rng(0))
    assert points.shape == (64, 16)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, rtol=1e-5)


def test_the_paper_never_uses_its_four_scales() -> None:
    """The first K of the pool are the base samples: scaling the rest changes nothing."""
    rng = np.random.default_rng(3)
    base = [rng.normal(0, s * np.pi / 4, (4, 16)) for s in (0.01, 0.1, 1.0, 10.0)]
    assert len(base) == 4
    kept = rng.normal(0, np.pi / 4, (16, 16))
    kept /= np.linalg.norm(kept, axis=1, keepdims=True)
    points = spectrum.draw_frequencies("paper", 16, 16, np.random.default_rng(3))
    np.testing.assert_allclose(points, kept, rtol=1e-5)


def test_multiscale_frequencies_keep_the_four_lengths() -> None:
    points = spectrum.draw_frequencies("multiscale", 400, 64, np.random.default_rng(0))
    lengths = np.linalg.norm(points, axis=1).reshape(4, 100).mean(axis=1)
    np.testing.assert_allclose(lengths[1:] / lengths[:-1], 10, rtol=0.05)


def test_one_query_has_modulus_one_so_the_amplitude_term_ignores_it() -> None:
    points = spectrum.draw_frequencies("multiscale", 32, 8, np.random.default_rng(0))
    spectra = spectrum.place_spectra(unit(6, 8, 0), np.array([0, 3, 6]), points)
    amplitude = spectrum.amplitudes(spectra, np.array([3, 3]))
    queries = spectrum.characteristic(unit(2, 8, 5), points)
    np.testing.assert_allclose(np.abs(queries), 1, rtol=1e-5)
    blind = [spectrum.cfd(query, spectra, amplitude, 1.0) for query in queries]
    np.testing.assert_array_equal(blind[0], blind[1])


def test_literal_cfd_ranks_places_like_l2_to_their_means() -> None:
    """Phases of unit frequencies are small, so the phase term is a sketch of squared distance."""
    rng = np.random.default_rng(0)
    means = unit(40, 256, 1)
    rows = (np.repeat(means, 5, axis=0) + 0.02 * rng.normal(size=(200, 256))).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    starts = np.arange(0, 201, 5)
    points = spectrum.draw_frequencies("paper", 2048, 256, rng)
    spectra = spectrum.place_spectra(rows, starts, points)
    amplitude = spectrum.amplitudes(spectra, np.diff(starts))
    centres = rows.reshape(40, 5, 256).mean(axis=1)
    agree = 0
    for query in unit(30, 256, 2):
        distance = spectrum.cfd(
            spectrum.characteristic(query[None], points)[0], spectra, amplitude, 0.7
        )
        nearest = np.argsort(((centres - query) ** 2).sum(axis=1))[:5]
        agree += int(distance.argmin() in nearest)
    assert agree >= 25


def test_the_amplitude_of_one_photo_is_one_whatever_it_shows() -> None:
    points = spectrum.draw_frequencies("multiscale", 32, 8, np.random.default_rng(0))
    spectra = spectrum.place_spectra(unit(1, 8, 0), np.array([0, 1]), points)
    np.testing.assert_allclose(spectrum.amplitudes(spectra, np.array([1])), 1, rtol=1e-5)


def test_unbiased_amplitudes_do_not_grow_as_places_shrink() -> None:
    """The same spread seen through 3 or 60 photos: only the biased amplitude tells them apart."""
    rng = np.random.default_rng(0)
    points = spectrum.draw_frequencies("matched", 512, 16, rng, spread=1.0)
    sizes = np.array([3] * 150 + [60] * 50)
    rows = rng.normal(0, 0.25, (sizes.sum(), 16)).astype(np.float32)
    spectra = spectrum.place_spectra(rows, np.concatenate([[0], sizes.cumsum()]), points)
    small, large = slice(0, 150), slice(150, 200)
    plain = spectrum.amplitudes(spectra, sizes) ** 2
    fair = spectrum.amplitudes(spectra, sizes, unbiased=True) ** 2
    assert plain[small].mean() - plain[large].mean() > 0.1
    assert abs(fair[small].mean() - fair[large].mean()) < 0.05


def test_weighted_phase_and_amplitude_add_up_to_the_squared_difference() -> None:
    points = spectrum.draw_frequencies("multiscale", 16, 8, np.random.default_rng(0))
    spectra = spectrum.place_spectra(unit(6, 8, 0), np.array([0, 3, 6]), points)
    query = spectrum.characteristic(unit(1, 8, 4), points)[0]
    amplitude = np.abs(spectra)
    # alpha r = 1/2 for both terms: half the squared difference
    halves = [
        spectrum.cfd(query, spectra[j : j + 1], amplitude[j : j + 1],
                     float(0.5 * amplitude[j].mean()), phase="weighted")[0]
        for j in range(2)
    ]  # fmt: skip
    expected = 0.5 * (np.abs(query - spectra) ** 2).mean(axis=1)
    np.testing.assert_allclose(halves, expected, rtol=1e-4)


def test_an_empty_place_has_no_spectrum() -> None:
    points = spectrum.draw_frequencies("paper", 4, 8, np.random.default_rng(0))
    spectra = spectrum.place_spectra(unit(2, 8, 0), np.array([0, 0, 2]), points)
    assert not spectra[0].any()


def test_unknown_modes_name_the_known_ones() -> None:
    with pytest.raises(SettingError, match=r"did you mean 'multiscale'.*known: matched"):
        spectrum.draw_frequencies("multi-scale", 4, 8, np.random.default_rng(0))
