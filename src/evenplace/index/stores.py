"""Where descriptors live and are compared: files on this machine, or a store of many machines.

Q queries · D descriptor · T candidates of all queries · N photos
"""

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from evenplace.index.layout import Index, Segment

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
_CHUNK = 8192  # photos of a whole database compared at a time
_GATHERED = 512  # candidates gathered at a time: what the processor's cache holds
_RESIDENT = 48 << 20  # bytes read after which pages are given back; many more were mapped


@dataclass(frozen=True)
class Candidates:
    """The photos of each query's places, query by query and place by place."""

    rows: Rows  # (T,)
    places: Rows  # (T,)
    cosines: Floats  # (T,)
    cuts: Rows  # (Q + 1,) the candidates of query q are cuts[q]:cuts[q + 1]


class Store(Protocol):
    """Compares queries with photos; rows are those of the index it was made from."""

    def candidates(self, queries: Floats, places: Sequence[Rows]) -> Candidates:
        """Compare each query with the photos of its places.  queries: (Q, D)."""

    def nearest(self, queries: Floats, k: int) -> tuple[Rows, Floats]:
        """The k most similar photos of all, exactly.  -> (Q, k) rows and cosines."""


class EmbeddedStore:
    """The memory-mapped files of an index.

    Pages that queries touched count as this process's memory until the system needs it; they
    are given back every 48 MB, so that a long-running process stays small.  The page cache
    keeps them, and the next query finds them there.
    """

    def __init__(self, index: Index) -> None:
        self.index = index
        self._touched = 0

    def candidates(self, queries: Floats, places: Sequence[Rows]) -> Candidates:
        joined = np.concatenate(places) if len(places) else np.empty(0, np.int64)
        whose = np.repeat(np.arange(len(places)), [len(part) for part in places])
        rows, of = self.index.rows_of(joined)
        cuts = np.searchsorted(whose[of], np.arange(len(places) + 1))
        return Candidates(rows, joined[of], self.compare(queries, rows, cuts), cuts)

    def compare(self, queries: Floats, rows: Rows, cuts: Rows) -> Floats:
        """Cosines of each query with its own rows.  (T,)."""
        cosines = np.empty(len(rows), np.float32)
        query = 0
        while query < len(queries):
            after = int(np.searchsorted(cuts, cuts[query] + _GATHERED, "right")) - 1
            after = min(max(after, query + 1), len(queries))
            vectors = self.index.vectors(rows[cuts[query] : cuts[after]])
            for one in range(query, after):
                span = slice(cuts[one] - cuts[query], cuts[one + 1] - cuts[query])
                cosines[cuts[one] : cuts[one + 1]] = vectors[span] @ queries[one]
            query = after
        self._give_back(len(rows))
        return cosines

    def all_cosines(self, queries: Floats) -> Floats:
        """Every query with every photo, in the order of the rows.  (Q, N)."""
        asked = torch.from_numpy(queries)
        base = self.index.base
        cosines = np.empty((len(queries), len(self.index)), np.float32)
        live = self.index.live
        for first in range(0, len(live), _CHUNK):
            rows = live[first : first + _CHUNK]
            block = torch.from_numpy(_span(base, rows)).float()
            cosines[:, first : first + len(rows)] = (asked @ block.T).numpy()
            self._give_back(len(rows))
        if self.index.delta is not None:
            added = torch.from_numpy(self.index.delta.added.descriptors).float()
            cosines[:, len(live) :] = (asked @ added.T).numpy()
        return cosines

    def nearest(self, queries: Floats, k: int) -> tuple[Rows, Floats]:
        asked = torch.from_numpy(queries)
        best = torch.empty(len(queries), 0)
        which = torch.empty(len(queries), 0, dtype=torch.int64)
        every = np.arange(len(self.index))
        for first in range(0, len(every), _CHUNK):
            rows = every[first : first + _CHUNK]
            cosines = asked @ torch.from_numpy(self.index.vectors(rows)).T
            joined = torch.cat([best, cosines], dim=1)
            numbers = torch.cat([which, torch.from_numpy(rows).expand(len(queries), -1)], dim=1)
            top = joined.topk(min(k, joined.shape[1]), dim=1)
            best, which = top.values, numbers.gather(1, top.indices)
            self._give_back(len(rows))
        return which.numpy(), best.numpy()

    def _give_back(self, rows: int) -> None:
        self._touched += rows * self.index.dim * 2
        held = getattr(self.index.base.descriptors, "_mmap", None)
        if self._touched > _RESIDENT and held is not None:
            self._touched = 0
            held.madvise(mmap.MADV_DONTNEED)


def _span(segment: Segment, rows: Rows) -> NDArray[np.float16]:
    """Ascending rows of a segment: a view of the file when none is missing."""
    if rows[-1] - rows[0] + 1 == len(rows):
        return segment.descriptors[rows[0] : rows[-1] + 1]
    return np.asarray(segment.descriptors[rows])
