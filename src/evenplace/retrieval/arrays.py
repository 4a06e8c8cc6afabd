"""Arrays in files: written block by block with plain writes, read as memory maps.

Plain writes, because a full disk is then an error; a write through a memory map would end the
process instead.
"""

import hashlib
import io
import json
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from evenplace.errors import IndexFileError
from evenplace.photos.table import METADATA, Photos, Skipped
from evenplace.retrieval.manifest import FileEntry


def write_array(path: Path, array: NDArray[Any]) -> None:
    write_blocks(path, [array], array.shape, array.dtype)


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
    digest = hashlib.sha256(header.getvalue())
    written = 0
    with path.open("wb") as file, ThreadPoolExecutor(1) as writer:

        def put(block: NDArray[Any]) -> None:
            data = np.ascontiguousarray(block, kind).data.cast("B") if block.size else b""
            digest.update(data)
            file.write(data)

        file.write(header.getvalue())
        under_way: Future[None] | None = None
        for block in blocks:
            if under_way is not None:
                under_way.result()
            under_way = writer.submit(put, block)
            written += len(block)
        if under_way is not None:
            under_way.result()
        file.flush()
        size = file.tell()
    if shape and written != shape[0]:
        raise IndexFileError(
            f"{written} rows came for {path.name}, {shape[0]} were announced; check the descriptors"
        )
    return FileEntry(size, digest.hexdigest())


def map_array(path: Path) -> NDArray[Any]:
    """Map a .npy file; private and never written to, so torch may look at it without a copy."""
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="c")
    except ValueError as cause:
        raise IndexFileError(f"{path} is no array ({cause}); build the index again") from cause
    return array


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
