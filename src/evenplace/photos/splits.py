"""Photos parted by where they were taken, so that no position is on both sides.

N photos · S spots
"""

from collections.abc import Sequence

import numpy as np

from evenplace.arrays import Ints
from evenplace.errors import SettingError
from evenplace.photos.table import Photos


def split_by_position(photos: Photos, shares: Sequence[float], seed: int = 0) -> tuple[Photos, ...]:
    """Part photos so that those taken at one spot stay together.

    shares: how much of the spots each part gets; they are scaled to sum to 1, and the order of
    the parts is theirs.  Spots, not photos, are drawn: panorama crops and bursts share a spot,
    and a burst on both sides would be a test of memory.
    """
    if not len(shares) or min(shares) < 0 or not sum(shares) > 0:
        raise SettingError(f"shares={list(shares)} must be positive numbers, one for each part")
    spot = spots_of(photos)
    count = int(spot.max(initial=-1)) + 1
    ends = np.round(np.cumsum(shares) / sum(shares) * count).astype(np.int64)
    part_of_spot = np.empty(count, np.int64)
    shuffled = np.random.default_rng(seed).permutation(count)
    part_of_spot[shuffled] = np.searchsorted(ends, np.arange(count), side="right")
    part = part_of_spot[spot]  # (N,)
    return tuple(photos[np.flatnonzero(part == number)] for number in range(len(shares)))


def spots_of(photos: Photos) -> Ints:
    """Number the spots photos were taken at, to the centimetre.  (N,)."""
    keys = np.column_stack([photos.positions.round(2), photos.zone])
    _, spot = np.unique(keys, axis=0, return_inverse=True)
    return spot.ravel().astype(np.int64)
