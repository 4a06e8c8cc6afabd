"""What kind of numbers an array holds, one name a kind in the whole package; and moves on rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
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


def renumber(kept: Bools) -> Ints:
    """What each row is called among those kept, -1 for the others and for row -1: (N + 1,)."""
    return np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
