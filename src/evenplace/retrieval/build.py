"""Photos, or anybody's descriptors → an index, written whole or not at all.

N photos · C places · D descriptor
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evenplace.describe.describer import Described, Describer, Progress
from evenplace.describe.parts import Parts
from evenplace.errors import IndexFileError
from evenplace.networks.classifiers import GroupClassifiers
from evenplace.networks.fingerprint import fingerprint
from evenplace.networks.network import PlaceNetwork
from evenplace.photos.files import sync
from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.retrieval.arrays import map_array, write_array, write_blocks, write_photos
from evenplace.retrieval.impostors import EXACT, impostor_similarity, impostors_at_scale
from evenplace.retrieval.layout import Index, open_index
from evenplace.retrieval.manifest import FileEntry, Manifest, entries, writing
from evenplace.retrieval.polar import COUNT, SEED, draw_points, write_spectra
from evenplace.retrieval.scale import fit_scale, photo_spread
from evenplace.retrieval.tuning import build_coarse, made_up_queries
from evenplace.training.cache import describe_cached

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
SCALE = 30.0
_BLOCK = 8192


def build_index(
    network: PlaceNetwork,
    photos: Photos,
    places: Places,
    out: str | Path,
    *,
    raw: bool = False,
    spectra: Sequence[str] = (),
    cache_folder: Path | None = None,
    progress: Progress | None = None,
) -> Index:
    """Describe the database with a trained network and lay it out for search.

    raw: score places by prototypes of their own length, as Divide&Classify does, instead of
    cosines.  spectra: characteristic functions to keep, for CFD.  cache_folder: where training
    kept the trunk's output; the photos it has need no second pass.
    """
    if cache_folder is None:
        described = Describer(network).describe(photos.paths, progress=progress)
    else:
        described = describe_cached(network, photos.paths, cache_folder, progress)
    return index_described(
        network, described.descriptors, photos_of(described, photos), places, Path(out),
        raw=raw, spectra=spectra,
    )  # fmt: skip


def index_described(
    network: PlaceNetwork,
    descriptors: Any,
    photos: Photos,
    places: Places,
    out: Path,
    *,
    raw: bool = False,
    spectra: Sequence[str] = (),
) -> Index:
    """Lay out what a network has described.

    Its prototypes find the places; one that knows no places, and only ranks, gets their means.
    descriptors, photos: as in `index_descriptors`.
    """
    prototypes = None
    if network.place_count:
        with torch.no_grad():
            prototypes = _prototypes(network, raw).cpu().numpy()
    return index_descriptors(
        descriptors,
        photos,
        places,
        out,
        prototypes=prototypes,
        model=fingerprint(network),
        scale=network.scale if network.place_count else None,
        spectra=spectra,
    )


def photos_of(described: Described | Parts, photos: Photos) -> Photos:
    """The photos that were described, and why the others were not."""
    return Photos(photos[described.rows].table, photos.skipped + described.skipped)


def index_descriptors(
    descriptors: Any,
    photos: Photos,
    places: Places,
    out: str | Path,
    *,
    prototypes: Floats | None = None,
    model: str = "foreign",
    scale: float | None = None,
    spectra: Sequence[str] = (),
) -> Index:
    """Lay out descriptors from anywhere; without prototypes a place's is its photos' mean.

    descriptors: (N, D) unit, in the order of the photos: an array, a memory map, or what
    `read_descriptors` opens; rows are read as they are needed.  scale: makes logits of the
    scores; without prototypes it is fitted to the photos (`fit_scale`).
    """
    _check_shape(descriptors, photos)
    folder = Path(out)
    with writing(folder):
        bulk = Bulk(
            lambda rows: np.array(descriptors[rows]),
            int(descriptors.shape[1]),
            photos,
            places,
            places.locate(photos),
            prototypes,
        )
        fresh = Manifest(
            next_generation(folder),
            model,
            SCALE if scale is None and prototypes is not None else scale or 0.0,
            "means" if prototypes is None else "classifier",
            "",
            spectra=tuple(spectra),
        )
        write_bulk(folder, bulk, fresh)
    return open_index(folder)


def next_generation(folder: Path) -> int:
    try:
        return Manifest.read(folder).generation + 1
    except IndexFileError:
        return 1


@dataclass(frozen=True)
class Bulk:
    """What a bulk is written from; rows are photos in any order."""

    read: Callable[[Any], NDArray[Any]]  # rows -> (rows, D)
    dim: int
    photos: Photos
    places: Places
    labels: Rows  # (N,)
    prototypes: Floats | None


def write_bulk(folder: Path, bulk: Bulk, manifest: Manifest) -> None:
    """Write a generation without updates and switch to it.  A scale of 0 is fitted."""
    part = f"base-{manifest.generation:06d}"
    target = folder / part
    target.mkdir()
    numbered = np.where(bulk.labels < 0, len(bulk.places), bulk.labels)
    order = np.argsort(numbered, kind="stable")
    starts = np.searchsorted(numbered[order], np.arange(len(bulk.places) + 1)).astype(np.int64)
    prototypes, entry = _write_descriptors(target, bulk, order, numbered[order])
    photos = bulk.photos[order]
    write_photos(target / "photos.arrow", photos)
    write_array(target / "starts.npy", starts)
    write_array(target / "prototypes.npy", prototypes)
    replace(bulk.places, labels=np.empty(0, np.int64)).write(target / "places.parquet")
    with ThreadPoolExecutor(1) as disk:
        settled = disk.submit(sync, target / "descriptors.npy")
        scale, tuning = _write_derived(target, manifest, photos, starts, prototypes)
        settled.result()
    replace(
        manifest,
        base=part,
        delta=None,
        scale=scale,
        tuning=tuning,
        files=entries(folder, part, {"descriptors.npy": entry}),
    ).write(folder)


def _write_descriptors(
    target: Path, bulk: Bulk, order: Rows, sorted_labels: Rows
) -> tuple[Floats, FileEntry]:
    """Write the descriptors in the order of the places; the prototypes, given or averaged."""
    sums = np.zeros((len(bulk.places) + 1, bulk.dim), np.float32)

    def blocks() -> Iterator[NDArray[Any]]:
        for start, read in _read_ahead(bulk, order):
            rows, given = order[start : start + _BLOCK], torch.from_numpy(read)
            block = given.float().numpy()
            check_units(block, rows)
            if bulk.prototypes is None:
                _add_up(sums, sorted_labels[start : start + _BLOCK], block)
            yield given.half().numpy()

    shape = (len(order), bulk.dim)
    entry = write_blocks(target / "descriptors.npy", blocks(), shape, np.float16)
    if bulk.prototypes is not None:
        return np.asarray(bulk.prototypes, np.float32), entry
    means = torch.nn.functional.normalize(torch.from_numpy(sums[:-1]), dim=1, eps=1e-12)
    return means.numpy(), entry


def _read_ahead(bulk: Bulk, order: Rows) -> Iterator[tuple[int, NDArray[Any]]]:
    """Where each block begins and what it holds; the next is read while one is worked on."""
    with ThreadPoolExecutor(1) as reader:
        coming: list[tuple[int, Future[NDArray[Any]]]] = []
        for start in range(0, len(order), _BLOCK):
            rows = _as_slice(order[start : start + _BLOCK])
            coming.append((start, reader.submit(bulk.read, rows)))
            if len(coming) == 2:
                begun, block = coming.pop(0)
                yield begun, block.result()
        for begun, block in coming:
            yield begun, block.result()


def _add_up(sums: Floats, labels: Rows, rows: Floats) -> None:
    """Add rows to the sums of their places.  labels: (rows,) ascending."""
    first = np.flatnonzero(np.diff(labels, prepend=-1))
    sums[labels[first]] += np.add.reduceat(rows, first, axis=0)


def _write_derived(
    target: Path, manifest: Manifest, photos: Photos, starts: Rows, prototypes: Floats
) -> tuple[float, dict[str, Any]]:
    """What follows from the descriptors: scale, codes, impostors, spectra."""
    descriptors = map_array(target / "descriptors.npy")
    held = np.flatnonzero((np.diff(starts) > 0) & prototypes.any(axis=1))
    scale = manifest.scale or fit_scale(descriptors, starts, prototypes)
    coarse = None
    if len(held):
        asked = made_up_queries(descriptors, starts, np.random.default_rng(0))
        coarse = build_coarse(prototypes, held, asked, scale)
    tuning = coarse.write(target) if coarse is not None else {}
    positions = photos.positions
    if len(descriptors) <= EXACT or not len(held):
        impostors = iter([impostor_similarity(descriptors[:EXACT], positions[:EXACT])])
    else:
        impostors = impostors_at_scale(descriptors, positions, starts, prototypes, coarse)
    write_blocks(target / "impostors.npy", impostors, (len(descriptors),), np.float32)
    for name in manifest.spectra:
        points = draw_points(
            name,
            prototypes.shape[1],
            count=COUNT,
            seed=SEED,
            spread=photo_spread(descriptors, starts),
        )
        write_spectra(target, name, descriptors, starts, points)
    return scale, tuning


def mean_prototypes(descriptors: Floats, labels: Rows, count: int) -> Floats:
    """The direction of each place's mean descriptor; zero where it has no photo.  -> (C, D)."""
    sums = np.zeros((count, descriptors.shape[1]), np.float32)
    np.add.at(sums, labels[labels >= 0], descriptors[labels >= 0])
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    means: Floats = sums / np.maximum(lengths, 1e-12)
    return means


def check_units(block: Floats, rows: Rows) -> None:
    """Refuse descriptors that are not finite and of unit length."""
    norms = np.sqrt(np.vecdot(block, block))
    bad = np.flatnonzero(~(np.abs(norms - 1) < 1e-2))
    if len(bad):
        raise IndexFileError(
            f"descriptor {rows[bad[0]]} has length {norms[bad[0]]:.3g} "
            f"({len(bad)} like it); descriptors must be finite and of unit length"
        )


def _check_shape(descriptors: Any, photos: Photos) -> None:
    shape = tuple(descriptors.shape)
    if len(shape) != 2 or shape[0] != len(photos):
        raise IndexFileError(
            f"descriptors have shape {shape}, but there are {len(photos)} photos; "
            "give one row a photo"
        )


def _as_slice(rows: Rows) -> Any:
    """Rows that follow each other as a slice, which files read in one go."""
    return slice(rows[0], rows[-1] + 1) if (np.diff(rows) == 1).all() else rows


def _prototypes(network: PlaceNetwork, raw: bool) -> torch.Tensor:
    if raw and isinstance(network.classifiers, GroupClassifiers):
        return network.classifiers.joint(raw=True)
    return network.classifiers.joint()
