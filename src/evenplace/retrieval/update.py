"""Add, replace and remove photos of an index while others read it.

Every update writes the next generation: rows of the photos that came behind those that are there,
and all that is small; what follows from descriptors is computed anew where photos came or went.  A
cell nobody had photographed becomes a place at once, with the mean of its photos for prototype.

N photos · C places · D descriptor · W numbers a photo
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Floats, ranges, starts_of
from evenplace.errors import IndexFileError, PhotoError
from evenplace.photos.choose import first_of_each
from evenplace.photos.table import Photos, join_photos
from evenplace.places.new_places import open_places
from evenplace.places.table import Places
from evenplace.retrieval.array_files import Rows, widened
from evenplace.retrieval.codec import Descriptors
from evenplace.retrieval.index import Index, open_index
from evenplace.retrieval.index_writer import (
    BLOCK,
    by_place,
    check_units,
    grow_columns,
    merged,
    write_derived,
    write_layout,
    write_prototypes,
)
from evenplace.retrieval.manifest import Draft, writing
from evenplace.retrieval.prototypes import MEANS, PlaceMeans, fit_scale, mark_means
from evenplace.retrieval.spectrum import PolarSpectra


class Given(TypedDict, total=False):
    """What comes with descriptors, as `add_photos` takes it."""

    model: str
    extra: Mapping[str, NDArray[Any]] | None


def add_photos(
    folder: str | Path,
    descriptors: Any,
    photos: Photos,
    *,
    model: str = "foreign",
    extra: Mapping[str, NDArray[Any]] | None = None,
    known: bool = False,
) -> Index:
    """Add photos that the index does not have yet; known: `replace_photos`.

    descriptors: (N, D) unit, by the model that wrote the index.  extra: what else the index keeps
    of each photo, (N, W) by name.
    """
    with writing(Path(folder)) as draft:
        index = open_index(folder)
        given = _checked(index, descriptors, photos, model, extra or {})
        _write_next(draft, index, find_changed(index, photos.paths, known=known), photos, given)
    return open_index(folder)


def replace_photos(
    folder: str | Path, descriptors: Any, photos: Photos, **given: Unpack[Given]
) -> Index:
    """Put new descriptors and positions in the place of photos the index has, by their paths."""
    return add_photos(folder, descriptors, photos, known=True, **given)


def remove_photos(folder: str | Path, paths: Iterable[str]) -> Index:
    """Take photos out of the index, by their paths."""
    with writing(Path(folder)) as draft:
        index = open_index(folder)
        _write_next(draft, index, find_changed(index, list(paths), known=True))
    return open_index(folder)


def renew_prototypes(folder: str | Path, kind: str) -> Index:
    """Give the places other prototypes: means of their photos, or learned ones (`LEARNED`)."""
    with writing(Path(folder)) as draft:
        index = open_index(folder)
        _write_next(draft, index, np.empty(0, np.int64), kind=kind)
    return open_index(folder)


def half_done(folders: Iterable[Path], paths: list[str]) -> bool:
    """Whether a command that was stopped has changed one of two indexes, and is typed again.

    One of them holds all of these photos then, and the other none.
    """
    one, other = (open_index(folder).find(paths) >= 0 for folder in folders)
    return bool((one.all() and not other.any()) or (other.all() and not one.any()))


def find_changed(index: Index, paths: list[str], *, known: bool) -> Rows:
    """Rows that photos take the place of: of all of them where known, else there are none."""
    rows = index.find(paths)
    there = np.flatnonzero(rows >= 0)
    if len(there) and not known:
        raise PhotoError(
            f"{paths[there[0]]} is in the index already ({len(there)} such); "
            "replace it instead: --replace"
        )
    if known and (rows < 0).any():
        lost = paths[int(np.flatnonzero(rows < 0)[0])]
        raise PhotoError(f"{lost} is not in {index.folder} ({(rows < 0).sum()} such); check paths")
    return np.unique(rows[there])


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
    if "exact" in index.columns:
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
    if opened.fresh.any():  # which `_prototypes` gives means
        places = mark_means(places, opened.fresh | (places.extra.get(MEANS, 0 * places.home) == 1))
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
    draft: Draft,
    index: Index,
    gone: Rows,
    photos: Photos | None = None,
    given: Mapping[str, NDArray[Any]] | None = None,
    kind: str | None = None,
) -> None:
    """Write the generation without some photos and with others, and switch to it.

    kind: of all prototypes, where they are to be other ones.
    """
    change = _planned(index, gone, index.photos[:0] if photos is None else photos)
    manifest, target = index.manifest, draft.path
    nothing = {name: column[:0] for name, column in index.columns.items()}
    column = grow_columns(index, change.origin, given or nothing, draft)
    index.codec.write(target)
    descriptors = Descriptors(column, index.codec)
    blocks: Iterable[Floats]
    if kind is None:
        blocks = _prototypes(index, change, descriptors)
    else:
        prototypes, scale = _learned(kind, change, descriptors, target)
        manifest, blocks = replace(manifest, prototypes=kind, scale=scale), [prototypes]
        change = replace(change, places=mark_means(change.places, kind == MEANS))
    write_prototypes(draft, blocks, len(change.places), index.dim)
    write_layout(target, change.photos, change.places, change.starts)
    came = np.full((change.origin >= len(index)).sum(), np.nan, np.float32)
    terms = np.append(index.impostors, came)[change.origin]
    terms[ranges(change.starts[change.touched], change.starts[change.touched + 1])[0]] = np.nan
    _, tuning = write_derived(
        target, manifest.scale, descriptors, change.photos, change.starts,
        terms=terms, known=index.coarse if kind is None else None,
    )  # fmt: skip
    for name, spectra in index.kept_spectra.items():
        _renewed(index, change, spectra, descriptors).write(target, name)
    if index.levels is not None and kind is None:
        index.levels.renumbered(change.numbers, len(change.places)).write(target)
    draft.manifest = replace(manifest, tuning=tuning)


def _learned(
    kind: str, change: _Change, descriptors: Descriptors, folder: Path
) -> tuple[Floats, float]:
    """Prototypes of a kind, of all places, and the scale that goes with them."""
    from evenplace.retrieval.learned_prototypes import find_prototypes  # torch, in no box

    found = _summed(np.arange(len(change.places)), change.starts, descriptors, folder)
    prototypes, scale = find_prototypes(kind, descriptors, change.starts, found)
    return prototypes, scale or fit_scale(descriptors, change.starts, prototypes)


def _prototypes(index: Index, change: _Change, descriptors: Descriptors) -> Iterator[Floats]:
    """Prototypes of the places as they are now: of new places, and where all are, means."""
    before = len(index.prototypes)
    origin = np.full(len(change.places), -1)
    origin[change.numbers] = np.arange(before)
    renewed = origin < 0
    renewed[change.touched] |= index.manifest.prototypes == MEANS
    origin[renewed] = before + np.arange(renewed.sum())
    means = _summed(np.flatnonzero(renewed), change.starts, descriptors).directions()
    return merged(index.prototypes, means, origin)


def _summed(
    places: Rows, starts: Rows, descriptors: Descriptors, folder: Path | None = None
) -> PlaceMeans:
    """The descriptors of some places, added up; folder: as in `PlaceMeans`."""
    found = PlaceMeans(len(places), descriptors.shape[1], folder)
    for start in range(0, len(places), BLOCK):
        part = places[start : start + BLOCK]
        rows, of = ranges(starts[part], starts[part + 1])
        for at in range(0, len(rows), BLOCK):
            found.add(start + of[at : at + BLOCK], widened(descriptors[rows[at : at + BLOCK]]))
    return found


def _renewed(
    index: Index, change: _Change, spectra: PolarSpectra, descriptors: Descriptors
) -> PolarSpectra:
    """Characteristic functions of the places as they are now."""
    rows, _ = ranges(change.starts[change.touched], change.starts[change.touched + 1])
    sizes = np.diff(change.starts)[change.touched]
    fresh = PolarSpectra.measure(
        descriptors[rows], starts_of(sizes), spectra.points,
        spectra.median(index.sizes),
    )  # fmt: skip
    return spectra.patched(change.numbers, change.touched, fresh, len(change.places))
