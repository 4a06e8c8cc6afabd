"""Arrays in files: written block by block, read as memory maps or row by row, and compared.

Plain writes, because a full disk is then an error; a write through a memory map would end the
process instead.

A product of one row with one query is the same number whatever is asked beside it, because each
is a dot product of its own; a matrix product rounds differently for every shape.

P rows asked for · N photos · W numbers a row · Q queries · D descriptor · C rows of every query
"""

import hashlib
import io
import json
import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from evenplace.arrays import Floats
from evenplace.errors import IndexFileError
from evenplace.photos.table import METADATA, Photos, Skipped
from evenplace.retrieval.manifest import FileEntry

Rows = NDArray[np.int64]
_SIGN_AND_VALUE = np.int32(-0x70000001)  # all bits but the three below the sign
_EXPONENT = np.float32(2.0**112)
_GATHERED = 1 << 20  # numbers read, converted and compared at a time: 1,365 rows of 768


def write_array(path: Path, array: NDArray[Any]) -> FileEntry:
    return write_blocks(path, [array], array.shape, array.dtype)


def write_blocks(
    path: Path,
    blocks: Iterable[NDArray[Any]],
    shape: tuple[int, ...],
    dtype: DTypeLike,
) -> FileEntry:
    """Write one .npy file from blocks of rows, in order; each is hashed and written meanwhile."""
    kind = np.dtype(dtype)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": kind.str, "fortran_order": False, "shape": shape}
    )
    with path.open("wb") as file:
        written, entry = _put(file, header.getvalue(), blocks, kind)
    if shape and written != shape[0]:
        raise IndexFileError(
            f"{written} rows came for {path.name}, {shape[0]} were announced; check the descriptors"
        )
    return entry


def append_blocks(
    path: Path, entry: FileEntry, blocks: Iterable[NDArray[Any]], dtype: DTypeLike
) -> FileEntry:
    """Write rows behind those of an entry; whoever has the file open sees what it saw before.

    What a writer that was killed has left behind the entry is overwritten.
    """
    with path.open("r+b") as file:
        file.truncate(entry.total)
        file.seek(entry.total)
        _, grown = _put(file, b"", blocks, np.dtype(dtype))
    return replace(entry, grown=(*entry.grown, grown))


def _put(
    file: BinaryIO, head: bytes, blocks: Iterable[NDArray[Any]], kind: np.dtype[Any]
) -> tuple[int, FileEntry]:
    """Rows that were written, and what they are with the head."""
    digest, written, begins = hashlib.sha256(head), 0, file.tell()
    file.write(head)
    with ThreadPoolExecutor(2) as crew:
        under_way: list[Future[Any]] = []
        for block in blocks:
            for job in under_way:
                job.result()
            data = np.ascontiguousarray(block, kind).data.cast("B") if block.size else b""
            under_way = [crew.submit(digest.update, data), crew.submit(file.write, data)]
            written += len(block)
        for job in under_way:
            job.result()
    file.flush()
    return written, FileEntry(file.tell() - begins, digest.hexdigest())


def map_array(path: Path) -> NDArray[Any]:
    """Map a .npy file; private and never written to, so torch may look at it without a copy."""
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="c")
    except ValueError as cause:
        raise IndexFileError(f"{path} is no array ({cause}); build the index again") from cause
    return array


def _header(path: Path) -> tuple[tuple[int, int], np.dtype[Any], int]:
    """The shape and type of a .npy file's rows, and where they begin."""
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        with path.open("rb") as file:
            shape, _, kind = read[np.lib.format.read_magic(file)](file)
            rows, width = shape
            return (rows, width), kind, file.tell()
    except (ValueError, KeyError) as cause:
        raise IndexFileError(f"{path} is no array ({cause}); build the index again") from cause


def write_photos(path: Path, photos: Photos) -> None:
    """Write photos as one Arrow record batch: what a memory map can be read from in place."""
    skipped = json.dumps([asdict(one) for one in photos.skipped]).encode()
    table = photos.table.combine_chunks().replace_schema_metadata({METADATA: skipped})
    with path.open("wb") as file, pa.ipc.new_file(file, table.schema) as out:
        out.write_table(table, max_chunksize=max(1, len(table)))


def map_photos(path: Path) -> Photos:
    """The photos of `write_photos`, read from the file as they are asked for."""
    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    except pa.ArrowException as cause:
        raise IndexFileError(f"{path} is damaged ({cause}); build the index again") from cause
    found = json.loads((table.schema.metadata or {}).get(METADATA, b"[]"))
    return Photos(table.replace_schema_metadata(None), [Skipped(**one) for one in found])


class Column:
    """Something of every photo in one large .npy file; several threads may read.

    slots: (N,) row of the file that each photo has; in the order of the file unless told.

    By plain reads: what a memory map has touched counts as the process's memory and costs a fault
    a page; what was read lies in the page cache alone.  mapped: by a memory map all the same, for
    millions of rows here and there.  The file stays readable when its name is removed.
    """

    def __init__(self, path: Path, slots: Rows | None = None, *, mapped: bool = False) -> None:
        first, self.dtype, self.begins = _header(path)  # of the rows that were written first
        self.path, self.handle = path, os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self.handle)
        self.slots = slots
        self.shape = (first[0] if slots is None else len(slots), first[1])
        self.width = first[1] * self.dtype.itemsize  # bytes
        self._mapped: NDArray[Any] | None = None
        if mapped or not hasattr(os, "preadv"):  # Windows
            count = (path.stat().st_size - self.begins) // max(self.width, 1)
            shape = (count, self.shape[1])
            self._mapped = np.empty(shape, self.dtype)
            if count:
                self._mapped = np.memmap(path, self.dtype, "r", self.begins, shape)

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, rows: Rows, out: NDArray[Any]) -> None:
        """Read rows into an array, those that follow each other in one go.  (P,), (P, W)."""
        if not len(rows):
            return
        if rows.min() < 0:
            raise IndexFileError(f"{self.path} has no row {rows.min()}; rows count from 0")
        if self.slots is not None:
            rows = self.slots[rows]
        if self._mapped is not None:
            np.take(self._mapped, rows, axis=0, out=out, mode="clip")
            return
        cuts = [0, *(np.flatnonzero(rows[1:] - rows[:-1] != 1) + 1).tolist(), len(rows)]
        target, width = out.data.cast("B"), self.width
        for begin, end, row in zip(cuts, cuts[1:], rows[cuts[:-1]].tolist(), strict=False):
            part, at = target[begin * width : end * width], self.begins + row * width
            while part:
                count = os.preadv(self.handle, [part], at)
                if not count:
                    raise IndexFileError(
                        f"{self.path} ends before row {rows[end - 1]}; build it again"
                    )
                part, at = part[count:], at + count

    def __getitem__(self, which: Any) -> NDArray[Any]:
        """A copy of some rows, chosen as numpy chooses.  (P, W)."""
        if isinstance(which, np.ndarray) and which.dtype.kind == "i":
            rows = which
        elif isinstance(which, slice):  # of millions of rows a few
            rows = np.arange(*which.indices(len(self)))
        else:
            rows = np.arange(len(self))[which]
        if not rows.ndim:
            row: NDArray[Any] = self[rows[None]][0]
            return row
        found = np.empty((len(rows), self.shape[1]), self.dtype)
        self.read(rows, found)
        return found


def read_ahead(
    read: Callable[[Rows], NDArray[Any]], rows: Rows, size: int
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Where each block begins and what it holds; the next is read while one is worked on."""
    with ThreadPoolExecutor(1) as reader:
        coming: list[tuple[int, Future[NDArray[Any]]]] = []
        for start in range(0, len(rows), size):
            coming.append((start, reader.submit(read, rows[start : start + size])))
            if len(coming) == 2:
                begun, block = coming.pop(0)
                yield begun, block.result()
        for begun, block in coming:
            yield begun, block.result()


def widened(kept: NDArray[Any]) -> Floats:
    """Numbers of any kind as float32; finite halves by their bits, 5 times as fast as numpy.

    A half's exponent and fraction are a float's, 13 bits further right and 2^112 smaller.
    """
    if kept.dtype != np.float16:
        return np.asarray(kept, np.float32)
    bits = kept.view(np.int16).astype(np.int32)  # the sign fills what is above the exponent
    whole = bits.view(np.float32)
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, _SIGN_AND_VALUE, out=bits)
    return np.multiply(whole, _EXPONENT, out=whole)


def compare_rows(read: Callable[[Rows], Floats], queries: Floats, rows: Rows, cuts: Rows) -> Floats:
    """<query, row> of each query with its own rows, cuts[q] to cuts[q + 1].  -> (P,)."""
    products, step = np.empty(len(rows), np.float32), max(1, _GATHERED // queries.shape[1])
    for query, (begin, end) in enumerate(pairwise(cuts.tolist())):
        for first in range(begin, end, step):
            part = slice(first, min(first + step, end))
            np.vecdot(read(rows[part]), queries[query], out=products[part])
    return products


def dots(queries: Floats, rows: Floats) -> Floats:
    """Every query with every row.  (Q, D), (C, D) -> (Q, C)."""
    products: Floats = np.vecdot(queries[:, None], rows[None])
    return products
