"""Rows of halves or bytes on disk, read and compared while they are in the processor's cache.

Everything here runs on the thread that asks.  A second thread was tried, for one query and for
batches of 64: on two cores it gave nothing.  Several threads may ask at once.

A product of one row with one query is the same number whatever is asked beside it, because each
is a dot product of its own; a matrix product rounds differently for every shape.

Q queries · D descriptor · N rows on disk · P rows read · C rows compared with every query
"""

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from evenplace.retrieval.column import Column

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
_SIGN_AND_VALUE = np.int32(-0x70000001)  # all bits but the three below the sign
_EXPONENT = np.float32(2.0**112)
_GATHERED = 1 << 20  # numbers read, converted and compared at a time: 1,365 rows of 768


class Bench:
    """Memory to read rows into and convert them."""

    def __init__(self, dim: int, kind: DTypeLike) -> None:
        self.rows = max(1, _GATHERED // dim)
        self.kept = np.empty((self.rows, dim), kind)
        self.floats = np.empty((self.rows, dim), np.float32)

    def widen(self, count: int) -> Floats:
        """The first rows as float32."""
        return widened(self.kept[:count], self.floats[:count])


def widened(kept: NDArray[Any], out: Floats | None = None) -> Floats:
    """Numbers of any kind as float32; finite halves by their bits, 5 times as fast as numpy.

    A half's exponent and fraction are a float's, 13 bits further right and 2^112 smaller.
    """
    whole = np.empty(kept.shape, np.float32) if out is None else out
    if kept.dtype != np.float16:
        np.copyto(whole, kept)
        return whole
    bits = whole.view(np.int32)
    np.copyto(bits, kept.view(np.int16))  # the sign fills what is above the exponent
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, _SIGN_AND_VALUE, out=bits)
    return np.multiply(whole, _EXPONENT, out=whole)


class _Benches(threading.local):
    """A bench for each thread that asks, used again and again."""

    last: Bench | None = None

    def take(self, dim: int, kind: DTypeLike) -> Bench:
        last = self.last
        if last is None or last.floats.shape[1] != dim or last.kept.dtype != kind:
            self.last = last = Bench(dim, kind)
        return last


_BENCHES = _Benches()


def compare_rows(column: Column, queries: Floats, rows: Rows, cuts: Rows) -> Floats:
    """<query, row> of each query with its own rows on disk, cuts[q] to cuts[q + 1].  -> (P,)."""

    def fetch(bench: Bench, wanted: Rows) -> Floats:
        column.read(wanted, bench.kept[: len(wanted)])
        return bench.widen(len(wanted))

    return compare_fetched(fetch, queries, rows, cuts, column.dtype)


def compare_held(held: Floats, queries: Floats, rows: Rows) -> Floats:
    """<query, row> of each query with its own rows of an array.  (Q, P) -> (Q, P)."""

    def fetch(bench: Bench, wanted: Rows) -> Floats:
        return held.take(wanted, axis=0, out=bench.floats[: len(wanted)], mode="clip")

    cuts = np.arange(len(rows) + 1) * rows.shape[1]
    return compare_fetched(fetch, queries, rows.ravel(), cuts).reshape(rows.shape)


def compare_fetched(
    fetch: Callable[[Bench, Rows], Floats],
    queries: Floats,
    rows: Rows,
    cuts: Rows,
    kind: DTypeLike = np.float16,
) -> Floats:
    """The same with rows fetched in pieces; `fetch` may use the bench, for rows of that kind."""
    products, bench = np.empty(len(rows), np.float32), _BENCHES.take(queries.shape[1], kind)
    for query, (begin, end) in enumerate(pairwise(cuts.tolist())):
        for first in range(begin, end, bench.rows):
            part = slice(first, min(first + bench.rows, end))
            np.vecdot(fetch(bench, rows[part]), queries[query], out=products[part])
    return products


def dots(queries: Floats, rows: Floats) -> Floats:
    """Every query with every row.  (Q, D), (C, D) -> (Q, C)."""
    products: Floats = np.vecdot(queries[:, None], rows[None])
    return products
