"""Photos, or anybody's descriptors → an index, written whole or not at all.

N photos · C places · D descriptor
"""

import hashlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evenplace.errors import IndexFileError
from evenplace.index.impostors import impostor_similarity
from evenplace.index.layout import Index, open_index, write_manifest
from evenplace.models.describe import Described, Progress, describe_photos
from evenplace.models.network import PlaceNetwork
from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.training.cache import ViewSettings, cache_trunk


def build_index(
    network: PlaceNetwork,
    photos: Photos,
    places: Places,
    out: str | Path,
    *,
    cache_folder: Path | None = None,
    progress: Progress | None = None,
) -> Index:
    """Describe the database with a trained network and lay it out for search.

    cache_folder: where training kept the trunk's output; the photos it has need no second pass.
    """
    described = _describe(network, photos.paths, cache_folder, progress)
    readable = photos[described.rows]
    kept = Photos(readable.table, photos.skipped + described.skipped)
    with torch.no_grad():
        prototypes = network.classifiers.joint().numpy()
    return index_descriptors(
        described.descriptors,
        kept,
        places,
        out,
        prototypes=prototypes,
        model=fingerprint(network),
        scale=network.scale,
    )


def index_descriptors(
    descriptors: NDArray[np.float32],
    photos: Photos,
    places: Places,
    out: str | Path,
    *,
    prototypes: NDArray[np.float32] | None = None,
    model: str = "foreign",
    scale: float = 30.0,
) -> Index:
    """Lay out descriptors from anywhere; without prototypes a place's is its photos' mean.

    descriptors: (N, D) unit, in the order of the photos.
    """
    _check(descriptors, photos)
    labels = places.locate(photos)  # (N,)
    order = np.lexsort((np.arange(len(labels)), np.where(labels < 0, len(places), labels)))
    descriptors, photos, labels = descriptors[order], photos[order], labels[order]
    if prototypes is None:
        prototypes = mean_prototypes(descriptors, labels, len(places))
    starts = np.searchsorted(np.where(labels < 0, len(places), labels), np.arange(len(places) + 1))
    arrays: dict[str, NDArray[Any]] = {
        "descriptors": descriptors.astype(np.float16),
        "starts": starts.astype(np.int64),
        "prototypes": prototypes.astype(np.float32),
        "impostors": impostor_similarity(descriptors, photos.positions),
    }
    return _write(Path(out), arrays, photos, places, model, scale)


def mean_prototypes(
    descriptors: NDArray[np.float32], labels: NDArray[np.int64], count: int
) -> NDArray[np.float32]:
    """The direction of each place's mean descriptor; zero where it has no photo.  -> (C, D)."""
    sums = np.zeros((count, descriptors.shape[1]), np.float32)
    np.add.at(sums, labels[labels >= 0], descriptors[labels >= 0])
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    means: NDArray[np.float32] = sums / np.maximum(lengths, 1e-12)
    return means


def fingerprint(network: PlaceNetwork) -> str:
    """A short digest of all weights: an index answers only the model that wrote it."""
    digest = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def _describe(
    network: PlaceNetwork, paths: list[str], cache_folder: Path | None, progress: Progress | None
) -> Described:
    if cache_folder is None:
        return describe_photos(network, paths, progress=progress)
    cache = cache_trunk(network, paths, ViewSettings(), cache_folder, progress)
    rows = np.flatnonzero(cache.readable)
    with torch.inference_mode():
        parts = [network.eval().describe(cache.plain(part)).numpy() for part in _chunks(rows)]
    return Described(np.concatenate(parts), rows, cache.skipped)


def _chunks(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return np.array_split(rows, max(1, len(rows) // 64))


def _check(descriptors: NDArray[np.float32], photos: Photos) -> None:
    if descriptors.ndim != 2 or len(descriptors) != len(photos):
        raise IndexFileError(
            f"descriptors have shape {descriptors.shape}, but there are {len(photos)} photos; "
            "give one row a photo"
        )
    norms = np.linalg.norm(descriptors, axis=1)
    bad = np.flatnonzero(~(np.abs(norms - 1) < 1e-2))
    if len(bad):
        raise IndexFileError(
            f"descriptor {bad[0]} has length {norms[bad[0]]:.3g} ({len(bad)} like it); "
            "descriptors must be finite and of unit length"
        )


def _write(
    out: Path,
    arrays: dict[str, NDArray[Any]],
    photos: Photos,
    places: Places,
    model: str,
    scale: float,
) -> Index:
    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        for name, array in arrays.items():
            np.save(partial / f"{name}.npy", array)
        photos.write(partial / "photos.parquet")
        places.write(partial / "places.parquet")
        write_manifest(partial, model, scale)
        shutil.rmtree(out, ignore_errors=True)
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return open_index(out)
