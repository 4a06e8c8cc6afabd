"""Add, replace and remove photos of an index while others read it.

Every update writes the next generation: rows of the photos that came behind those that are there,
and all that is small; what follows from descriptors is computed anew where photos came or went.  A
cell nobody had photographed becomes a place at once, with the mean of its photos for prototype.

N photos · C places · D descriptor · W numbers a photo
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenplace.arrays import ranges
from evenplace.errors import IndexFileError, PhotoError
from evenplace.photos.choose import canonical, first_of_each
from evenplace.photos.table import Photos, join_photos
from evenplace.places.new_places import open_places
from evenplace.places.table import Places
from evenplace.retrieval.arrays import Column, append_blocks, write_array, write_blocks
from evenplace.retrieval.codec import Descriptors
from evenplace.retrieval.generation import BLOCK, by_place, check_units, write_codes, write_layout
from evenplace.retrieval.impostors import impostor_terms
from evenplace.retrieval.index import ROWS, Index, open_index
from evenplace.retrieval.manifest import FileEntry, entries, writing
from evenplace.retrieval.prototypes import PlaceMeans
from evenplace.retrieval.spectrum import PolarSpectra

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


def add_photos(
    folder: str | Path,
    descriptors: Any,
    photos: Photos,
    *,
    model: str = "foreign",
    extra: Mapping[str, NDArray[Any]] | None = None,
) -> Index:
    """Add photos that the index does not have yet.

    descriptors: (N, D) unit, by the model that wrote the index.  extra: what else the index keeps
    of each photo, (N, W) by name.
    """
    with writing(Path(folder)):
        index = open_index(folder)
        given = _checked(index, descriptors, photos, model, extra or {})
        known = np.flatnonzero(find_photos(index, photos.paths) >= 0)
        if len(known):
            raise PhotoError(
                f"{photos.paths[known[0]]} is in the index already ({len(known)} such); "
                "replace it instead"
            )
        _write_next(index, np.empty(0, np.int64), photos, given)
    return open_index(folder)


def replace_photos(
    folder: str | Path,
    descriptors: Any,
    photos: Photos,
    *,
    model: str = "foreign",
    extra: Mapping[str, NDArray[Any]] | None = None,
) -> Index:
    """Put new descriptors and positions in the place of photos the index has, by their paths."""
    with writing(Path(folder)):
        index = open_index(folder)
        given = _checked(index, descriptors, photos, model, extra or {})
        _write_next(index, _known(index, photos.paths), photos, given)
    return open_index(folder)


def remove_photos(folder: str | Path, paths: Iterable[str]) -> Index:
    """Take photos out of the index, by their paths."""
    with writing(Path(folder)):
        index = open_index(folder)
        nothing = {name: column[:0] for name, column in index.columns.items()}
        _write_next(index, _known(index, list(paths)), index.photos[:0], nothing)
    return open_index(folder)


def find_photos(index: Index, paths: list[str]) -> Rows:
    """Row of each path, -1 where there is none."""
    rows = np.full(len(paths), -1)
    if not paths:
        return rows
    if "path" not in index.photos.table.column_names:
        raise PhotoError(f"the photos of {index.folder} have no paths to find them by")
    known = index.photos.table.column("path")
    names = canonical(pa.chunked_array([*known.chunks, pa.array(paths, known.type)]))
    own, wanted = names.slice(0, len(index)), names.slice(len(index))
    found = np.asarray(pc.index_in(own, value_set=wanted).fill_null(-1))
    rows[found[found >= 0]] = np.flatnonzero(found >= 0)
    return rows


def half_done(folders: Iterable[Path], paths: list[str]) -> bool:
    """Whether a command that was stopped has changed one of two indexes, and is typed again.

    One of them holds all of these photos then, and the other none.
    """
    one, other = (find_photos(open_index(folder), paths) >= 0 for folder in folders)
    return bool((one.all() and not other.any()) or (other.all() and not one.any()))


def _known(index: Index, paths: list[str]) -> Rows:
    rows = find_photos(index, paths)
    if (rows < 0).any():
        lost = paths[int(np.flatnonzero(rows < 0)[0])]
        raise PhotoError(f"{lost} is not in {index.folder} ({(rows < 0).sum()} such); check paths")
    return np.unique(rows)


def _checked(
    index: Index, descriptors: Any, photos: Photos, model: str, extra: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """What is kept of each new photo, by name."""
    if model != index.model:
        raise IndexFileError(
            f"{index.folder} was written by model {index.model}, these descriptors by {model}; "
            "describe the photos with the index's model"
        )
    if len(first_of_each(photos)) < len(photos):
        raise PhotoError(f"a path occurs twice among the {len(photos)} photos; give each once")
    vectors = np.asarray(descriptors, np.float32)
    if vectors.shape != (len(photos), index.given):
        raise IndexFileError(
            f"descriptors have shape {vectors.shape}, the index takes {index.given} numbers for "
            f"each of the {len(photos)} photos"
        )
    check_units(vectors, np.arange(len(photos)))
    given = {"descriptors": index.codec.encode(index.codec.turn(vectors)), **extra}
    if index.codec.refines:
        given["exact"] = vectors
    if given.keys() != index.columns.keys():
        raise IndexFileError(
            f"{index.folder} keeps {', '.join(index.columns)} of each photo; "
            f"these come with {', '.join(given)}"
        )
    for name, column in index.columns.items():
        if given[name].shape != (len(photos), column.shape[1]):
            raise IndexFileError(
                f"{name} have shape {given[name].shape}, the index takes {column.shape[1]} "
                f"numbers for each of the {len(photos)} photos"
            )
    return given


@dataclass(frozen=True)
class _Change:
    """The order of the next generation, and where each of its photos comes from."""

    places: Places
    numbers: Rows  # (C before,) what each place is called now
    photos: Photos  # (N,)
    starts: Rows  # (C + 1,)
    origin: Rows  # (N,) row of the index before; from its length on, the photos that came
    touched: Rows  # places that photos came to or went from


def _planned(index: Index, gone: Rows, photos: Photos) -> _Change:
    opened = open_places(index.places, photos)
    places, numbers = opened.places, opened.numbers
    kept = np.delete(np.arange(len(index)), gone)
    before = np.append(numbers, -1)[index.labels]
    came = places.locate(photos) if len(photos) else np.empty(0, np.int64)
    order = by_place(np.concatenate([before[kept], came]), len(places))
    touched = np.union1d(before[gone], came)
    joined = join_photos([index.photos[kept], photos]) if len(photos) else index.photos[kept]
    return _Change(
        places=places,
        numbers=numbers,
        photos=joined[order.rows],
        starts=order.starts,
        origin=np.concatenate([kept, len(index) + np.arange(len(photos))])[order.rows],
        touched=touched[touched >= 0],
    )


def _write_next(
    index: Index, gone: Rows, photos: Photos, given: Mapping[str, NDArray[Any]]
) -> None:
    """Write the generation without some photos and with others, and switch to it."""
    change = _planned(index, gone, photos)
    manifest = replace(index.manifest, generation=index.manifest.generation + 1)
    target = index.folder / manifest.part
    target.mkdir()
    columns, known = _write_columns(index, change, given, target)
    index.codec.write(target)
    descriptors = Descriptors(columns["descriptors"], index.codec)
    write_layout(target, change.photos, change.places, change.starts)
    prototypes = _write_prototypes(index, change, descriptors, target)
    coarse, tuning = write_codes(target, descriptors, change.starts, prototypes, manifest.scale)
    impostors = np.append(index.impostors, np.zeros(len(photos), np.float32))[change.origin]
    loose = np.flatnonzero(change.origin >= len(index))
    loose = loose[loose >= change.starts[-1]]
    renewed = impostor_terms(
        descriptors, change.photos.points, change.starts, prototypes, coarse,
        change.touched, loose,
    )  # fmt: skip
    rows = np.append(_rows_of(change, change.touched), loose)
    impostors[rows] = np.concatenate([*renewed, np.empty(0, np.float32)])
    write_array(target / "impostors.npy", impostors)
    for name, spectra in index.kept_spectra.items():
        _renewed(index, change, spectra, descriptors).write(target, name)
    if index.levels is not None:
        index.levels.renumbered(change.numbers, len(change.places)).write(target)
    replace(manifest, tuning=tuning, files=entries(target, known)).write(index.folder)


def _write_columns(
    index: Index, change: _Change, given: Mapping[str, NDArray[Any]], target: Path
) -> tuple[dict[str, Column], dict[str, FileEntry]]:
    """The rows of all photos: those that came behind the others, or all of them in order.

    Also what each file hashes to.
    """
    before = index.manifest.part
    columns, known, slots = {}, {}, _slots(index, change)
    if slots is not None:
        write_array(target / "slots.npy", slots)
    for name, column in index.columns.items():
        path = target / f"{ROWS}{name}.npy"
        entry = index.manifest.files[f"{before}/{path.name}"]
        if slots is None:
            shape = (len(change.origin), column.shape[1])
            blocks = _merged(column, given[name], change.origin)
            known[path.name] = write_blocks(path, blocks, shape, column.dtype)
        else:
            _link(index.folder / before / path.name, path)
            came = change.origin[change.origin >= len(index)] - len(index)
            blocks = (given[name][came[at : at + BLOCK]] for at in range(0, len(came), BLOCK))
            known[path.name] = append_blocks(path, entry, blocks, column.dtype)
        columns[name] = Column(path, slots, mapped=True)
    return columns, known


def _slots(index: Index, change: _Change) -> Rows | None:
    """Which row is each photo's when those that came are written last; None: write all anew.

    That is when half of the rows would be of photos that went.
    """
    column, old = index.columns["descriptors"], change.origin < len(index)
    entry = index.manifest.files[f"{index.manifest.part}/{column.path.name}"]
    there = (entry.total - column.begins) // column.width
    if 2 * len(change.origin) < there + (~old).sum():
        return None
    slots = np.empty(len(old), np.int64)
    kept = change.origin[old]
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


def _write_prototypes(
    index: Index, change: _Change, descriptors: Descriptors, target: Path
) -> Floats:
    """Prototypes of the places as they are now: of new places, and where all are, means."""
    new = np.setdiff1d(np.arange(len(change.places)), change.numbers)
    means = index.manifest.prototypes == "means"
    renewed = np.union1d(change.touched, new) if means else new
    prototypes = np.zeros((len(change.places), index.dim), np.float32)
    prototypes[change.numbers] = index.prototypes
    found = PlaceMeans(len(renewed), index.dim)
    for start in range(0, len(renewed), BLOCK):
        part = renewed[start : start + BLOCK]
        rows, of = ranges(change.starts[part], change.starts[part + 1])
        for at in range(0, len(rows), BLOCK):
            vectors = descriptors[rows[at : at + BLOCK]].astype(np.float32)
            found.add(start + of[at : at + BLOCK], vectors)
    prototypes[renewed] = found.directions()
    write_array(target / "prototypes.npy", prototypes)
    return prototypes


def _renewed(
    index: Index, change: _Change, spectra: PolarSpectra, descriptors: Descriptors
) -> PolarSpectra:
    """Characteristic functions of the places as they are now."""
    rows = _rows_of(change, change.touched)
    sizes = np.diff(change.starts)[change.touched]
    fresh = PolarSpectra.measure(
        descriptors[rows], np.append(0, np.cumsum(sizes)), spectra.points,
        spectra.median(index.sizes),
    )  # fmt: skip
    return spectra.patched(change.numbers, change.touched, fresh, len(change.places))


def _rows_of(change: _Change, places: Rows) -> Rows:
    return ranges(change.starts[places], change.starts[places + 1])[0]
