"""What kind of numbers an array holds, one name a kind in the whole package; and moves on rows."""

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Real = TypeVar("Real", np.float32, np.float64)
BLOCK = 1 << 16  # rows at a time: what the processor's cache holds


def blocks(rows: int, size: int = BLOCK) -> Iterator[slice]:
    """So many rows one after the other, a slice at a time."""
    return (slice(start, start + size) for start in range(0, rows, size))


def ranges(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Every number in every range, range by range, and which range it is of."""
    lengths = last - first
    of = np.repeat(np.arange(len(first)), lengths)
    before = np.cumsum(lengths) - lengths
    return np.arange(len(of)) + np.repeat(first - before, lengths), of


def starts_of(counts: Array) -> Ints:
    """Where each of so many ranges begins that lie one after the other, and where the last ends.

    (N,) -> (N + 1,).
    """
    return np.append(0, np.cumsum(counts))


def renumber(kept: Bools) -> Ints:
    """What each row is called among those kept, -1 for the others and for row -1: (N + 1,)."""
    return np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)


def evenly(count: int, most: int) -> Ints:
    """So many of `count` rows, spread from the first to the last; all where there are fewer."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def unit(vectors: NDArray[Real]) -> NDArray[Real]:
    """Each vector at length 1; one without a length stays as it is.  (N, D) -> (N, D)."""
    lengths: Any = np.linalg.norm(vectors, axis=1, keepdims=True)
    made: NDArray[Real] = vectors / np.maximum(lengths, 1e-12)
    return made


def draw_pairs(starts: Ints, count: int, dice: np.random.Generator) -> Ints:
    """Two rows of one group, so many times; each group of two and more is as likely as any other.

    starts: where the rows of each group begin, and where the last end.  None where no group has
    two.  -> (2, count).
    """
    sizes = np.diff(starts)
    several = np.flatnonzero(sizes > 1)
    if not len(several):
        return np.empty((2, 0), np.int64)
    groups = dice.choice(several, count)
    first = dice.integers(sizes[groups])
    second = (first + 1 + dice.integers(sizes[groups] - 1)) % sizes[groups]
    pairs: Ints = starts[groups] + np.stack([first, second])
    return pairs
