"""Add, replace and remove photos of an index while others read it.

Every update writes the next generation: the rows of the photos that came, and all that is small
or follows from the change; everything else is the file that an earlier generation wrote.  A cell
nobody had photographed becomes a place at once, with the mean of its photos for prototype.

N photos · C places · D descriptor · W numbers a photo
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenplace.errors import IndexFileError, PhotoError
from evenplace.photos.same_files import canonical, first_of_each
from evenplace.photos.table import Photos, join_photos
from evenplace.places.opened import open_places
from evenplace.places.table import Places
from evenplace.retrieval.arrays import write_array, write_blocks
from evenplace.retrieval.codec import Descriptors
from evenplace.retrieval.column import Column, ranges
from evenplace.retrieval.generation import BLOCK, by_place, check_units, write_codes, write_layout
from evenplace.retrieval.impostors import impostor_terms
from evenplace.retrieval.index import ROWS, Index, codec_files, open_index
from evenplace.retrieval.levels import CLASSES, STARTS
from evenplace.retrieval.manifest import entries, writing
from evenplace.retrieval.means import PlaceMeans
from evenplace.retrieval.stored_spectra import PolarSpectra

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
    target = index.folder / f"{manifest.generation:06d}"
    target.mkdir()
    columns, shared = _write_columns(index, change, given, target)
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
        index.levels.renumbered(change.numbers, len(change.places)).write_parents(target)
        shared += [*index.manifest.named(CLASSES), *index.manifest.named(STARTS)]
    files = {path: index.manifest.files[path] for path in [*shared, *codec_files(index.manifest)]}
    replace(manifest, tuning=tuning, files=files | entries(index.folder, target.name)).write(
        index.folder
    )


def _write_columns(
    index: Index, change: _Change, given: Mapping[str, NDArray[Any]], target: Path
) -> tuple[dict[str, Column], list[str]]:
    """Write the rows of photos that came; the columns, and which older files they share.

    Some older rows are written with them; see `_staying`.
    """
    first = index.columns["descriptors"]
    lengths, ends = first.lengths, first.ends
    old = change.origin < len(index)
    slots = np.full(len(old), -1)
    slots[old] = first.slots[change.origin[old]]
    segment = np.searchsorted(ends, slots, "right")  # of those that came, any
    live = np.bincount(segment[old], minlength=len(lengths))
    stays = _staying(live, lengths, int((~old).sum()))
    fresh = ~old | ~stays[segment]
    kept = np.where(stays, lengths, 0)
    slots += (np.cumsum(kept) - kept - (ends - lengths))[segment]
    slots[fresh] = kept.sum() + np.arange(fresh.sum())
    in_order = not stays.any()
    if not in_order:
        write_array(target / "slots.npy", slots)
    columns, shared = {}, []
    for name, column in index.columns.items():
        paths = index.manifest.named(f"{ROWS}{name}.npy")
        paths = [path for path, stay in zip(paths, stays, strict=True) if stay]
        files = [index.folder / path for path in paths]
        if fresh.any() or in_order:
            files.append(target / f"{ROWS}{name}.npy")
            blocks = _merged(column, given[name], change.origin[fresh])
            shape = (int(fresh.sum()), column.shape[1])
            write_blocks(files[-1], blocks, shape, column.dtype)
        columns[name] = Column(files, None if in_order else slots)
        shared += paths
    return columns, shared


def _staying(live: Rows, lengths: Rows, came: int) -> NDArray[np.bool_]:
    """Which segments are kept as they are; the rest is written into the new one.

    A segment of which half is gone is not, so what is gone takes no more room than what is there;
    nor is one less than twice as long as the new one, so each segment is less than half as long
    as the one before it, and there are few.  live: (segments,) rows still there.
    """
    stays = 2 * live > lengths
    fresh = came + int(live[~stays].sum())
    for segment in np.argsort(live):
        if stays[segment] and live[segment] <= 2 * fresh:
            stays[segment] = False
            fresh += int(live[segment])
    return stays


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
