"""Orders within groups, and the largest of many while they come.

N values · Q queries
"""

import numpy as np

from evenplace.arrays import Floats
from evenplace.retrieval.array_files import Rows

_BITS = 63  # of an integer, without its sign


def sorted_within(group: Rows, values: Floats) -> Rows:
    """Positions by group and then by value; equal ones stay in the order they have.  (N,).

    Group, value and position are packed into one integer, which sorts ten times as fast as three
    arrays.  A float's bits sort as the float does once those of negative ones are turned.
    """
    width, groups = len(values).bit_length(), int(group.max(initial=0)) + 1
    if width + groups.bit_length() + 32 > _BITS:
        return np.lexsort((values, group))
    bits = (values + np.float32(0)).view(np.int32)  # + 0: minus zero is zero
    keys = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(np.int64) + (group << 32)
    keys = (keys << width) | np.arange(len(values))
    keys.sort()
    order: Rows = keys & ((1 << width) - 1)
    return order


class TopK:
    """The k largest of each query, kept while cosines come in blocks.

    What does not beat the k-th of a query so far is passed over by one comparison; the few that
    do are put aside, and sorted in when there are many.
    """

    def __init__(self, queries: int, k: int) -> None:
        self._k = k
        self._least = np.full((queries, 1), -np.inf, np.float32)
        self._found: list[tuple[Rows, Rows, Floats]] = []  # query, row, cosine
        self._waiting = 0

    def add(self, first: int, cosines: Floats) -> None:
        """cosines: (Q, block) of the rows from `first` on."""
        if not self._found and cosines.shape[1] > self._k:  # not all of the first block
            self._least = np.partition(cosines, -self._k, axis=1)[:, [-self._k]]
            better = (cosines >= self._least) & (cosines > -np.inf)
        else:
            better = cosines > self._least
        query, column = np.divmod(np.flatnonzero(better), cosines.shape[1])
        self._found.append((query, first + column, cosines[query, column]))
        self._waiting += len(query)
        if self._waiting > 4 * self._k * len(self._least):
            self._keep()

    def _keep(self) -> None:
        query, row, cosine = (np.concatenate(part) for part in zip(*self._found, strict=True))
        order = sorted_within(query, -cosine)  # rows come in ascending order
        query, row, cosine = query[order], row[order], cosine[order]
        begins = np.searchsorted(query, np.arange(len(self._least)))
        rank = np.arange(len(query)) - begins[query]
        last = np.flatnonzero(rank == self._k - 1)
        self._least[query[last], 0] = cosine[last]
        kept = rank < self._k
        self._found, self._waiting = [(query[kept], row[kept], cosine[kept])], 0

    def sorted(self) -> tuple[Rows, Floats]:
        """Rows and cosines, best first, the lower row of equal ones; -1 and -inf where none is."""
        rows = np.full((len(self._least), self._k), -1)
        cosines = np.full(rows.shape, -np.inf, np.float32)
        if self._found:
            self._keep()
            query, row, cosine = self._found[0]
            rank = np.arange(len(query)) - np.searchsorted(query, np.arange(len(rows)))[query]
            rows[query, rank], cosines[query, rank] = row, cosine
        return rows, cosines
