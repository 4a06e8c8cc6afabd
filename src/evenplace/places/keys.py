"""Rows of small integers as single numbers, so that millions are counted without a Python loop.

# N photos · C places · k columns of an id
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from evenplace.arrays import Bools, Ints, blocks
from evenplace.errors import PlaceError

DENSE = 1 << 26  # most entries of a table to count in: 512 MB


@dataclass(frozen=True)
class Span:
    """The box that holds every id; ids map to one number in mixed radix, in the order of ids."""

    low: tuple[int, ...]
    size: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.total >= 1 << 62:
            raise PlaceError(
                f"the photos span {' × '.join(map(str, self.size))} cells, more than can be "
                "numbered; look for wrong coordinates or take a larger cell"
            )

    @classmethod
    def between(cls, low: Iterable[int], high: Iterable[int]) -> "Span":
        """The span from the lowest to the highest id, both within it."""
        first = tuple(int(one) for one in low)
        return cls(first, tuple(int(h) - lo + 1 for lo, h in zip(first, high, strict=True)))

    @property
    def total(self) -> int:
        """How many ids there are room for; as a key, it stands for nowhere."""
        return math.prod(self.size)

    def pack(self, columns: Iterable[Ints]) -> Ints:
        """Ids to keys, `total` where an id lies outside: k columns of (N,) -> (N,)."""
        key: Ints | int = 0
        outside: Bools | bool = False
        for column, low, size in zip(columns, self.low, self.size, strict=True):
            at = column - low
            outside = outside | (at.view(np.uint64) >= size)  # negative numbers are huge ones
            key = key * size + at
        return np.where(outside, self.total, key)

    def unpack(self, keys: Ints) -> Ints:
        """Keys back to ids: (C,) -> (C, k)."""
        ids: Ints = np.stack(np.unravel_index(keys, self.size), axis=1) + np.array(self.low)
        return ids


@dataclass(frozen=True)
class Tally:
    """The distinct keys in ascending order, how often each occurs, and each row's number."""

    keys: Ints
    counts: Ints
    labels: Ints


def tally(keys: Ints, total: int, least: int = 1) -> Tally:
    """Number the distinct keys below `total` that occur at least `least` times; others are -1.

    `keys` is overwritten with the labels, so that 41 million photos take little memory.
    """
    if _dense(total, len(keys)):
        counted = np.bincount(keys, minlength=total + 1)
        found = np.flatnonzero(counted[:total] >= max(least, 1))
        counts = counted[found]
    else:
        found, counts = np.unique(keys, return_counts=True)
        keep = (counts >= least) & (found < total)
        found, counts = found[keep], counts[keep]
    return Tally(found, counts, look_up(found, keys, total, out=keys))


def look_up(known: Ints, keys: Ints, total: int, out: Ints | None = None) -> Ints:
    """Where each key stands among the `known` ones (ascending), -1 where it does not: (N,)."""
    labels = np.empty(len(keys), np.int64) if out is None else out
    table = None
    if _dense(total, len(keys)):
        table = np.full(total + 1, -1, np.int32)  # half the memory to jump about in
        table[known] = np.arange(len(known), dtype=np.int32)
    for rows in blocks(len(keys)):
        labels[rows] = _search(known, keys[rows]) if table is None else table[keys[rows]]
    return labels


def _dense(total: int, rows: int) -> bool:
    """Whether a table with an entry for every key is cheaper than sorting the rows."""
    return total <= DENSE and total <= 8 * rows + (1 << 12)


def _search(known: Ints, keys: Ints) -> Ints:
    if not len(known):
        return np.full(len(keys), -1, np.int64)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[at] == keys, at, -1)
