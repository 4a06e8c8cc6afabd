"""Photo files → batches of pixels, decoded on threads ahead of the network.

Decoding and resizing release Python's lock, so threads are enough and nothing is copied between
processes.  A photo that cannot be decoded is reported with its reason, never replaced.

    B batch · H, W pixels
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from evenplace.errors import PhotoError
from evenplace.photos.pictures import Size, height_width, open_picture
from evenplace.photos.table import Skipped


@dataclass(frozen=True)
class Batch:
    """Pixels of the photos that could be read, their rows, and the ones that could not."""

    rows: list[int]
    pixels: Tensor  # (B, 3, H, W) uint8
    skipped: list[Skipped]


def load_batches(
    paths: Sequence[str], size: Size, *, batch: int = 8, rows: Sequence[int] | None = None
) -> Iterator[Batch]:
    """Yield batches in order, decoding two batches ahead.  rows: which photos; all by default."""
    wanted = range(len(paths)) if rows is None else rows
    return load_chunks(paths, size, (wanted[i : i + batch] for i in range(0, len(wanted), batch)))


def load_chunks(
    paths: Sequence[str], size: Size, chunks: Iterable[Iterable[int]], threads: int = 0
) -> Iterator[Batch]:
    """Yield a batch for each chunk of rows, in order, decoding two chunks ahead.

    threads: as many as there are cores, from 2 to 16, unless told.
    """
    threads = threads or max(2, min(16, os.cpu_count() or 2))
    coming = iter(chunks)
    with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="decode") as pool:
        waiting: deque[tuple[list[int], list[Future[Tensor | Skipped]]]] = deque()

        def send(count: int) -> None:
            for chunk in islice(coming, count):
                rows = [int(row) for row in chunk]
                waiting.append((rows, [pool.submit(_pixels, paths[r], size) for r in rows]))

        send(2)
        while waiting:
            rows, decoded = waiting.popleft()
            send(1)
            yield _gather(rows, [future.result() for future in decoded], size)


def _gather(rows: list[int], decoded: list[Tensor | Skipped], size: Size) -> Batch:
    good = [(row, item) for row, item in zip(rows, decoded, strict=True) if torch.is_tensor(item)]
    skipped = [item for item in decoded if isinstance(item, Skipped)]
    empty = torch.empty(0, 3, *height_width(size), dtype=torch.uint8)
    pixels = torch.stack([item for _, item in good]) if good else empty
    return Batch([row for row, _ in good], pixels, skipped)


def _pixels(path: str, size: Size) -> Tensor | Skipped:
    try:
        return picture_pixels(path, size)
    except PhotoError as error:
        return Skipped(path, str(error))


def picture_pixels(source: str | bytes, size: Size) -> Tensor:
    """Decode one photo to (3, H, W) uint8."""
    picture = open_picture(source, size)
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1)
