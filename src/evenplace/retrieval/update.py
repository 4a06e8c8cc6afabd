"""Add, replace and remove photos of an index while others read it; fold the changes in at leisure.

Every update writes one small folder with all that changed since the bulk, and switches to it.
A cell nobody had photographed becomes a place at once, with the mean of its photos for prototype.

N photos · C places · D descriptor
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenplace.errors import IndexFileError, PhotoError
from evenplace.photos.table import Photos, join_photos
from evenplace.places.opened import open_places
from evenplace.places.table import Places
from evenplace.retrieval.arrays import write_array, write_photos
from evenplace.retrieval.build import Bulk, check_units, mean_prototypes, write_bulk
from evenplace.retrieval.impostors import impostors_of
from evenplace.retrieval.layout import Index, open_index
from evenplace.retrieval.manifest import entries, writing
from evenplace.retrieval.segment import Delta, Segment

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


def add_photos(
    folder: str | Path, descriptors: Any, photos: Photos, *, model: str = "foreign"
) -> Index:
    """Add photos that the index does not have yet.

    descriptors: (N, D) unit, by the model that wrote the index.
    """
    return _update(Path(folder), descriptors, photos, (), model, known=False)


def replace_photos(
    folder: str | Path, descriptors: Any, photos: Photos, *, model: str = "foreign"
) -> Index:
    """Put new descriptors and positions in the place of photos the index has, by their paths."""
    return _update(Path(folder), descriptors, photos, photos.paths, model, known=True)


def remove_photos(folder: str | Path, paths: Iterable[str]) -> Index:
    """Take photos out of the index, by their paths."""
    with writing(Path(folder)):
        index = open_index(folder)
        _write_delta(index, _changed(index, None, None, _find(index, list(paths))))
    return open_index(folder)


def compact_index(folder: str | Path) -> Index:
    """Fold all updates into a new bulk: what building the index from scratch would give."""
    folder = Path(folder)
    with writing(folder):
        index = open_index(folder)
        means = index.manifest.prototypes == "means"
        bulk = Bulk(
            lambda rows: index.vectors(np.arange(len(index))[rows]),
            index.dim,
            index.photos,
            index.places,
            index.labels,
            None if means else np.array(index.prototypes),
        )
        write_bulk(folder, bulk, replace(index.manifest, generation=index.manifest.generation + 1))
    return open_index(folder)


def _update(
    folder: Path, descriptors: Any, photos: Photos, gone: Sequence[str], model: str, *, known: bool
) -> Index:
    with writing(folder):
        index = open_index(folder)
        vectors = _checked(index, descriptors, photos, model)
        if not known:
            _refuse_known(index, photos.paths)
        _write_delta(index, _changed(index, vectors, photos, _find(index, list(gone))))
    return open_index(folder)


def _checked(index: Index, descriptors: Any, photos: Photos, model: str) -> NDArray[np.float16]:
    if model != index.model:
        raise IndexFileError(
            f"{index.folder} was written by model {index.model}, these descriptors by {model}; "
            "describe the photos with the index's model"
        )
    vectors = np.asarray(descriptors, np.float32)
    if vectors.shape != (len(photos), index.dim):
        raise IndexFileError(
            f"descriptors have shape {vectors.shape}, the index takes {index.dim} numbers "
            f"for each of the {len(photos)} photos"
        )
    paths = photos.paths
    if len(set(paths)) < len(paths):
        raise PhotoError(f"a path occurs twice among the {len(paths)} photos; give each once")
    check_units(vectors, np.arange(len(vectors)))
    return vectors.astype(np.float16)


def _refuse_known(index: Index, paths: list[str]) -> None:
    found = np.flatnonzero(_lookup(index, paths) >= 0)
    if len(found):
        raise PhotoError(
            f"{paths[found[0]]} is in the index already ({len(found)} such); replace it instead"
        )


def _find(index: Index, paths: list[str]) -> Rows:
    """Rows of photos by path, refusing unknown ones."""
    rows = _lookup(index, paths)
    if (rows < 0).any():
        lost = paths[int(np.flatnonzero(rows < 0)[0])]
        raise PhotoError(f"{lost} is not in {index.folder} ({(rows < 0).sum()} such); check paths")
    return np.unique(rows)


def _lookup(index: Index, paths: list[str]) -> Rows:
    """Row of each path, -1 where there is none."""
    if not paths:
        return np.empty(0, np.int64)
    wanted = pa.array(paths, pa.large_string())
    rows = np.full(len(paths), -1)
    parts = [(index.base, index.live, 0)]
    if index.delta is not None:
        added = index.delta.added
        parts.append((added, np.arange(len(added)), len(index.live)))
    for segment, live, first in parts:
        if "path" not in segment.photos.table.column_names:
            raise PhotoError(f"the photos of {index.folder} have no paths to find them by")
        column = segment.photos.table.column("path")
        at = np.asarray(pc.index_in(column, value_set=wanted).fill_null(-1))
        hit = np.flatnonzero(at >= 0)
        hit = hit[np.isin(hit, live)]
        rows[at[hit]] = first + np.searchsorted(live, hit)
    return rows


def _changed(
    index: Index, vectors: NDArray[np.float16] | None, photos: Photos | None, gone: Rows
) -> Index:
    """The index as it will be: some rows gone, some photos more."""
    kept = len(index.live)
    removed = np.setdiff1d(np.arange(len(index.base)), index.live)
    removed = np.union1d(removed, index.live[gone[gone < kept]])
    halves, old = _still_added(index, gone[gone >= kept] - kept)
    if vectors is not None and photos is not None:
        halves = np.concatenate([halves, vectors])
        old = join_photos([old, photos]) if len(old) else photos
    places, numbers = _grown(index, old)
    labels = places.locate(old) if len(old) else np.empty(0, np.int64)
    order = np.argsort(np.where(labels < 0, len(places), labels), kind="stable")
    ranked = np.where(labels < 0, len(places), labels)[order]
    starts = np.searchsorted(ranked, np.arange(len(places) + 1)).astype(np.int64)
    added = Segment(halves[order], starts, np.zeros(len(halves), np.float32), old[order])
    nothing = np.empty(0, np.int64), np.empty((0, index.dim), np.float32)
    return replace(index, places=places, delta=Delta(added, removed, numbers, *nothing))


def _still_added(index: Index, gone: Rows) -> tuple[NDArray[np.float16], Photos]:
    if index.delta is None:
        return np.empty((0, index.dim), np.float16), index.base.photos[:0]
    keep = np.setdiff1d(np.arange(len(index.delta.added)), gone)
    return np.array(index.delta.added.descriptors[keep]), index.delta.added.photos[keep]


def _grown(index: Index, photos: Photos) -> tuple[Places, Rows]:
    """All places with the cells that photos outside every place open, and the bulk's numbers."""
    if not len(photos):
        return index.places, index.numbers
    opened = open_places(index.places, photos)
    return opened.places, opened.numbers[index.numbers]


def _write_delta(before: Index, after: Index) -> None:
    """Complete what changed with prototypes and impostors, write it, and switch."""
    delta = after.delta
    if delta is None:
        raise IndexFileError(f"{after.folder} has nothing to update; give photos")
    known = np.isin(np.arange(len(after.places)), after.numbers)
    touched = after.changed if after.manifest.prototypes == "means" else np.flatnonzero(~known)
    rows, of = after.rows_of(touched)
    prototypes = mean_prototypes(after.vectors(rows), of, len(touched))
    impostors = impostors_of(delta.added.descriptors, delta.added.photos.positions, before)
    generation = after.manifest.generation + 1
    part = f"delta-{generation:06d}"
    target = after.folder / part
    target.mkdir()
    arrays: dict[str, NDArray[Any]] = {
        "descriptors": delta.added.descriptors,
        "starts": delta.added.starts,
        "impostors": impostors,
        "removed": delta.removed,
        "numbers": delta.numbers,
        "touched": touched,
        "prototypes": prototypes,
    }
    for name, array in arrays.items():
        write_array(target / f"{name}.npy", array)
    write_photos(target / "photos.arrow", delta.added.photos)
    replace(after.places, labels=np.empty(0, np.int64)).write(target / "places.parquet")
    files = after.manifest.under(after.manifest.base) | entries(after.folder, part)
    replace(after.manifest, generation=generation, delta=part, files=files).write(after.folder)
