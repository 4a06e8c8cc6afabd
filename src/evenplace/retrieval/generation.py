"""Write a generation of an index: all that follows from photos, their rows and their places.

N photos · C places · D descriptor · W numbers a photo
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from evenplace.arrays import ranges
from evenplace.errors import IndexFileError
from evenplace.photos.choose import first_of_each
from evenplace.photos.files import sync
from evenplace.photos.table import Photos, Skipped
from evenplace.places.table import Places
from evenplace.retrieval.arrays import (
    Column,
    Floats,
    Rows,
    append_blocks,
    map_array,
    widened,
    write_array,
    write_blocks,
    write_photos,
)
from evenplace.retrieval.coarse import Coarse
from evenplace.retrieval.codec import (
    AXES_SAMPLE,
    SAMPLE,
    WHITENED,
    Codec,
    Descriptors,
    codec_for,
    fit_codec,
)
from evenplace.retrieval.impostors import Impostors
from evenplace.retrieval.index import ROWS, Index
from evenplace.retrieval.learned_axes import learn_axes
from evenplace.retrieval.manifest import FileEntry
from evenplace.retrieval.prototypes import PlaceMeans, fit_scale
from evenplace.retrieval.shortlist_effort import build_coarse, made_up_queries

BLOCK = 2048  # rows at a time: what fits a cache costs half of what does not


@dataclass(frozen=True)
class Order:
    """Photos in the order of their places; those in no place come last."""

    rows: Rows  # (N,) which photo comes where
    labels: Rows  # (N,) place of each, in that order; C for none
    starts: Rows  # (C + 1,)


def by_place(labels: Rows, count: int) -> Order:
    """Put photos of one place side by side, in the order they had.  labels: (N,), -1 for none."""
    numbered = np.where(labels < 0, count, labels)
    rows = np.argsort(numbered, kind="stable")
    starts = np.searchsorted(numbered[rows], np.arange(count + 1)).astype(np.int64)
    return Order(rows, numbered[rows], starts)


def once(photos: Photos, places: Places) -> tuple[Photos, Order]:
    """The photos place by place, each file once; those that came again are skipped ones."""
    first = first_of_each(photos)
    order = by_place(places.locate(photos)[first], len(places))
    order = replace(order, rows=first[order.rows])
    if len(first) == len(photos):
        return photos, order
    again = photos[np.setdiff1d(np.arange(len(photos)), first)]
    skipped = [Skipped(path, "the same file came before") for path in again.paths]
    return Photos(photos.table, [*photos.skipped, *skipped]), order


def write_layout(target: Path, photos: Photos, places: Places, starts: Rows) -> None:
    """Which photos there are, and which places they are of."""
    write_photos(target / "photos.arrow", photos)
    write_array(target / "starts.npy", starts)
    replace(places, labels=np.empty(0, np.int64)).write(target / "places.parquet")


def write_descriptors(
    target: Path, values: Any, order: Order, codec: Codec
) -> tuple[PlaceMeans, FileEntry]:
    """Write descriptors place by place, checked and coded; their places' means."""
    nothing = codec.turn(np.zeros((1, int(values.shape[1])), np.float32))
    means = PlaceMeans(len(order.starts) - 1, nothing.shape[1], target)

    code = codec.encode(nothing)
    as_it_comes = codec.axes is None and code.dtype == np.float16

    def blocks() -> Iterator[NDArray[Any]]:
        for start, block in _read_ahead(values, order.rows):
            whole = widened(block)
            check_units(whole, order.rows[start : start + BLOCK])
            turned = codec.turn(whole)
            means.add(order.labels[start : start + BLOCK], turned)
            yield block if as_it_comes and block.dtype == np.float16 else codec.encode(turned)

    shape = (len(order.rows), code.shape[1])
    return means, write_blocks(target / f"{ROWS}descriptors.npy", blocks(), shape, code.dtype)


def write_rows(
    target: Path, name: str, values: Any, order: Order, kind: DTypeLike | None = None
) -> FileEntry:
    """Write what else is kept of each photo, place by place."""
    blocks = (block for _, block in _read_ahead(values, order.rows))
    shape = (len(order.rows), int(values.shape[1]))
    return write_blocks(target / f"{ROWS}{name}.npy", blocks, shape, kind or values.dtype)


def fitted(keep: str | int | None, values: Any, order: Order) -> Codec:
    """The codec that was asked for, fitted to photos evenly chosen."""
    count, dim = values.shape
    name = codec_for(dim, keep, count) if isinstance(keep, int) else keep or "float16"
    if name == "float16":
        return Codec()
    most = AXES_SAMPLE if name.startswith(WHITENED) else SAMPLE
    rows = np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))
    generator = np.random.default_rng(0)
    codec = fit_codec(name, generator.permutation(np.asarray(values[rows], np.float32)))
    return learn_axes(codec, values, order) if name.startswith("learned") else codec


def _read_ahead(values: Any, rows: Rows) -> Iterator[tuple[int, NDArray[Any]]]:
    """Where each block begins and what it holds; the next is read while one is worked on."""

    def read(part: Rows) -> NDArray[Any]:
        follow = len(part) and (np.diff(part) == 1).all()  # a slice is read in one go
        return np.array(values[slice(part[0], part[-1] + 1) if follow else part])

    with ThreadPoolExecutor(1) as reader:
        coming: list[tuple[int, Future[NDArray[Any]]]] = []
        for start in range(0, len(rows), BLOCK):
            coming.append((start, reader.submit(read, rows[start : start + BLOCK])))
            if len(coming) == 2:
                begun, block = coming.pop(0)
                yield begun, block.result()
        for begun, block in coming:
            yield begun, block.result()


@contextmanager
def arrived(given: Any, count: int, folder: Path) -> Iterator[Any]:
    """Rows as an array: what comes in blocks is put into a file first, and taken away after."""
    path = folder / "arriving.npy"
    values = given if hasattr(given, "shape") else _spooled(iter(given), count, path)
    if len(values.shape) != 2 or values.shape[0] != count:
        raise IndexFileError(
            f"descriptors have shape {tuple(values.shape)}, but there are {count} "
            "photos; give one row a photo"
        )
    try:
        yield values
    finally:
        path.unlink(missing_ok=True)


def _spooled(blocks: Iterator[NDArray[Any]], count: int, path: Path) -> NDArray[Any]:
    first = np.asarray(next(blocks, np.empty((0, 1), np.float32)))
    every = chain([first], map(np.asarray, blocks))
    write_blocks(path, every, (count, first.shape[1]), first.dtype)
    return map_array(path)


@dataclass(frozen=True)
class Stale:
    """Impostor terms that are known, and of which photos they are not."""

    terms: Floats  # (N,)
    places: Rows  # places whose photos want theirs
    loose: Rows  # photos in no place that do

    @classmethod
    def of_all(cls, starts: Rows, count: int) -> Self:
        return cls(
            np.zeros(count, np.float32), np.arange(len(starts) - 1), np.arange(starts[-1], count)
        )


def write_derived(
    target: Path,
    scale: float,
    descriptors: Descriptors,
    photos: Photos,
    starts: Rows,
    *,
    stale: Stale,
    known: Coarse | None = None,
) -> tuple[float, dict[str, Any]]:
    """What follows from descriptors and prototypes: scale, codes, impostors.

    The scale, fitted where it is 0, and what was measured of the codes.  known: those of the
    generation before.  The disk settles meanwhile what was written.
    """
    prototypes = np.asarray(map_array(target / "prototypes.npy"))
    with ThreadPoolExecutor(1) as disk:
        settled = [disk.submit(sync, file) for file in target.iterdir()]
        scale = scale or fit_scale(descriptors, starts, prototypes)
        coarse = _codes(descriptors, starts, prototypes, scale, known)
        impostors = Impostors(descriptors, photos.points, starts, prototypes, coarse)
        found = [*impostors.terms(stale.places, stale.loose), np.empty(0, np.float32)]
        rows, _ = ranges(starts[stale.places], starts[stale.places + 1])
        terms = stale.terms.copy()
        terms[np.append(rows, stale.loose)] = np.concatenate(found)
        write_array(target / "impostors.npy", terms)
        for file in settled:
            file.result()
    return scale, {} if coarse is None else coarse.write(target)


def _codes(
    descriptors: Descriptors, starts: Rows, prototypes: Floats, scale: float, known: Coarse | None
) -> Coarse | None:
    """Codes of the prototypes, where there are enough places."""
    held = np.flatnonzero((np.diff(starts) > 0) & prototypes.any(axis=1))
    if not len(held):
        return None
    asked = made_up_queries(descriptors, starts, np.random.default_rng(0))
    return build_coarse(prototypes, held, asked, scale, known)


def check_units(block: Floats, rows: Rows) -> None:
    """Refuse descriptors that are not finite and of unit length."""
    norms = np.sqrt(np.vecdot(block, block))
    bad = np.flatnonzero(~(np.abs(norms - 1) < 1e-2))
    if len(bad):
        raise IndexFileError(
            f"descriptor {rows[bad[0]]} has length {norms[bad[0]]:.3g} "
            f"({len(bad)} like it); descriptors must be finite and of unit length"
        )


def grow_columns(
    index: Index, origin: Rows, given: Mapping[str, NDArray[Any]], target: Path
) -> tuple[dict[str, Column], dict[str, FileEntry]]:
    """The rows of all photos: those that came behind the others, or all of them in order.

    origin: (N,) row of the index that each is now; from its length on, those given.  Also what
    each file hashes to.
    """
    before = index.manifest.part
    columns, known, slots = {}, {}, _slots(index, origin)
    if slots is not None:
        write_array(target / "slots.npy", slots)
    for name, column in index.columns.items():
        path = target / f"{ROWS}{name}.npy"
        entry = index.manifest.files[f"{before}/{path.name}"]
        if slots is None:
            shape = (len(origin), column.shape[1])
            blocks = _merged(column, given[name], origin)
            known[path.name] = write_blocks(path, blocks, shape, column.dtype)
        else:
            _link(index.folder / before / path.name, path)
            came = origin[origin >= len(index)] - len(index)
            blocks = (given[name][came[at : at + BLOCK]] for at in range(0, len(came), BLOCK))
            known[path.name] = append_blocks(path, entry, blocks, column.dtype)
        columns[name] = Column(path, slots, mapped=True)
    return columns, known


def _slots(index: Index, origin: Rows) -> Rows | None:
    """Which row is each photo's when those that came are written last; None: write all anew.

    That is when half of the rows would be of photos that went.
    """
    column, old = index.columns["descriptors"], origin < len(index)
    entry = index.manifest.files[f"{index.manifest.part}/{column.path.name}"]
    there = (entry.total - column.begins) // column.width
    if 2 * len(origin) < there + (~old).sum():
        return None
    slots = np.empty(len(old), np.int64)
    kept = origin[old]
    slots[old] = kept if column.slots is None else column.slots[kept]
    slots[~old] = there + np.arange((~old).sum())
    return slots


def _link(file: Path, name: Path) -> None:
    """Another name of a file; a copy on disks that give only one."""
    try:
        os.link(file, name)
    except OSError:
        shutil.copyfile(file, name)


def _merged(column: Column, given: NDArray[Any], origin: Rows) -> Iterator[NDArray[Any]]:
    """Rows of photos that were there and of those that came, a block at a time."""
    for start in range(0, len(origin), BLOCK):
        rows = origin[start : start + BLOCK]
        came = rows >= len(column)
        block = np.empty((len(rows), column.shape[1]), column.dtype)
        block[came] = given[rows[came] - len(column)]
        block[~came] = column[rows[~came]]
        yield block
