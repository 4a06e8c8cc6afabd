"""Write a generation of an index: all that follows from photos, their rows and their places.

N photos · C places · D descriptor · W numbers a photo
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from evenplace.errors import IndexFileError
from evenplace.photos.files import sync
from evenplace.photos.same_files import first_of_each
from evenplace.photos.table import Photos, Skipped
from evenplace.places.table import Places
from evenplace.retrieval.arrays import Column, map_array, write_array, write_blocks, write_photos
from evenplace.retrieval.coarse import Coarse
from evenplace.retrieval.codec import SAMPLE, Codec, Descriptors, codec_for, fit_codec, measure_loss
from evenplace.retrieval.impostors import impostor_terms
from evenplace.retrieval.index import ROWS
from evenplace.retrieval.levels import Levels
from evenplace.retrieval.manifest import FileEntry, Manifest, entries
from evenplace.retrieval.prototypes import PlaceMeans, fill_means, fit_scale, photo_spread
from evenplace.retrieval.row_products import widened
from evenplace.retrieval.shortlist_effort import build_coarse, made_up_queries
from evenplace.retrieval.spectrum import draw_frequencies, write_spectra

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
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


def write_first(
    folder: Path,
    manifest: Manifest,
    columns: Mapping[str, Any],
    photos: Photos,
    places: Places,
    prototypes: Floats | None,
    levels: Levels | None = None,
    keep: str | int | None = None,
) -> None:
    """Write a generation from scratch and switch to it.

    columns: what is kept of each photo, `descriptors` among them: arrays (N, W) or blocks of rows
    in the order of the photos.  prototypes: of the places, else, or where they are nan, their
    photos' mean directions.  A scale of 0 is fitted.  keep: how descriptors are kept: a codec's
    name, or bytes a photo.
    """
    target = folder / manifest.part
    target.mkdir()
    photos, order = _once(photos, places)
    known, codec, loss = {}, Codec(), {}
    for name, given in columns.items():
        with arrived(given, len(photos), target) as values:
            if name != "descriptors":
                known[f"{ROWS}{name}.npy"] = write_rows(target, name, values, order)
                continue
            codec = _fitted(keep, values)
            codec.write(target)
            means, known[f"{ROWS}{name}.npy"] = write_descriptors(target, values, order, codec)
            if codec.refines:
                write_rows(target, "exact", values, order, np.float16)
            if codec.name != "float16":
                loss = measure_loss(codec, values, order, places.tiers)
            if prototypes is not None and codec.axes is not None:  # it keeps its own length
                prototypes = np.asarray(prototypes, np.float32) @ codec.axes
            prototypes = fill_means(prototypes, means.directions())
            del means
    assert prototypes is not None
    ordered = Photos(photos[order.rows].table, photos.skipped)
    write_array(target / "prototypes.npy", prototypes)
    prototypes = np.asarray(map_array(target / "prototypes.npy"))  # memory for what follows
    if levels is not None:
        if codec.axes is not None:
            raise IndexFileError(
                f"{codec.name} turns descriptors, and classes of several levels score these places "
                "as they were trained; keep int8 or float16"
            )
        levels.write(target)
    write_layout(target, ordered, places, order.starts)
    with ThreadPoolExecutor(1) as disk:
        settled = disk.submit(sync, target / f"{ROWS}descriptors.npy")
        kept = Descriptors(Column(target / f"{ROWS}descriptors.npy", mapped=True), codec)
        scale, tuning = _write_derived(target, manifest, kept, ordered, order.starts, prototypes)
        settled.result()
    files = entries(target, known)
    replace(manifest, scale=scale, tuning=tuning, files=files, codec=codec.name, loss=loss).write(
        folder
    )


def _once(photos: Photos, places: Places) -> tuple[Photos, Order]:
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
    means = PlaceMeans(len(order.starts) - 1, nothing.shape[1])

    code = codec.encode(nothing)

    def blocks() -> Iterator[NDArray[Any]]:
        for start, block in _read_ahead(values, order.rows):
            whole = widened(block)
            check_units(whole, order.rows[start : start + BLOCK])
            turned = codec.turn(whole)
            means.add(order.labels[start : start + BLOCK], turned)
            yield block if block.dtype == code.dtype == np.float16 else codec.encode(turned)

    shape = (len(order.rows), code.shape[1])
    return means, write_blocks(target / f"{ROWS}descriptors.npy", blocks(), shape, code.dtype)


def write_rows(
    target: Path, name: str, values: Any, order: Order, kind: DTypeLike | None = None
) -> FileEntry:
    """Write what else is kept of each photo, place by place."""
    blocks = (block for _, block in _read_ahead(values, order.rows))
    shape = (len(order.rows), int(values.shape[1]))
    return write_blocks(target / f"{ROWS}{name}.npy", blocks, shape, kind or values.dtype)


def _fitted(keep: str | int | None, values: Any) -> Codec:
    """The codec that was asked for, fitted to photos evenly chosen."""
    count, dim = values.shape
    name = codec_for(dim, keep, count) if isinstance(keep, int) else keep or "float16"
    if name == "float16":
        return Codec()
    rows = np.unique(np.linspace(0, count - 1, min(count, SAMPLE)).astype(np.int64))
    generator = np.random.default_rng(0)
    return fit_codec(name, generator.permutation(np.asarray(values[rows], np.float32)))


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


class arrived:  # noqa: N801  a context manager reads like a verb
    """Rows as an array: what comes in blocks is put into a file first, and taken away after."""

    def __init__(self, given: Any, count: int, folder: Path) -> None:
        self._given, self._count, self._path = given, count, folder / "arriving.npy"

    def __enter__(self) -> Any:
        values = self._given
        if not hasattr(values, "shape"):
            values = self._spooled(iter(values))
        if len(values.shape) != 2 or values.shape[0] != self._count:
            raise IndexFileError(
                f"descriptors have shape {tuple(values.shape)}, but there are {self._count} "
                "photos; give one row a photo"
            )
        return values

    def __exit__(self, *_: object) -> None:
        self._path.unlink(missing_ok=True)

    def _spooled(self, blocks: Iterator[NDArray[Any]]) -> NDArray[Any]:
        first = np.asarray(next(blocks, np.empty((0, 1), np.float32)))
        rest: Iterable[NDArray[Any]] = (np.asarray(block) for block in blocks)

        def every() -> Iterator[NDArray[Any]]:
            yield first
            yield from rest

        write_blocks(self._path, every(), (self._count, first.shape[1]), first.dtype)
        return map_array(self._path)


def _write_derived(
    target: Path,
    manifest: Manifest,
    descriptors: Descriptors,
    photos: Photos,
    starts: Rows,
    prototypes: Floats,
) -> tuple[float, dict[str, Any]]:
    """What follows from the descriptors: scale, codes, impostors, spectra."""
    scale = manifest.scale or fit_scale(descriptors, starts, prototypes)
    coarse, tuning = write_codes(target, descriptors, starts, prototypes, scale)
    every, loose = np.arange(len(prototypes)), np.arange(starts[-1], len(photos))
    impostors = impostor_terms(descriptors, photos.points, starts, prototypes, coarse, every, loose)
    write_blocks(target / "impostors.npy", impostors, (len(photos),), np.float32)
    for name in manifest.spectra:
        spread = photo_spread(descriptors, starts)
        points = draw_frequencies(name, prototypes.shape[1], spread=spread)
        write_spectra(target, name, descriptors, starts, points)
    return scale, tuning


def write_codes(
    target: Path, descriptors: Any, starts: Rows, prototypes: Floats, scale: float
) -> tuple[Coarse | None, dict[str, Any]]:
    """Codes of the prototypes, where there are enough places, and what was measured of them."""
    held = np.flatnonzero((np.diff(starts) > 0) & prototypes.any(axis=1))
    if not len(held):
        return None, {}
    asked = made_up_queries(descriptors, starts, np.random.default_rng(0))
    coarse = build_coarse(prototypes, held, asked, scale)
    return coarse, coarse.write(target) if coarse is not None else {}


def check_units(block: Floats, rows: Rows) -> None:
    """Refuse descriptors that are not finite and of unit length."""
    norms = np.sqrt(np.vecdot(block, block))
    bad = np.flatnonzero(~(np.abs(norms - 1) < 1e-2))
    if len(bad):
        raise IndexFileError(
            f"descriptor {rows[bad[0]]} has length {norms[bad[0]]:.3g} "
            f"({len(bad)} like it); descriptors must be finite and of unit length"
        )
