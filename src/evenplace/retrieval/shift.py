"""Whether what is asked still looks like what was rehearsed, told by similarities alone.

A query of another season, camera or town resembles its answer less than rehearsed ones did.  One
photo tells little, and the calibration weighs its likeness already; a hundred tell surely.

    V rehearsed answers · W queries
"""

import numpy as np
from numpy.typing import ArrayLike

_LEAST = 20  # of them, before anything is said
_CHANCE = 0.001  # of saying so where nothing has shifted


def find_shift(asked: ArrayLike, rehearsed: ArrayLike) -> str:
    """Say that queries look less like their answers than rehearsed ones did; empty if not.

    A one-sided Kolmogorov-Smirnov test: the largest excess of the queries' share below any
    similarity is at most sqrt(-log(chance) / 2 · (1/W + 1/V)).
    """
    ours, theirs = (np.sort(np.asarray(part, np.float64)) for part in (asked, rehearsed))
    if len(ours) < _LEAST or not len(theirs):
        return ""
    below = [np.searchsorted(part, ours, side="right") / len(part) for part in (ours, theirs)]
    most = np.sqrt(-np.log(_CHANCE) / 2 * (1 / len(ours) + 1 / len(theirs)))
    if float(np.max(below[0] - below[1])) <= most:
        return ""
    return (
        f"these photos look less like the database than the rehearsed ones did (similarity "
        f"{np.median(ours):.2f} against {np.median(theirs):.2f}), so less may be right than is said"
    )
