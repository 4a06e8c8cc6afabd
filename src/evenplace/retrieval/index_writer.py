"""Write a generation of an index: all that follows from photos, their rows and their places.

N photos · C places · D descriptor · W numbers a photo
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from evenplace.arrays import Floats
from evenplace.errors import IndexFileError
from evenplace.photos.choose import AGAIN, first_of_each
from evenplace.photos.table import Photos, Skipped
from evenplace.places.table import Places
from evenplace.retrieval.array_files import (
    Column,
    Rows,
    append_blocks,
    map_array,
    read_ahead,
    widened,
    write_array,
    write_blocks,
    write_photos,
)
from evenplace.retrieval.codec import Codec, Descriptors
from evenplace.retrieval.descriptor_files import given_rows, in_blocks
from evenplace.retrieval.impostors import EXACT, Impostors
from evenplace.retrieval.index import ROWS, Index
from evenplace.retrieval.manifest import Draft
from evenplace.retrieval.prototypes import PlaceMeans, fit_scale
from evenplace.retrieval.shortlist_codes import Coarse
from evenplace.retrieval.shortlist_tuning import build_coarse, made_up_queries

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
    skipped = [Skipped(path, AGAIN) for path in again.paths]
    return Photos(photos.table, [*photos.skipped, *skipped]), order


def write_layout(target: Path, photos: Photos, places: Places, starts: Rows) -> None:
    """Which photos there are, and which places they are of."""
    write_photos(target / "photos.arrow", photos)
    write_array(target / "starts.npy", starts)
    replace(places, labels=np.empty(0, np.int64)).write(target / "places.parquet")


def write_descriptors(draft: Draft, values: Any, order: Order, codec: Codec) -> PlaceMeans:
    """Write descriptors place by place, checked and coded; their places' means."""
    nothing = codec.turn(np.zeros((1, int(values.shape[1])), np.float32))
    means = PlaceMeans(len(order.starts) - 1, nothing.shape[1], draft.path)

    code = codec.encode(nothing)
    as_it_comes = codec.axes is None and code.dtype == np.float16

    def blocks() -> Iterator[NDArray[Any]]:
        for start, block in _blocks(values, order.rows):
            whole = widened(block)
            check_units(whole, order.rows[start : start + BLOCK])
            turned = codec.turn(whole)
            means.add(order.labels[start : start + BLOCK], turned)
            yield block if as_it_comes and block.dtype == np.float16 else codec.encode(turned)

    path, shape = draft.path / f"{ROWS}descriptors.npy", (len(order.rows), code.shape[1])
    draft.known[path.name] = write_blocks(path, blocks(), shape, code.dtype)
    return means


def write_rows(
    draft: Draft, name: str, values: Any, order: Order, kind: DTypeLike | None = None
) -> None:
    """Write what else is kept of each photo, place by place."""
    blocks = (block for _, block in _blocks(values, order.rows))
    path, shape = draft.path / f"{ROWS}{name}.npy", (len(order.rows), int(values.shape[1]))
    draft.known[path.name] = write_blocks(path, blocks, shape, kind or values.dtype)


def write_prototypes(draft: Draft, blocks: Iterable[Floats], count: int, dim: int) -> None:
    path = draft.path / "prototypes.npy"
    draft.known[path.name] = write_blocks(path, blocks, (count, dim), np.float32)


def _blocks(values: Any, rows: Rows) -> Iterator[tuple[int, NDArray[Any]]]:
    """Some rows in blocks, each with where it begins."""

    def read(part: Rows) -> NDArray[Any]:
        follow = len(part) and (np.diff(part) == 1).all()  # a slice is read in one go
        return np.array(values[slice(part[0], part[-1] + 1) if follow else part])

    return read_ahead(read, rows, BLOCK)


@contextmanager
def arrived(given: Any, count: int, folder: Path) -> Iterator[Any]:
    """Rows as an array: what comes in blocks is put into a file first, and taken away after."""
    path = folder / "arriving.npy"
    if in_blocks(given):
        given = _spooled(iter(given), count, path)
    try:
        yield given_rows(given, count)
    finally:
        path.unlink(missing_ok=True)


def _spooled(blocks: Iterator[Any], count: int, path: Path) -> NDArray[Any]:
    first = given_rows(next(blocks, np.empty((0, 1), np.float32)))
    every = chain([first], (given_rows(block, width=first.shape[1]) for block in blocks))
    write_blocks(path, every, (count, first.shape[1]), first.dtype)
    return map_array(path)


def write_derived(
    target: Path,
    scale: float,
    descriptors: Descriptors,
    photos: Photos,
    starts: Rows,
    *,
    terms: Floats | None = None,
    known: Coarse | None = None,
) -> tuple[float, dict[str, Any]]:
    """What follows from descriptors and prototypes: scale, codes, impostors.

    The scale, fitted where it is 0, and what was measured of the codes.  terms: (N,) impostor
    terms, nan where they are wanted.  known: codes of the generation before.
    """
    terms = np.full(len(photos), np.nan, np.float32) if terms is None else terms.copy()
    unknown = np.flatnonzero(np.isnan(terms))
    placed, loose = np.split(unknown, [np.searchsorted(unknown, starts[-1])])
    places = np.unique(np.searchsorted(starts, placed, "right") - 1)
    prototypes = np.asarray(map_array(target / "prototypes.npy"))
    scale = scale or fit_scale(descriptors, starts, prototypes)
    coarse = _codes(descriptors, starts, prototypes, scale, known, len(places))
    impostors = Impostors(descriptors, photos.points, starts, prototypes, coarse)
    terms[unknown] = np.concatenate([terms[:0], *impostors.terms(places, loose)])
    write_array(target / "impostors.npy", terms)
    if coarse is None:
        return scale, {}
    if len(descriptors) > EXACT and len(places):
        coarse = replace(coarse, tuning=replace(coarse.tuning, line=impostors.line))
    return scale, coarse.write(target)


def _codes(
    descriptors: Descriptors,
    starts: Rows,
    prototypes: Floats,
    scale: float,
    known: Coarse | None,
    changed: int,
) -> Coarse | None:
    """Codes of the prototypes, where there are enough places."""
    held = np.flatnonzero((np.diff(starts) > 0) & prototypes.any(axis=1))
    if not len(held):
        return None
    asked = made_up_queries(descriptors, starts, np.random.default_rng(0))
    return build_coarse(prototypes, held, asked, scale, known, changed)


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
    index: Index, origin: Rows, given: Mapping[str, NDArray[Any]], draft: Draft
) -> Column:
    """The rows of all photos: those that came behind the others, or all of them in order.

    origin: (N,) row of the index that each is now; from its length on, those given.  -> the
    descriptors.
    """
    before = index.manifest.part
    slots = _slots(index, origin)
    if slots is not None:
        write_array(draft.path / "slots.npy", slots)
    for name, column in index.columns.items():
        path = draft.path / f"{ROWS}{name}.npy"
        entry = index.manifest.files[f"{before}/{path.name}"]
        if slots is None:
            shape = (len(origin), column.shape[1])
            blocks = merged(column, given[name], origin)
            draft.known[path.name] = write_blocks(path, blocks, shape, column.dtype)
        else:
            _link(index.folder / before / path.name, path)
            came = origin[origin >= len(index)] - len(index)
            blocks = (given[name][came[at : at + BLOCK]] for at in range(0, len(came), BLOCK))
            draft.known[path.name] = append_blocks(path, entry, blocks, column.dtype)
    return Column(draft.path / f"{ROWS}descriptors.npy", slots, mapped=True)


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


def merged(column: Any, given: NDArray[Any], origin: Rows) -> Iterator[NDArray[Any]]:
    """Rows that were there and those that came, a block at a time.

    origin: (N,) rows of the column; from its length on, those given.
    """
    for start in range(0, len(origin), BLOCK):
        rows = origin[start : start + BLOCK]
        came = rows >= len(column)
        block = np.empty((len(rows), column.shape[1]), column.dtype)
        block[came] = given[rows[came] - len(column)]
        block[~came] = column[rows[~came]]
        yield block
