"""Where descriptors live and are compared: files on this machine, or a store of many machines.

Q queries · D descriptor · T candidates of all queries · N photos
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from evenplace.retrieval.layout import Index
from evenplace.retrieval.rows import compare_rows

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
_CHUNK = 8192  # photos of a whole database compared at a time


@dataclass(frozen=True)
class Candidates:
    """The photos of each query's places, query by query and place by place."""

    rows: Rows  # (T,)
    of: Rows  # (T,) which of all the places asked for, query after query
    cosines: Floats  # (T,)
    cuts: Rows  # (Q + 1,) the candidates of query q are cuts[q]:cuts[q + 1]


class Store(Protocol):
    """Compares queries with photos; rows are those of the index it was made from."""

    def candidates(self, queries: Floats, places: Sequence[Rows]) -> Candidates:
        """Compare each query with the photos of its places.  queries: (Q, D)."""

    def nearest(self, queries: Floats, k: int) -> tuple[Rows, Floats]:
        """The k most similar photos of all, exactly.  -> (Q, k) rows and cosines."""


class EmbeddedStore:
    """The files of an index, read as they are needed: what was read is no memory of ours."""

    def __init__(self, index: Index) -> None:
        self.index = index

    def candidates(self, queries: Floats, places: Sequence[Rows]) -> Candidates:
        joined = np.concatenate(places) if len(places) else np.empty(0, np.int64)
        rows, of = self.index.rows_of(joined)
        ends = np.cumsum([0, *map(len, places)])
        cuts = np.searchsorted(of, ends)
        return Candidates(rows, of, compare_rows(self.index.read, queries, rows, cuts), cuts)

    def all_cosines(self, queries: Floats) -> Floats:
        """Every query with every photo, in the order of the rows.  (Q, N)."""
        cosines = np.empty((len(queries), len(self.index)), np.float32)
        for rows, part in self._blocks(queries):
            cosines[:, rows] = part
        return cosines

    def nearest(self, queries: Floats, k: int) -> tuple[Rows, Floats]:
        best = torch.empty(len(queries), 0)
        which = torch.empty(len(queries), 0, dtype=torch.int64)
        for rows, part in self._blocks(queries):
            joined = torch.cat([best, torch.from_numpy(part)], dim=1)
            numbers = torch.arange(rows.start, rows.stop).expand(len(queries), -1)
            top = joined.topk(min(k, joined.shape[1]), dim=1)
            best, which = top.values, torch.cat([which, numbers], dim=1).gather(1, top.indices)
        return which.numpy(), best.numpy()

    def _blocks(self, queries: Floats) -> Iterator[tuple[slice, Floats]]:
        """Cosines of every query with the photos of each block of rows.  (Q, block)."""
        asked, count = torch.from_numpy(queries), len(self.index)
        for first in range(0, count, _CHUNK):
            rows = slice(first, min(first + _CHUNK, count))
            vectors = self.index.vectors(np.arange(rows.start, rows.stop))
            yield rows, (asked @ torch.from_numpy(vectors).T).numpy()
