"""Characteristic functions of places, and the distance the paper builds on them (Eq. 8-13).

A place is a set of descriptors; its characteristic function is their mean on the unit circle at
each of F frequencies.  Its modulus is high when the set is compact, its argument points where
the set lies.  `docs/method.md` says what follows from that, and what does not.

On disk phase and amplitude lie apart.  A query's phase is plain <t, q>, so with the places' phases
at hand a distance needs no trigonometry; phases as 16-bit turns wrap round by themselves when
subtracted.

    C places · D descriptor · F frequencies (the paper's K) · N photos · S pairs of query and place
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Floats, evenly
from evenplace.errors import unknown_name
from evenplace.retrieval.array_files import Rows, map_array, widened, write_array, write_blocks
from evenplace.retrieval.prototypes import photo_spread

FREQUENCIES = ("paper", "multiscale", "matched")
_BASE = math.pi / 4  # sigma_0
_SCALES = (0.01, 0.1, 1.0, 10.0)
_BLOCK = 4096  # photos at a time

HALF_TURN = 1 << 15
PHASES = ("wrapped", "weighted")
_NOWHERE = float(np.pi**2) + 1  # beyond every distance: photos in no place come last
_COLUMNS = 64
COUNT, SEED = 1024, 0  # the paper's K, and the draw that indexes keep

Spectrum = NDArray[np.complex64]


def draw_frequencies(
    mode: str, dim: int, *, count: int = COUNT, seed: int = SEED, spread: float = 1.0
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
    generator = np.random.default_rng(seed)
    if mode == "matched":
        return generator.normal(0, 1 / spread, (count, dim)).astype(np.float32)
    quarter = [generator.normal(0, s * _BASE, (max(1, count // 4), dim)) for s in _SCALES]
    if mode == "multiscale":
        return np.concatenate(quarter).astype(np.float32)
    pool = np.concatenate([generator.normal(0, _BASE, (count, dim)), *quarter])
    pool /= np.linalg.norm(pool, axis=1, keepdims=True)
    return pool[:count].astype(np.float32)


def place_spectra(descriptors: Any, starts: Rows, frequencies: Floats) -> Spectrum:
    """Phi_j of every place (Eq. 8): the mean over its photos, zero where it has none.

    descriptors: (N, D) with photos of place c in rows starts[c]:starts[c+1] -> (C, F).
    """
    spectra = np.zeros((len(starts) - 1, len(frequencies)), np.complex64)
    for places, part in spectra_in_blocks(descriptors, starts, frequencies):
        spectra[places] = part
    return spectra


def spectra_in_blocks(
    descriptors: Any, starts: Rows, frequencies: Floats
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


def fair_amplitudes(modulus: Floats, sizes: Rows, median: Floats | None = None) -> Floats:
    """|Phi_j| at each frequency (Eq. 9) without what is only sample size.  (C, F), (C,) -> (C, F).

    The mean of n points on a circle has E|Phi_n|^2 = |Phi|^2 + (1 - |Phi|^2)/n: a place of one
    photo has modulus 1 whatever it looks like, so small places seem compact.  This solves that for
    |Phi|; a single photo tells nothing of spread and gets the median of the others, or one given.
    """
    corrected = unbias(modulus, sizes)
    if median is None and (sizes > 1).any():
        median = np.median(corrected[sizes > 1], axis=0)
    if median is not None:
        corrected[sizes <= 1] = median
    return corrected


def unbias(modulus: Floats, sizes: Rows) -> Floats:
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


@dataclass(frozen=True)
class PolarSpectra:
    """Phi of every place, read at `points`.

    levels: mean amplitude and mean (1 - amplitude)^2 of each place, as counted [:, 0] and with
    what is only sample size removed [:, 1] (see `fair_amplitudes`).
    """

    points: Floats  # (F, D)
    phases: NDArray[np.int16]  # (C, F) in half turns of 2^15
    amplitudes: NDArray[np.float16]  # (C, F)
    levels: Floats  # (C, 2, 2)

    @classmethod
    def measure(
        cls, descriptors: Any, starts: Rows, points: Floats, median: Floats | None = None
    ) -> Self:
        """Of places in memory.  median: what single photos get, when not these places'."""
        phi = place_spectra(descriptors, starts, points)
        levels = np.stack(
            [_levels(np.abs(phi)), _levels(fair_amplitudes(np.abs(phi), np.diff(starts), median))],
            axis=1,
        )
        return cls(points, as_turns(np.angle(phi)), np.abs(phi).astype(np.float16), levels)

    @classmethod
    def draw(cls, name: str, descriptors: Any, starts: Rows, count: int, seed: int) -> Self:
        """Of places in memory, at frequencies drawn for them."""
        spread = photo_spread(descriptors, starts)
        dim = descriptors.shape[1]
        points = draw_frequencies(name, dim, count=count, seed=seed, spread=spread)
        return cls.measure(descriptors, starts, points)

    @classmethod
    def open(cls, folder: Path, name: str) -> Self:
        files = (folder / f"spectra-{name}-{part}.npy" for part in _PARTS)
        return cls(*(np.asarray(map_array(file)) for file in files))

    def write(self, folder: Path, name: str) -> None:
        """Write what `open` reads."""
        for part in _PARTS:
            write_array(folder / f"spectra-{name}-{part}.npy", np.asarray(getattr(self, part)))

    def distances(
        self, asked: NDArray[np.int16], places: Rows, alpha: float, *, phase: str, unbiased: bool
    ) -> Floats:
        """D_CFD (Eq. 13) of pairs.  asked: (S, F) <t, q> as turns, places: (S,) -> (S,).

            D = a mean_k (1 - |Phi_j|)^2 + (1 - a) mean_k phase_k,    a = min(alpha r_j, 1)

        r_j = 1 / mean |Phi_j| (Eq. 10), as one descriptor has modulus 1 everywhere.  phase
        "wrapped": the squared angle between q and j (Eq. 12); "weighted": 2|Phi_j|(1 - cos), which
        fades where Phi_j is small and its angle is noise.  Where alpha r_j >= 1 the phase has no
        weight and the distance does not see the query.
        """
        turn = self._turn(asked, places, phase)
        mean, spread = self.levels[places, int(unbiased)].T  # (S,), (S,)
        return blend(turn, mean, spread, places, alpha)

    def _turn(self, asked: NDArray[np.int16], places: Rows, phase: str) -> Floats:
        delta = (self.phases[places] - asked).astype(np.float32)  # (S, F) wraps round
        unit = np.float32(np.pi / HALF_TURN)
        if phase == "wrapped":
            squares = np.einsum("sf,sf->s", delta, delta)
            return np.asarray(squares * np.float32(unit**2 / delta.shape[1]), np.float32)
        delta *= unit
        faded = self.amplitudes[places].astype(np.float32) * (1 - np.cos(delta))
        return np.asarray(2 * faded.mean(axis=1), np.float32)

    def median(self, sizes: Rows) -> Floats | None:
        """What a single photo's amplitudes are taken for: the middle of others'.  (F,)."""
        several = np.flatnonzero(sizes > 1)
        if not len(several):
            return None
        chosen = several[evenly(len(several), 2000)]
        fair = unbias(self.amplitudes[chosen].astype(np.float32), sizes[chosen])
        middle: Floats = np.median(fair, axis=0).astype(np.float32)
        return middle

    def patched(
        self, numbers: Rows, places: Rows, other: "PolarSpectra", count: int
    ) -> "PolarSpectra":
        """A copy for `count` places: mine under new numbers, some replaced by others'."""
        parts = []
        for part in ("phases", "amplitudes", "levels"):
            mine = getattr(self, part)
            merged = np.zeros((count, *mine.shape[1:]), mine.dtype)
            merged[numbers] = mine
            merged[places] = getattr(other, part)
            parts.append(merged)
        return PolarSpectra(self.points, *parts)


_PARTS = ("points", "phases", "amplitudes", "levels")


def blend(turn: Floats, mean: Floats, spread: Floats, places: Rows, alpha: float) -> Floats:
    """a spread + (1 - a) turn with a = min(alpha / mean amplitude, 1); no place comes last."""
    weight = np.minimum(alpha / np.maximum(mean, 1e-6), 1)
    distance = weight * spread + (1 - weight) * turn
    return np.where(places < 0, _NOWHERE, distance).astype(np.float32)


def as_turns(angles: Floats) -> NDArray[np.int16]:
    """Angles of any size as wrapped 16-bit half turns; an error of 1e-4 rad at most."""
    turns = np.rint(angles * np.float32(HALF_TURN / np.pi))
    wrapped: NDArray[np.int16] = turns.astype(np.int32).astype(np.int16)
    return wrapped


def write_spectra(folder: Path, name: str, descriptors: Any, starts: Rows, points: Floats) -> None:
    """Measure all places block by block and write what `PolarSpectra.open` reads."""
    shape = (len(starts) - 1, len(points))
    plain = np.zeros((shape[0], 2), np.float32)
    write_array(folder / f"spectra-{name}-points.npy", points)
    header = {"descr": np.dtype(np.int16).str, "fortran_order": False, "shape": shape}
    with (folder / f"spectra-{name}-phases.npy").open("wb") as phases:
        np.lib.format.write_array_header_1_0(phases, header)

        def amplitudes() -> Iterable[NDArray[Any]]:
            for places, phi in spectra_in_blocks(descriptors, starts, points):
                phases.write(as_turns(np.angle(phi)).tobytes())
                plain[places] = _levels(np.abs(phi))
                yield np.abs(phi)

        write_blocks(folder / f"spectra-{name}-amplitudes.npy", amplitudes(), shape, np.float16)
    kept = map_array(folder / f"spectra-{name}-amplitudes.npy")
    fair = _fair_levels(kept, np.diff(starts))
    write_array(folder / f"spectra-{name}-levels.npy", np.stack([plain, fair], axis=1))


def _fair_levels(amplitudes: NDArray[np.float16], sizes: Rows) -> Floats:
    """Levels without sample size, a few frequencies at a time.  -> (C, 2)."""
    total = np.zeros((len(sizes), 2), np.float32)
    count = amplitudes.shape[1]
    for first in range(0, count, _COLUMNS):
        part = amplitudes[:, first : first + _COLUMNS].astype(np.float32)
        total += _levels(fair_amplitudes(part, sizes)) * np.float32(part.shape[1] / count)
    return total


def _levels(amplitude: Floats) -> Floats:
    """Mean amplitude and mean (1 - amplitude)^2 of each place.  (C, F) -> (C, 2)."""
    levels = [amplitude.mean(axis=1), ((1 - amplitude) ** 2).mean(axis=1)]
    return np.stack(levels, axis=1).astype(np.float32)
