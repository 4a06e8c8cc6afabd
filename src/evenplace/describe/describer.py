"""Photos → descriptors, in the order of the photos, with what could not be read set apart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from evenplace.describe.decoding import load_batches
from evenplace.describe.paired import Describing
from evenplace.photos.table import Skipped

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Described:
    """Unit descriptors of the readable photos, and their rows in what was asked for."""

    descriptors: NDArray[np.float32]  # (N, D)
    rows: NDArray[np.int64]  # (N,)
    skipped: tuple[Skipped, ...]


def describe_photos(
    network: Describing, paths: Sequence[str], *, progress: Progress | None = None
) -> Described:
    """Run the network over photo files.

    Eight at a time, which on a CPU keeps maps in cache; a network whose descriptors depend on
    their batch (`network.batch`) gets its own number, in the order of the paths.
    """
    network.eval()
    rows: list[int] = []
    parts: list[NDArray[np.float32]] = []
    skipped: list[Skipped] = []
    with torch.inference_mode():
        for batch in load_batches(paths, network.image_size, batch=network.batch or 8):
            if batch.rows:
                parts.append(network(batch.pixels.to(network.device)).float().cpu().numpy())
            rows += batch.rows
            skipped += batch.skipped
            if progress:
                progress(len(rows) + len(skipped), len(paths))
    descriptors = np.concatenate(parts) if parts else np.empty((0, network.dim), np.float32)
    return Described(descriptors, np.array(rows, dtype=np.int64), tuple(skipped))
