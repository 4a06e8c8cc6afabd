"""Characteristic functions of places, and the distance the paper builds on them (Eq. 8-13).

A place is a set of descriptors; its characteristic function is their mean on the unit circle at
each of F frequencies.  Its modulus is high when the set is compact, its argument points where
the set lies.  `docs/method.md` says what follows from that, and what does not.

    C places · D descriptor · F frequencies (the paper's K) · N photos · P candidates
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import unknown_name
from evenplace.retrieval.row_products import widened

FREQUENCIES = ("paper", "multiscale", "matched")
_BASE = math.pi / 4  # sigma_0
_SCALES = (0.01, 0.1, 1.0, 10.0)
_BLOCK = 4096  # photos at a time

Floats = NDArray[np.float32]
Spectrum = NDArray[np.complex64]


def draw_frequencies(
    mode: str, count: int, dim: int, generator: np.random.Generator, *, spread: float = 1.0
) -> Floats:
    """Draw the frequencies t_k at which characteristic functions are read.

    paper: the supplement to the letter.  K base samples of N(0, (pi/4)^2), K/4 at each of four
        scales behind them, all brought to length 1, the first K kept: the base samples, so the
        scales are drawn and never used, and no length survives the normalisation.
    multiscale: K/4 samples at each scale, lengths kept: what the text around the formula wants.
    matched: N(0, 1/spread^2), so that phases turn by about one radian between photos that lie
        `spread` apart.
    -> (F, D).
    """
    if mode not in FREQUENCIES:
        raise unknown_name("frequency mode", mode, FREQUENCIES)
    if mode == "matched":
        return generator.normal(0, 1 / spread, (count, dim)).astype(np.float32)
    quarter = [generator.normal(0, s * _BASE, (max(1, count // 4), dim)) for s in _SCALES]
    if mode == "multiscale":
        return np.concatenate(quarter).astype(np.float32)
    pool = np.concatenate([generator.normal(0, _BASE, (count, dim)), *quarter])
    pool /= np.linalg.norm(pool, axis=1, keepdims=True)
    return pool[:count].astype(np.float32)


def characteristic(descriptors: Floats, frequencies: Floats) -> Spectrum:
    """exp(i <t_k, z>) of each descriptor: a point on the unit circle.  -> (N, F)."""
    angles = descriptors.astype(np.float32) @ frequencies.T  # (N, F)
    points: Spectrum = np.exp(1j * angles).astype(np.complex64)
    return points


def place_spectra(descriptors: Any, starts: NDArray[np.int64], frequencies: Floats) -> Spectrum:
    """Phi_j of every place (Eq. 8): the mean over its photos, zero where it has none.

    descriptors: (N, D) with photos of place c in rows starts[c]:starts[c+1] -> (C, F).
    """
    spectra = np.zeros((len(starts) - 1, len(frequencies)), np.complex64)
    for places, part in spectra_in_blocks(descriptors, starts, frequencies):
        spectra[places] = part
    return spectra


def spectra_in_blocks(
    descriptors: Any, starts: NDArray[np.int64], frequencies: Floats
) -> Iterator[tuple[slice, Spectrum]]:
    """`place_spectra` of a few places at a time, so that a city fits in memory."""
    first, count = 0, len(starts) - 1
    while first < count:
        last = int(np.searchsorted(starts, starts[first] + _BLOCK, "right")) - 1
        last = min(max(last, first + 1), count)
        rows = slice(int(starts[first]), int(starts[last]))
        angles = widened(np.asarray(descriptors[rows])) @ frequencies.T  # (rows, F)
        sizes = np.diff(starts[first : last + 1])
        spectra = np.zeros((last - first, len(frequencies)), np.complex64)
        if len(angles):
            held, cuts = sizes > 0, (starts[first:last] - starts[first])[sizes > 0]
            spectra.real[held] = np.add.reduceat(np.cos(angles), cuts)
            spectra.imag[held] = np.add.reduceat(np.sin(angles), cuts)
        spectra /= np.maximum(sizes, 1)[:, None].astype(np.float32)
        yield slice(first, last), spectra
        first = last


def amplitudes(spectra: Spectrum, sizes: NDArray[np.int64], *, unbiased: bool = False) -> Floats:
    """|Phi_j| at each frequency (Eq. 9), with or without the part that is only sample size.

    The mean of n points on a circle has E|Phi_n|^2 = |Phi|^2 + (1 - |Phi|^2)/n: a place of one
    photo has modulus 1 whatever it looks like, so small places seem compact.  `unbiased` solves
    that for |Phi|; a single photo tells nothing of spread and gets the median of the others.
    spectra: (C, F), sizes: (C,) photos -> (C, F).
    """
    modulus = np.abs(spectra)
    if not unbiased:
        return modulus
    several = sizes > 1
    corrected = unbias(modulus, sizes)
    if several.any():
        corrected[~several] = np.median(corrected[several], axis=0)
    return corrected


def unbias(modulus: Floats, sizes: NDArray[np.int64]) -> Floats:
    """Solve E|Phi_n|^2 = |Phi|^2 + (1 - |Phi|^2)/n for |Phi|; means nothing for n = 1."""
    count = sizes[:, None].astype(np.float32)
    corrected = (count * modulus.astype(np.float32) ** 2 - 1) / np.maximum(count - 1, 1)
    fair: Floats = np.sqrt(np.clip(corrected, 0, 1)).astype(np.float32)
    return fair


def wrapped(difference: Floats) -> Floats:
    """The shorter way round between two angles, in 0..pi (Eq. 12)."""
    delta = np.abs(difference) % (2 * np.pi)
    shorter: Floats = np.minimum(delta, 2 * np.pi - delta).astype(np.float32)
    return shorter


def reliability(amplitude: Floats) -> Floats:
    """r_j = A_q / A_j, with A_q = 1 because one descriptor has modulus 1 everywhere (Eq. 10)."""
    ratio: Floats = 1 / np.maximum(amplitude.mean(axis=-1), 1e-6)
    return ratio


def cfd(
    query: Spectrum, spectra: Spectrum, amplitude: Floats, alpha: float, *, phase: str = "wrapped"
) -> Floats:
    """D_CFD between one query and each candidate set (Eq. 13).

        D = a mean_k (1 - |Phi_j|)^2 + (1 - a) mean_k phase_k,    a = min(alpha r_j, 1)

    phase "wrapped": the squared angle between q and j (Eq. 12); "weighted": 2|Phi_j|(1 - cos),
    which fades where Phi_j is small and its angle is noise.  Where alpha/A_j >= 1 the phase has
    no weight and the distance does not see the query.
    query: (F,), spectra and amplitude: (P, F) -> (P,).
    """
    weight = np.minimum(alpha * reliability(amplitude), 1)  # (P,)
    spread = ((1 - amplitude) ** 2).mean(axis=1)
    turned = query.conj() * spectra  # (P, F) argument: angle between them
    if phase == "weighted":
        turn = 2 * (np.abs(spectra) - turned.real).mean(axis=1)
    elif phase == "wrapped":
        turn = (np.angle(turned) ** 2).mean(axis=1)
    else:
        raise unknown_name("phase", phase, ("wrapped", "weighted"))
    distance: Floats = (weight * spread + (1 - weight) * turn).astype(np.float32)
    return distance
