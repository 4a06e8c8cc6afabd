"""Queries → descriptors, through the trunk's cache where several systems share a trunk."""

from pathlib import Path

import numpy as np
import torch

from evenplace.describe.describer import Described, Progress, describe_photos
from evenplace.describe.paired import Describing
from evenplace.networks.network import PlaceNetwork
from evenplace.training.cache import ViewSettings, cache_trunk

_CHUNK = 64


def describe_queries(
    network: Describing,
    paths: list[str],
    cache_folder: Path | None = None,
    progress: Progress | None = None,
) -> Described:
    """Describe photos, running the frozen trunk only over those the cache does not have.

    A pair of networks has no trunk in common, and no cache.
    """
    if cache_folder is None or not isinstance(network, PlaceNetwork):
        return describe_photos(network, paths, progress=progress)
    cache = cache_trunk(network, paths, ViewSettings(), cache_folder, progress)
    rows = np.flatnonzero(cache.readable)
    network.eval()
    with torch.inference_mode():
        parts = [
            network.describe(cache.plain(rows[start : start + _CHUNK])).numpy()
            for start in range(0, len(rows), _CHUNK)
        ]
    descriptors = np.concatenate(parts) if parts else np.empty((0, network.dim), np.float32)
    return Described(descriptors, rows, cache.skipped)
