"""Something of every photo in files on disk: its descriptor, its code, its local features.

A column is one or more files, each a segment of rows that was written at once.  The photos of an
index have an order of their own, place by place; `slots` says where in the files each lies.

P rows asked for · N photos · W numbers a row
"""

import os
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from evenplace.errors import IndexFileError
from evenplace.retrieval.arrays import map_array

Rows = NDArray[np.int64]


class RowFile:
    """Some rows of a large .npy file, by plain reads.

    What a memory map has touched counts as the process's memory and costs a fault a page; what
    was read lies in the page cache alone.  The file stays readable when its name is removed.
    """

    def __init__(self, path: Path) -> None:
        mapped = map_array(path)
        self._path, self._handle = path, os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._handle)
        self.shape, self.dtype = mapped.shape, mapped.dtype
        self._mapped = None if hasattr(os, "preadv") else mapped  # Windows
        self._width = mapped.shape[1] * mapped.itemsize
        self._first = path.stat().st_size - mapped.nbytes

    def read(self, rows: Rows, out: NDArray[Any]) -> None:
        """Read rows into an array, those that follow each other in one go.  (P,), (P, W)."""
        if not len(rows):
            return
        if rows.min() < 0:
            raise IndexFileError(f"{self._path} has no row {rows.min()}; rows count from 0")
        if self._mapped is not None:
            out[:] = self._mapped[rows]
            return
        cuts = [0, *(np.flatnonzero(rows[1:] - rows[:-1] != 1) + 1).tolist(), len(rows)]
        target, width = out.data.cast("B"), self._width
        for begin, end, row in zip(cuts, cuts[1:], rows[cuts[:-1]].tolist(), strict=False):
            part, at = target[begin * width : end * width], self._first + row * width
            while part:
                count = os.preadv(self._handle, [part], at)
                if not count:
                    raise IndexFileError(
                        f"{self._path} ends before row {rows[end - 1]}; build it again"
                    )
                part, at = part[count:], at + count


class Column:
    """The rows of all photos of a generation; several threads may read."""

    def __init__(self, paths: Sequence[Path], slots: Rows | None = None) -> None:
        self._files = [RowFile(path) for path in paths]
        self._slots = slots  # (N,) rows over all files; None where they are in order
        self.lengths = np.array([file.shape[0] for file in self._files])
        self.ends = np.cumsum(self.lengths)
        self.dtype: np.dtype[Any] = self._files[0].dtype
        count = int(self.ends[-1]) if slots is None else len(slots)
        self.shape = (count, int(self._files[0].shape[1]))

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        return 2

    @property
    def slots(self) -> Rows:
        """Row of each photo, counted over all files.  (N,)."""
        return np.arange(len(self)) if self._slots is None else self._slots

    def read(self, rows: Rows, out: NDArray[Any]) -> None:
        """Rows of some photos into an array.  (P,), (P, W)."""
        if self._slots is None:
            self._files[0].read(rows, out)
            return
        if len(rows) and rows.min() < 0:
            raise IndexFileError(f"there is no photo {rows.min()}; rows count from 0")
        at = self._slots[rows]
        which = np.searchsorted(self.ends, at, "right")
        for number in np.unique(which):
            mine = which == number
            part = np.empty((int(mine.sum()), self.shape[1]), self.dtype)
            self._files[number].read(at[mine] - (self.ends - self.lengths)[number], part)
            out[mine] = part

    def __getitem__(self, which: Any) -> NDArray[Any]:
        """A copy of some rows, chosen as numpy chooses.  (P, W)."""
        if isinstance(which, np.ndarray) and which.dtype.kind == "i":
            rows = which
        else:
            rows = np.arange(len(self))[which]
        if not rows.ndim:
            row: NDArray[Any] = self[rows[None]][0]
            return row
        found = np.empty((len(rows), self.shape[1]), self.dtype)
        self.read(rows, found)
        return found

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:].astype(dtype or self.dtype, copy=False)


def ranges(first: Rows, last: Rows) -> tuple[Rows, Rows]:
    """Every number in every range, range by range, and which range it is of."""
    lengths = last - first
    of = np.repeat(np.arange(len(first)), lengths)
    before = np.cumsum(lengths) - lengths
    return np.arange(len(of)) + np.repeat(first - before, lengths), of
