"""Photo files → batches of pixels, decoded on threads ahead of the network.

Decoding and resizing release Python's lock, so threads are enough and nothing is copied between
processes.  A photo that cannot be decoded is reported with its reason, never replaced.

    B batch · H, W pixels
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np
from PIL import Image

from evenplace.arrays import Bytes
from evenplace.errors import PhotoError
from evenplace.photos.pictures import Size, height_width, open_picture, picture_name
from evenplace.photos.table import Skipped

Photo = str | bytes | Image.Image
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Batch:
    """Pixels of the photos that could be read, their rows, and the ones that could not."""

    rows: list[int]
    pixels: Bytes  # (B, 3, H, W)
    skipped: list[Skipped]
    decode_ms: float  # on all threads together


@dataclass(frozen=True)
class _Decoded:
    pixels: Bytes | None  # (3, H, W)
    skipped: Skipped | None
    decode_ms: float


def load_batches(
    photos: Sequence[Photo], size: Size, *, batch: int = 8, rows: Sequence[int] | None = None
) -> Iterator[Batch]:
    """Yield batches in order, decoding two batches ahead.  rows: which photos; all by default."""
    wanted = range(len(photos)) if rows is None else rows
    return load_chunks(photos, size, (wanted[i : i + batch] for i in range(0, len(wanted), batch)))


def load_chunks(
    photos: Sequence[Photo], size: Size, chunks: Iterable[Iterable[int]]
) -> Iterator[Batch]:
    """Yield a batch for each chunk of rows, in order, decoding two chunks ahead."""
    threads = max(2, min(16, os.cpu_count() or 2))
    coming = iter(chunks)
    with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="decode") as pool:
        waiting: deque[tuple[list[int], list[Future[_Decoded]]]] = deque()

        def send(count: int) -> None:
            for chunk in islice(coming, count):
                rows = [int(row) for row in chunk]
                waiting.append((rows, [pool.submit(_decode, photos[r], size) for r in rows]))

        send(2)
        while waiting:
            rows, decoded = waiting.popleft()
            send(1)
            yield _gather(rows, [future.result() for future in decoded], size)


def load_now(photos: Sequence[Photo], size: Size, rows: list[int]) -> Batch:
    """One batch, decoded on this thread."""
    return _gather(rows, [_decode(photo, size) for photo in photos], size)


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """Work on items on threads; what they give, in their order, and never far ahead.

    Whoever stops listening waits for what is under way, and for nothing else.
    """
    coming = iter(items)
    pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="describe")
    try:
        waiting = deque(pool.submit(work, item) for item in islice(coming, 2 * threads))
        while waiting:
            found = waiting.popleft().result()
            waiting.extend(pool.submit(work, item) for item in islice(coming, 1))
            yield found
    finally:
        pool.shutdown(cancel_futures=True)


def _gather(rows: list[int], decoded: list[_Decoded], size: Size) -> Batch:
    good = [(row, one.pixels) for row, one in zip(rows, decoded, strict=True) if not one.skipped]
    empty = np.empty((0, 3, *height_width(size)), np.uint8)
    return Batch(
        rows=[row for row, _ in good],
        pixels=np.stack([pixels for _, pixels in good]) if good else empty,  # type: ignore[misc]
        skipped=[one.skipped for one in decoded if one.skipped],
        decode_ms=sum(one.decode_ms for one in decoded),
    )


def _decode(photo: Photo, size: Size) -> _Decoded:
    began = time.perf_counter()
    pixels, skipped = None, None
    try:
        pixels = picture_pixels(photo, size)
    except PhotoError as error:
        skipped = Skipped(picture_name(photo), str(error))
    return _Decoded(pixels, skipped, (time.perf_counter() - began) * 1e3)


def picture_pixels(photo: Photo, size: Size) -> Bytes:
    """Decode one photo to (3, H, W)."""
    return np.asarray(open_picture(photo, size)).transpose(2, 0, 1)


def resize_pixels(pixels: Bytes, size: Size) -> Bytes:
    """Photos at another size, by the filter that loading resizes with.  (B, 3, H, W)."""
    if pixels.shape[-2:] == height_width(size):
        return pixels
    pictures = [Image.fromarray(one.transpose(1, 2, 0)) for one in pixels]
    return np.stack([picture_pixels(picture, size) for picture in pictures])
