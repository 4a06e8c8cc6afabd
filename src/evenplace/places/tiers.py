"""Head, middle and tail: the places ranked by how often they were photographed, and how unevenly.

# C places · Q queries
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

TIERS = ("head", "middle", "tail")
SHARE = 0.3  # of the places that are the head, and that are the tail


def tiers(counts: ArrayLike) -> NDArray[np.int8]:
    """Put each place in the head (0), the middle (1) or the tail (2) by its count.

    The head is the floor(0.3 C) most photographed places, the tail the floor(0.3 C) least, the
    middle the rest.  Places of equal count keep their order (by id, as `Places` are sorted), so
    the split is the same whatever the order of the photos.  counts: (C,) -> (C,).
    """
    values = np.asarray(counts)
    many = int(SHARE * len(values) + 1e-9)
    order = np.argsort(-values.astype(np.int64), kind="stable")
    ranked = np.full(len(values), 1, np.int8)
    ranked[order[:many]] = 0
    ranked[order[len(values) - many :]] = 2
    return ranked


def query_tiers(counts_of_queries: ArrayLike) -> NDArray[np.int8]:
    """Split queries, rather than places, 30/40/30 by the count of the place each one shows.

    This is what the paper's MSLS and Pitts30k tables fit: their tail is floor(0.3 Q) queries.
    Queries in no place count 0 and fall in the tail.  counts_of_queries: (Q,) -> (Q,).
    """
    return tiers(counts_of_queries)


def imbalance_ratio(counts: ArrayLike) -> float:
    """The most photographed place's count over the least one's; 1 is even, nan without photos."""
    values = np.asarray(counts)
    return float(values.max() / values.min()) if values.size and values.min() else float("nan")


def share_with_half(counts: ArrayLike) -> float:
    """The smallest share of the places that holds half of the photos."""
    ranked = np.sort(np.asarray(counts))[::-1]
    reach = np.searchsorted(np.cumsum(ranked), ranked.sum() / 2) + 1
    return float(reach / max(len(ranked), 1))


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
