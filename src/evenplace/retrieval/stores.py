"""Where descriptors live and are compared: files on this machine, or a store of many machines.

Q queries · D descriptor · T candidates of all queries · N photos
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from evenplace.arrays import Floats, ranges, starts_of
from evenplace.retrieval.array_files import Column, Rows, read_ahead
from evenplace.retrieval.index import Index
from evenplace.retrieval.top_k import TopK

_CHUNK = 4096  # photos of a whole database compared at a time
_EVERY = -3e38  # below every cosine


@dataclass(frozen=True)
class Candidates:
    """The photos of each query's places, query by query and place by place."""

    rows: Rows  # (T,)
    of: Rows  # (T,) which of all the places asked for, query after query
    cosines: Floats  # (T,)
    cuts: Rows  # (Q + 1,) the candidates of query q are cuts[q]:cuts[q + 1]


@dataclass(frozen=True)
class Nearest:
    """The photos most like each query, best first; -1 and -inf where there are no more."""

    rows: Rows  # (Q, k)
    cosines: Floats  # (Q, k)

    def __getitem__(self, queries: slice) -> "Nearest":
        return Nearest(self.rows[queries], self.cosines[queries])


class Store(Protocol):
    """Compares queries with photos; rows are those of the index it was made from."""

    def candidates(self, queries: Floats, places: Sequence[Rows]) -> Candidates:
        """Compare each query with the photos of its places.  queries: (Q, D)."""

    def nearest(self, queries: Floats, k: int, without: Sequence[Rows] | None = None) -> Nearest:
        """The k most similar photos of all, exactly.  without: rows that each must not see."""


def photos_of(index: Index, places: Sequence[Rows]) -> tuple[Rows, Rows, Rows]:
    """`rows`, `of` and `cuts` of the `Candidates` of some queries' places."""
    joined = np.concatenate(places) if len(places) else np.empty(0, np.int64)
    rows, of = index.rows_of(joined)
    return rows, of, np.searchsorted(of, np.cumsum([0, *map(len, places)]))


class EmbeddedStore:
    """The files of an index.

    mapped: compare photos of places where they lie, by faiss.  Else, or without faiss, rows are
    read as they are needed, and nothing of the descriptors is in our address space.
    """

    def __init__(self, index: Index, *, mapped: bool = True) -> None:
        self.index = index
        self._lists = PlaceLists.over(index) if mapped else None

    def candidates(self, queries: Floats, places: Sequence[Rows]) -> Candidates:
        rows, of, cuts = photos_of(self.index, places)
        if self._lists is not None and len(rows):
            cosines = self._lists.compare(queries, places)
        else:
            cosines = self.index.descriptors.compare(queries, rows, cuts)
        return Candidates(rows, of, cosines, cuts)

    def nearest(self, queries: Floats, k: int, without: Sequence[Rows] | None = None) -> Nearest:
        """One pass over all descriptors, however many queries there are."""
        best = TopK(len(queries), k)
        hidden, hiding = _hidden(without or [])
        every = np.arange(len(self.index))
        for first, block in read_ahead(self.index.vectors, every, _CHUNK):
            cosines = queries @ block.T
            own = slice(*np.searchsorted(hidden, (first, first + len(block))))
            cosines[hiding[own], hidden[own] - first] = -np.inf
            best.add(first, cosines)
        return self._one_by_one(queries, Nearest(*best.sorted()))

    def _one_by_one(self, queries: Floats, found: Nearest) -> Nearest:
        """Each cosine as a dot product of its own: a matrix product rounds equal rows apart."""
        there = found.rows >= 0
        cuts = starts_of(there.sum(axis=1))
        cosines = np.full(found.rows.shape, -np.inf, np.float32)
        cosines[there] = self.index.descriptors.compare(queries, found.rows[there], cuts)
        order = np.lexsort((found.rows, -cosines))
        every = np.arange(len(queries))[:, None]
        return Nearest(found.rows[every, order], cosines[every, order])


class PlaceLists:
    """The descriptors of an index as faiss's inverted lists on disk: a place is a list.

    After updates it is several: each run of rows that follow each other in the file.

    faiss compares halves and bytes with a query as it reads them, queries of a batch on all cores:
    a quarter of the time that reading, converting and multiplying them in turn takes.
    """

    def __init__(self, index: Index, faiss: Any) -> None:
        self._faiss = faiss
        column, codec = index.columns["descriptors"], index.codec
        first, lengths = self._runs(index, column)
        kind = faiss.ScalarQuantizer.QT_fp16 if codec.low is None else faiss.ScalarQuantizer.QT_8bit
        self._none = faiss.IndexFlatIP(index.dim)
        self._lists = faiss.OnDiskInvertedLists()
        self._lists.nlist, self._lists.code_size = len(first), column.width
        self._lists.filename = f"/dev/fd/{column.handle}"  # its name may be gone
        self._lists.totsize, self._lists.read_only = os.fstat(column.handle).st_size, True
        where = column.begins + first * column.width
        table = np.stack([lengths, lengths, where], axis=1)  # size, capacity, offset
        self._lists.lists.resize(len(first))
        faiss.memcpy(self._lists.lists.data(), faiss.swig_ptr(table), table.nbytes)
        self._lists.do_mmap()
        self._index = faiss.IndexIVFScalarQuantizer(
            self._none, index.dim, len(first), kind, faiss.METRIC_INNER_PRODUCT, False
        )
        if codec.low is not None and codec.step is not None:
            # faiss reads a byte as least + (byte + ½) / 255 · range
            trained = np.concatenate([codec.low - codec.step / 2, 255 * codec.step])
            faiss.copy_array_to_vector(trained.astype(np.float32), self._index.sq.trained)
        self._index.is_trained, self._index.ntotal = True, len(index)
        self._index.replace_invlists(self._lists, False)

    def _runs(self, index: Index, column: Column) -> tuple[Rows, Rows]:
        """First row in the file and length of each run; `_first` is the first run of each place."""
        count = int(index.starts[-1])
        at = np.arange(count) if column.slots is None else column.slots[:count]
        begins = np.diff(at, prepend=-2) != 1
        begins[index.starts[:-1][index.sizes > 0]] = True
        cuts = np.flatnonzero(begins)
        self._first = np.searchsorted(cuts, index.starts)
        return at[cuts], np.diff(cuts, append=count)

    @classmethod
    def over(cls, index: Index) -> "PlaceLists | None":
        """None where faiss is not there, maps no files, or would have to look codes up."""
        try:
            faiss: Any = import_module("faiss")  # its types leave half of this out
        except ImportError:
            return None
        mappable = hasattr(faiss, "OnDiskInvertedLists") and Path("/dev/fd").exists()
        kept = mappable and index.codec.centroids is None and index.starts[-1]
        return cls(index, faiss) if kept else None

    def compare(self, queries: Floats, places: Sequence[Rows]) -> Floats:
        """Cosines of each query with the photos of its places, query by query and place by place.

        The number of one photo is the same whatever is asked beside it.  -> (T,).
        """
        faiss, joined = self._faiss, np.concatenate(places)
        runs, of = ranges(self._first[joined], self._first[joined + 1])
        query = np.repeat(np.arange(len(places)), [len(own) for own in places])[of]
        counts = np.bincount(query, minlength=len(places))
        keys = np.full((len(queries), counts.max()), -1)
        keys[query, np.arange(len(runs)) - (np.cumsum(counts) - counts)[query]] = runs
        found, nothing = faiss.RangeSearchResult(len(queries)), np.zeros(keys.shape, np.float32)
        self._index.range_search_preassigned_c(
            len(queries), faiss.swig_ptr(queries), _EVERY, faiss.swig_ptr(keys),
            faiss.swig_ptr(nothing), found, True, faiss.SearchParametersIVF(nprobe=keys.shape[1]),
        )  # fmt: skip
        count = int(faiss.rev_swig_ptr(found.lims, len(queries) + 1)[-1])
        cosines: Floats = faiss.rev_swig_ptr(found.distances, count).copy()
        return cosines


def _hidden(without: Sequence[Rows]) -> tuple[Rows, Rows]:
    """Rows that are hidden, ascending, and from which query each is."""
    if not len(without):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    rows = np.concatenate(without).astype(np.int64)
    order = np.argsort(rows, kind="stable")
    return rows[order], np.repeat(np.arange(len(without)), [len(own) for own in without])[order]
