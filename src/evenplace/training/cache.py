"""The frozen trunk's output, computed once, kept on disk, never stale.

A file's name tells everything its maps depend on: a digest of the trunk's weights, the photo
files and the size, then the view and its seed.  Change one and another file is made.

    V views · N photos · B batch · D channels · h, w cells of the feature map
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenplace.errors import PhotoError
from evenplace.models.describe import Progress
from evenplace.models.loading import load_batches
from evenplace.models.network import PlaceNetwork
from evenplace.photos.table import Skipped
from evenplace.training.augment import random_views

_BATCH = 8


@dataclass(frozen=True)
class ViewSettings:
    """Which views of each photo are kept.  View 0 is the photo as it is."""

    count: int = 1
    augment: bool = True
    flip: bool = False
    seed: int = 0

    def name(self, view: int) -> str:
        """Tell one view's file from another's; the plain photo is the same under all settings."""
        if not view or not self.augment:
            return "plain"
        return f"{'flip' if self.flip else 'crop'}-{self.seed}-{view}"


@dataclass(frozen=True)
class TrunkCache:
    """Maps of every view of every readable photo, memory-mapped."""

    maps: tuple[NDArray[np.float16], ...]  # V of (N, D, h, w)
    readable: NDArray[np.bool_]  # (N,)
    skipped: tuple[Skipped, ...]

    def batch(self, rows: NDArray[np.int64], views: NDArray[np.int64]) -> Tensor:
        """The maps of photo `rows[i]` seen through view `views[i]`.  -> (B, D, h, w)."""
        chosen = np.stack([self.maps[view][row] for row, view in zip(rows, views, strict=True)])
        return torch.from_numpy(chosen).float().contiguous(memory_format=torch.channels_last)

    def plain(self, rows: NDArray[np.int64]) -> Tensor:
        """The maps of photos as they are, without any crop."""
        return self.batch(rows, np.zeros(len(rows), dtype=np.int64))


def cache_trunk(
    network: PlaceNetwork,
    paths: Sequence[str],
    views: ViewSettings,
    folder: Path,
    progress: Progress | None = None,
) -> TrunkCache:
    """Open the cache of these photos under this trunk, running the trunk where it is missing.

    An interrupted run goes on after the last view that was finished.
    """
    folder.mkdir(parents=True, exist_ok=True)
    key = _digest(network, paths)
    files = [folder / f"{key}-{views.name(view)}.npy" for view in range(views.count)]
    skipped: dict[str, str] = {}
    for view, file in enumerate(files):
        if not file.exists():
            tell = _counted(progress, view * len(paths), views.count * len(paths))
            _run_view(network, paths, views, view, file, tell)
        skipped |= json.loads(file.with_suffix(".json").read_text())
    maps = tuple(np.load(file, mmap_mode="r") for file in files)
    readable = np.array([path not in skipped for path in paths])
    return TrunkCache(maps, readable, tuple(Skipped(p, why) for p, why in skipped.items()))


def _run_view(
    network: PlaceNetwork,
    paths: Sequence[str],
    views: ViewSettings,
    view: int,
    file: Path,
    progress: Progress,
) -> None:
    """Write one view to a partial file and rename it when it is whole."""
    generator = torch.Generator().manual_seed(views.seed * 1009 + view)
    partial = file.with_suffix(".partial")
    maps: np.memmap[Any, np.dtype[np.float16]] | None = None
    skipped: dict[str, str] = {}
    try:
        for batch in load_batches(paths, network.image_size, batch=_BATCH):
            skipped |= {item.path: item.reason for item in batch.skipped}
            if batch.rows:
                pixels = batch.pixels
                if view and views.augment:
                    pixels = random_views(pixels, generator, flip=views.flip)
                out = network.backbone.trunk(pixels).half().numpy()
                if maps is None:
                    shape = (len(paths), *out.shape[1:])
                    maps = np.lib.format.open_memmap(partial, "w+", np.float16, shape)
                maps[batch.rows] = out
            progress(batch.rows[-1] + 1 if batch.rows else 0, len(paths))
        if maps is None:
            raise PhotoError(f"none of the {len(paths)} photos could be decoded: {_first(skipped)}")
        maps.flush()
        file.with_suffix(".json").write_text(json.dumps(skipped))
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def _first(skipped: dict[str, str]) -> str:
    return next(iter(skipped.values()), "there are no photos")


def _counted(progress: Progress | None, before: int, total: int) -> Progress:
    return lambda done, _: progress(before + done, total) if progress else None


def _digest(network: PlaceNetwork, paths: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for stage in network.backbone.stages[: network.backbone.cut]:
        for name, tensor in stage.state_dict().items():
            digest.update(name.encode())
            digest.update(tensor.contiguous().numpy().tobytes())
    for path in paths:
        stat = Path(path).stat()
        digest.update(f"{path}|{stat.st_size}|{stat.st_mtime_ns}\n".encode())
    digest.update(f"{network.image_size}|{network.backbone.spec}".encode())
    return digest.hexdigest()[:24]
