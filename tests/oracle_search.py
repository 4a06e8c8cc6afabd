"""Equations 8-13 as plain loops over Python numbers, small enough to check by hand."""

import cmath
import math
from collections.abc import Sequence

Vector = Sequence[float]


def characteristic_function(frequency: Vector, descriptors: Sequence[Vector]) -> complex:
    """Eq. 8: the mean of exp(i <t, z>) over a set."""
    total = 0j
    for z in descriptors:
        angle = sum(t * x for t, x in zip(frequency, z, strict=True))
        total += cmath.exp(1j * angle)
    return total / len(descriptors)


def mean_amplitude(frequencies: Sequence[Vector], descriptors: Sequence[Vector]) -> float:
    """Eq. 10: the mean modulus over the frequencies."""
    total = 0.0
    for t in frequencies:
        total += abs(characteristic_function(t, descriptors))
    return total / len(frequencies)


def phase_difference(a: float, b: float) -> float:
    """Eq. 12: min(d^2, (2 pi - d)^2) of two angles in (-pi, pi]."""
    delta = abs(a - b)
    return min(delta**2, (2 * math.pi - delta) ** 2)


def cfd(
    query: Vector, place: Sequence[Vector], frequencies: Sequence[Vector], alpha: float
) -> float:
    """Eq. 9-13 for one query and one place."""
    reliability = mean_amplitude(frequencies, [query]) / mean_amplitude(frequencies, place)
    weight = min(alpha * reliability, 1.0)
    amplitude = phase = 0.0
    for t in frequencies:
        phi_q = characteristic_function(t, [query])
        phi_j = characteristic_function(t, place)
        amplitude += (abs(phi_q) - abs(phi_j)) ** 2
        phase += phase_difference(cmath.phase(phi_q), cmath.phase(phi_j))
    return (weight * amplitude + (1 - weight) * phase) / len(frequencies)


def kernel_density(query: Vector, place: Sequence[Vector], scale: float) -> float:
    """log mean_i exp(s <q, z_i>)."""
    total = 0.0
    for z in place:
        total += math.exp(scale * sum(a * b for a, b in zip(query, z, strict=True)))
    return math.log(total / len(place))


def impostor(
    index: int,
    descriptors: Sequence[Vector],
    positions: Sequence[Vector],
    neighbours: int,
    apart: float,
) -> float:
    """Mean of the largest cosines to photos more than `apart` metres away."""
    found = []
    for j, z in enumerate(descriptors):
        gap = math.dist(positions[index], positions[j])
        if gap > apart:
            found.append(sum(a * b for a, b in zip(descriptors[index], z, strict=True)))
    best = sorted(found, reverse=True)[:neighbours]
    return sum(best) / len(best) if best else 0.0
