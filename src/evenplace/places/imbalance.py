"""How uneven counts are, in one number.

# C places
"""

import numpy as np
from numpy.typing import ArrayLike


def imbalance_ratio(counts: ArrayLike) -> float:
    """The most photographed place's count over the least one's; 1 is even, nan without places."""
    values = np.asarray(counts)
    return float(values.max() / values.min()) if values.size else float("nan")


def gini(counts: ArrayLike) -> float:
    """How unequal the counts are: 0 when all are the same, towards 1 when one place has all.

    G = sum_i (2 i - C - 1) n_i / (C sum_i n_i),    n_1 <= … <= n_C
    """
    values = np.sort(np.asarray(counts, np.float64))
    if not values.sum():
        return 0.0
    C = len(values)
    rank = np.arange(1, C + 1)
    return float(np.sum((2 * rank - C - 1) * values) / (C * values.sum()))
