"""Ranked hits → numbers a query: the rank of the first right one, average precision.

Q queries · k hits
"""

import numpy as np
from numpy.typing import NDArray

RANKS = (1, 5, 10, 20)


def first_right(right: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Rank of the first right hit, -1 where none is.  right: (Q, k) -> (Q,)."""
    if not right.shape[1]:
        return np.full(len(right), -1, dtype=np.int64)
    return np.where(right.any(axis=1), right.argmax(axis=1), -1)


def average_precisions(
    right: NDArray[np.bool_], positives: NDArray[np.int64], k: int
) -> NDArray[np.float64]:
    """Average precision of each query's first k hits; their mean is mAP@k.

        AP@k = sum_{i <= k} right_i (share right among the first i) / min(k, positives)

    as Mapillary's challenge has it.  A query without positives gets 0: leave it out or count it,
    as the protocol says.  right: (Q, k'), positives: (Q,) database photos that count -> (Q,).
    """
    right = right[:, :k]
    if not right.shape[1]:
        return np.zeros(len(right))
    share = np.cumsum(right, axis=1) / np.arange(1, right.shape[1] + 1)
    found: NDArray[np.float64] = (share * right).sum(axis=1)
    return found / np.maximum(np.minimum(positives, k), 1)
