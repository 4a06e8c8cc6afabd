"""Characteristic functions of all places as they lie on disk: phase and amplitude apart.

A query's phase is plain <t, q>, so with the places' phases at hand a distance needs no
trigonometry; phases as 16-bit turns wrap round by themselves when subtracted.

    C places · D descriptor · F frequencies · S pairs of a query and a place
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import unknown_name
from evenplace.retrieval import spectrum
from evenplace.retrieval.arrays import map_array, write_array, write_blocks

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
HALF_TURN = 1 << 15
PHASES = ("wrapped", "weighted")
_NOWHERE = float(np.pi**2) + 1  # beyond every distance: photos in no place come last
_COLUMNS = 64
COUNT, SEED = 1024, 0  # the paper's K, and the draw that indexes keep


@dataclass(frozen=True)
class PolarSpectra:
    """Phi of every place, read at `points`.

    levels: mean amplitude and mean (1 - amplitude)^2 of each place, as counted [:, 0] and with
    what is only sample size removed [:, 1] (see `spectrum.amplitudes`).
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
        phi = spectrum.place_spectra(descriptors, starts, points)
        levels = np.stack(
            [_levels(np.abs(phi)), _levels(fair_amplitudes(np.abs(phi), np.diff(starts), median))],
            axis=1,
        )
        return cls(points, as_turns(np.angle(phi)), np.abs(phi).astype(np.float16), levels)

    @classmethod
    def open(cls, folder: Path, name: str) -> Self:
        return cls(*(map_array(folder / f"spectra-{name}-{part}.npy") for part in _PARTS))

    def write(self, folder: Path, name: str) -> None:
        """Write what `open` reads."""
        for part in _PARTS:
            write_array(folder / f"spectra-{name}-{part}.npy", np.asarray(getattr(self, part)))

    def distances(
        self, asked: NDArray[np.int16], places: Rows, alpha: float, *, phase: str, unbiased: bool
    ) -> Floats:
        """D_CFD (Eq. 13) of pairs.  asked: (S, F) <t, q> as turns, places: (S,) -> (S,)."""
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
        chosen = several[np.linspace(0, len(several) - 1, min(len(several), 2000)).astype(int)]
        fair = spectrum.unbias(self.amplitudes[chosen].astype(np.float32), sizes[chosen])
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


def draw_points(name: str, dim: int, *, count: int, seed: int, spread: float) -> Floats:
    if name not in spectrum.FREQUENCIES:
        raise unknown_name("frequency mode", name, spectrum.FREQUENCIES)
    return spectrum.draw_frequencies(name, count, dim, np.random.default_rng(seed), spread=spread)


def write_spectra(folder: Path, name: str, descriptors: Any, starts: Rows, points: Floats) -> None:
    """Measure all places block by block and write what `PolarSpectra.open` reads."""
    shape = (len(starts) - 1, len(points))
    plain = np.zeros((shape[0], 2), np.float32)
    write_array(folder / f"spectra-{name}-points.npy", points)
    with (folder / f"spectra-{name}-phases.npy").open("wb") as phases:
        np.lib.format.write_array_header_1_0(phases, _header(shape, np.int16))

        def amplitudes() -> Iterable[NDArray[Any]]:
            for places, phi in spectrum.spectra_in_blocks(descriptors, starts, points):
                phases.write(as_turns(np.angle(phi)).tobytes())
                plain[places] = _levels(np.abs(phi))
                yield np.abs(phi)

        write_blocks(folder / f"spectra-{name}-amplitudes.npy", amplitudes(), shape, np.float16)
    kept = map_array(folder / f"spectra-{name}-amplitudes.npy")
    fair = _fair_levels(kept, np.diff(starts))
    write_array(folder / f"spectra-{name}-levels.npy", np.stack([plain, fair], axis=1))


def fair_amplitudes(modulus: Floats, sizes: Rows, median: Floats | None) -> Floats:
    """`spectrum.amplitudes(unbiased=True)`, with another median for single photos if given."""
    corrected = spectrum.unbias(modulus, sizes)
    if median is None and (sizes > 1).any():
        median = np.median(corrected[sizes > 1], axis=0)
    if median is not None:
        corrected[sizes <= 1] = median
    return corrected


def _fair_levels(amplitudes: NDArray[np.float16], sizes: Rows) -> Floats:
    """Levels without sample size, a few frequencies at a time.  -> (C, 2)."""
    total = np.zeros((len(sizes), 2), np.float32)
    count = amplitudes.shape[1]
    for first in range(0, count, _COLUMNS):
        part = amplitudes[:, first : first + _COLUMNS].astype(np.float32)
        total += _levels(fair_amplitudes(part, sizes, None)) * np.float32(part.shape[1] / count)
    return total


def _levels(amplitude: Floats) -> Floats:
    """Mean amplitude and mean (1 - amplitude)^2 of each place.  (C, F) -> (C, 2)."""
    levels = [amplitude.mean(axis=1), ((1 - amplitude) ** 2).mean(axis=1)]
    return np.stack(levels, axis=1).astype(np.float32)


def _header(shape: tuple[int, ...], dtype: Any) -> dict[str, Any]:
    return {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
