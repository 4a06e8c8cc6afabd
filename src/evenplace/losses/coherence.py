"""How alike the photos of one place look, as weights: imbalance in features, not in counts.

The paper's outlook: a place may be hard because its photos disagree, however many there are.
Both measures leave a photo's agreement with itself out, so a place of two photos and one of two
hundred are judged alike; with it, small places look compact (by 1/n) for no other reason.
"""

# P photos · D descriptor · C places · F frequencies · Φ characteristic function

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from evenplace.errors import SettingError, unknown_name

from .prior import require_nonnegative

Measure = Literal["similarity", "amplitude"]

LEAST_COHERENCE = 0.05  # photos of a place may disagree entirely; no weight passes 20^strength
ROWS = 16_384  # photos at a time: (ROWS, F) is what the amplitudes hold in memory


def coherence_weights(
    descriptors: Tensor,
    labels: Tensor,
    places: int | None = None,
    *,
    strength: float = 1.0,
    measure: Measure = "similarity",
    frequencies: Tensor | None = None,
) -> Tensor:
    """Weigh each place by how much its photos disagree.

        w_c ~ max(a_c, 0.05)^-strength,    averaging to 1

    a_c is the coherence of `place_coherence`.  strength = 0 weighs all alike.  Use them alone,
    ``loss.update_weights(w)``, or with the counts, ``loss.update_weights(w * loss.weights)``,
    once an epoch.  descriptors: (P, D), labels: (P,), negative ones are left out -> (C,).
    """
    require_nonnegative("strength", strength)
    found = place_coherence(
        descriptors, labels, places, measure=measure, frequencies=frequencies
    ).clamp(min=LEAST_COHERENCE)
    weights = found**-strength
    return weights / weights.mean()


def place_coherence(
    descriptors: Tensor,
    labels: Tensor,
    places: int | None = None,
    *,
    measure: Measure = "similarity",
    frequencies: Tensor | None = None,
) -> Tensor:
    """Measure how alike the photos of each place are: 1 when all are the same, (C,).

        similarity:  mean of cos(z_i, z_k) over pairs i != k of the place
        amplitude:   sqrt of mean_t |Phi_c(t)|^2 over pairs i != k,
                     |Phi|^2 -> (n |Phi|^2 - 1) / (n - 1)

    `frequencies` (F, D) are for the amplitude, see `draw_frequencies`.  A place with fewer than
    two photos shows no disagreement; it gets the mean of the others (1 if there are none).
    """
    kept = labels >= 0
    z, y = F.normalize(descriptors.detach()[kept].float(), dim=1), labels[kept]
    size = places if places is not None else int(y.max()) + 1 if len(y) else 0
    if not size or (len(y) and int(y.max()) >= size):
        raise SettingError(
            f"labels reach {int(y.max()) if len(y) else 'nothing'} for {places} places; "
            "pass places= above every label"
        )
    n = torch.bincount(y, minlength=size).to(z.dtype)  # (C,)
    if measure == "similarity":
        found = _similarity(z, y, n)
    elif measure == "amplitude":
        if frequencies is None:
            raise SettingError(
                "amplitude needs frequencies; pass draw_frequencies(F, D, generator)"
            )
        found = _amplitude(z, y, n, frequencies.to(z))
    else:
        raise unknown_name("measure of coherence", measure, ("similarity", "amplitude"))
    judged = n >= 2
    rest = found[judged].mean() if bool(judged.any()) else found.new_ones(())
    return found.where(judged, rest)


def draw_frequencies(
    count: int, dimension: int, generator: torch.Generator, bandwidth: float = 1.0
) -> Tensor:
    """Draw t ~ N(0, bandwidth^2 I), (F, D).

    The expected |Phi|^2 over pairs is then exp(-bandwidth^2 d^2 / 2): with bandwidth 1 it falls
    from 1 to e^-1 as two unit descriptors go from equal to at right angles.
    """
    return bandwidth * torch.randn(count, dimension, generator=generator)


def _similarity(z: Tensor, y: Tensor, n: Tensor) -> Tensor:
    total = z.new_zeros(len(n), z.shape[1]).index_add(0, y, z)  # (C, D)
    return (total.square().sum(dim=1) - n) / (n * (n - 1)).clamp(min=1)


def _amplitude(z: Tensor, y: Tensor, n: Tensor, frequencies: Tensor) -> Tensor:
    real = z.new_zeros(len(n), len(frequencies))  # (C, F) sums over a place's photos
    imaginary = torch.zeros_like(real)
    for first in range(0, len(z), ROWS):
        rows = slice(first, first + ROWS)
        angles = z[rows] @ frequencies.T  # (rows, F)
        real.index_add_(0, y[rows], angles.cos())
        imaginary.index_add_(0, y[rows], angles.sin())
    power = (real.square() + imaginary.square()).mean(dim=1)  # n^2 |Phi|^2
    return ((power - n) / (n * (n - 1)).clamp(min=1)).clamp(min=0).sqrt()
