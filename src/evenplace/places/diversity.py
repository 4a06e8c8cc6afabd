"""How alike the photos of one place look to a model: the green band of the paper's Figure 1.

# N photos · D descriptor · C places · P photos in one place
"""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import PhotoError
from evenplace.places.table import Places

Floats = NDArray[np.float64]
MOST = 64  # photos of a place that are compared; the 2,016 pairs fix the mean to a percent


@dataclass(frozen=True)
class Diversity:
    """Mean and standard deviation of the cosines of a place's pairs; NaN below two photos."""

    mean: Floats  # (C,)
    spread: Floats  # (C,)


def measure_diversity(descriptors: Any, places: Places) -> Diversity:
    """Compare the photos of each place with each other: (N, D) -> (C,) mean and spread.

    A place with more than 64 photos is judged by 64 of them, evenly spaced.
    """
    if descriptors.ndim != 2 or len(descriptors) != len(places.labels):
        raise PhotoError(
            f"the descriptors have shape {descriptors.shape} and there are {len(places.labels)} "
            "photos; give one row a photo, in the order of the photos"
        )
    rows, starts = places.members()
    mean = np.full(len(places), np.nan)
    spread = np.full(len(places), np.nan)
    for place, (first, last) in enumerate(itertools.pairwise(starts)):
        if last - first < 2:
            continue
        mine = rows[first:last]
        if len(mine) > MOST:
            mine = mine[np.linspace(0, len(mine) - 1, MOST).astype(np.int64)]
        z = np.asarray(descriptors[mine], np.float64)  # (P, D)
        z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
        cosines = (z @ z.T)[np.triu_indices(len(z), 1)]  # (P (P - 1) / 2,)
        mean[place], spread[place] = cosines.mean(), cosines.std()
    return Diversity(mean, spread)


def read_descriptors(path: str | Path) -> NDArray[np.floating]:
    """Open anyone's descriptors (.npy, a row a photo) without loading them into memory."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as cause:
        raise PhotoError(f"{path} is no .npy array of numbers ({cause}); check the file") from cause
    return np.asarray(array) if array.dtype.kind != "f" else array
