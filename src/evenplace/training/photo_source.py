"""Where a batch's pictures come from: the trunk's cache, or files decoded and cropped anew.

B batch · D channels · h, w cells of the feature map
"""

import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from evenplace.arrays import Bools, Floats, Ints
from evenplace.describe.decoding import load_chunks
from evenplace.describe.torch_engine import carry, lower_precision
from evenplace.networks.backbone import Features
from evenplace.networks.network import PlaceNetwork
from evenplace.photos.pictures import Size
from evenplace.photos.table import Skipped
from evenplace.training.augment import Augmentation, augmented
from evenplace.training.batches import Step
from evenplace.training.distributed import Ranks
from evenplace.training.trunk_cache import TrunkCache

REGIONS = 9
_CHUNK = 64


def describe_regions(network: PlaceNetwork, maps: Tensor) -> Tensor:
    """Unit descriptors of the whole map, its four halves and its four quarters.  -> (B, R, D)."""
    whole = network.backbone.features(maps, network.aggregator.prompts()).maps
    pooled = [network.aggregator(Features(part)) for part in cut_regions(whole)]
    return torch.stack([F.normalize(network.projection(one), dim=1) for one in pooled], dim=1)


def cut_regions(maps: Tensor) -> list[Tensor]:
    """The whole first; a map with an odd side gives its middle row to both halves."""
    height, width = maps.shape[2:]
    top, bottom = slice(0, (height + 1) // 2), slice(height // 2, height)
    left, right = slice(0, (width + 1) // 2), slice(width // 2, width)
    every = slice(None)
    cuts = [(every, every), (top, every), (bottom, every), (every, left), (every, right)]
    cuts += [(row, column) for row in (top, bottom) for column in (left, right)]
    return [maps[:, :, row, column] for row, column in cuts]


class PhotoSource:
    """Hands out the trunk's maps of photos, this rank's part of each batch.

    A photo that cannot be decoded leaves its batch and is listed, whenever it is met; later
    epochs do without it.  pooled_in: where only the projection trains, a folder to keep what it
    sees of each photo; batches are then (B, A) instead of maps.
    """

    def __init__(
        self,
        network: PlaceNetwork,
        paths: Sequence[str],
        *,
        cache: TrunkCache | None,
        how: Augmentation | None,
        ranks: Ranks,
        train_size: Size | None = None,
        precision: torch.dtype = torch.float32,
        pooled_in: Path | None = None,
    ) -> None:
        self.network, self.paths, self.cache = network, paths, cache
        self.train_size = train_size or network.image_size
        self.how, self.ranks, self.precision = how, ranks, precision
        self.pooled_in = pooled_in
        self.bad = {one.path: one.reason for one in cache.skipped} if cache else {}
        self.known = set(self.bad)  # those that this epoch's batches were drawn without

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return tuple(Skipped(path, reason) for path, reason in sorted(self.bad.items()))

    @property
    def readable(self) -> Bools:
        """Which photos were not known to be unreadable when the epoch began: (N,)."""
        return np.array([path not in self.known for path in self.paths], bool)

    def agree(self) -> None:
        """Draw the next epoch without what any rank has found unreadable."""
        self.bad = self.ranks.share(self.bad)
        self.known = set(self.bad)

    def batches(
        self, steps: Sequence[Step], seed: Sequence[int], first: int = 0
    ) -> Iterator[tuple[Step, Tensor]]:
        """Each step from the `first` on, with the maps of this rank's part of it.

        seed: tells one epoch's crops from another's.
        """
        steps = steps[first:]
        if self.cache is not None:
            for step in steps:
                mine = slice(*self.ranks.edges(len(step)))
                yield step, self._carry(self._cached(step.rows[mine], step.views[mine]))
            return
        parts = [step.rows[slice(*self.ranks.edges(len(step)))] for step in steps]
        decoded = zip(steps, self._decoded(parts, self.train_size), strict=True)
        for number, (step, (kept, pixels)) in enumerate(decoded, first):
            if self.how is not None:
                pixels = augmented(pixels, self._dice([*seed, number]), self.how)
            with lower_precision(self.network.device, self.precision):
                maps = self.network.backbone.trunk(pixels)
            everyone = self.ranks.gather_array(kept.astype(np.uint8))
            yield step.only(everyone.astype(bool)), maps

    def _cached(self, rows: Ints, views: Ints) -> Tensor:
        """Maps of the cache, or, where only the projection trains, what is pooled of them."""
        assert self.cache is not None
        if self.pooled_in is None:
            return self.cache.batch(rows, views)
        return torch.from_numpy(self._all_pooled[rows]).to(torch.float32)

    @cached_property
    def _all_pooled(self) -> NDArray[np.float16]:
        """What the projection sees of every photo, in a file that goes with the process: (N, A).

        Made when the first batch is asked for: by then the aggregator has its clusters.
        """
        shape = (len(self.paths), self.network.aggregator.dim)
        with tempfile.TemporaryFile(dir=self.pooled_in) as file:
            found: NDArray[np.float16] = np.memmap(file, np.float16, "w+", shape=shape)
        rows = np.flatnonzero(self.readable)
        with torch.no_grad():
            for at, maps in self._plain(rows):
                found[rows[at]] = self.network.pooled(maps).half().cpu().numpy()
        return found

    def look(self, rows: Ints, *, regions: bool = False) -> Floats:
        """Describe photos as they are, with the network as it is now.  -> (n, D) or (n, R, D).

        Ranks share the work, and all get the whole.  A photo that cannot be read is all zero.
        """
        start, stop = self.ranks.edges(len(rows))
        mine = rows[start:stop]
        training = self.network.training
        self.network.eval()
        shape = (len(mine), *([REGIONS] if regions else []), self.network.dim)
        found = np.zeros(shape, np.float32)
        with torch.no_grad(), lower_precision(self.network.device, self.precision):
            for at, maps in self._plain(mine):
                out = (
                    describe_regions(self.network, maps) if regions else self.network.describe(maps)
                )
                found[at] = out.float().cpu().numpy()
        self.network.train(training)
        return np.asarray(self.ranks.gather_array(found))

    def pooled(self, rows: Ints, chunk: int) -> tuple[Ints, Tensor]:
        """Which photos can be read, and what the projection sees of them.  -> (n,), (n, A)."""
        with torch.no_grad():
            found = [(at, self.network.pooled(maps)) for at, maps in self._plain(rows, chunk)]
        return np.concatenate([at for at, _ in found]), torch.cat([one for _, one in found])

    def maps(self, rows: Ints) -> Iterator[Tensor]:
        """The trunk's maps of photos as they are, those that can be read."""
        return (maps for _, maps in self._plain(rows))

    def _plain(self, rows: Ints, chunk: int = _CHUNK) -> Iterator[tuple[Ints, Tensor]]:
        """Which of the rows, and the trunk's maps of them."""
        size = self.network.batch or chunk
        chunks = [np.arange(i, min(i + size, len(rows))) for i in range(0, len(rows), size)]
        if self.cache is not None:
            for part in chunks:
                yield part, self._carry(self.cache.plain(rows[part]))
            return
        decoded = self._decoded([rows[part] for part in chunks], self.network.image_size)
        for part, (kept, pixels) in zip(chunks, decoded, strict=True):
            if kept.any():
                yield part[kept], self.network.backbone.trunk(pixels)

    def _decoded(self, parts: Sequence[Ints], size: Size) -> Iterator[tuple[Bools, Tensor]]:
        """Which photos of each part can be read, and their pixels; the others are listed."""
        for rows, batch in zip(parts, load_chunks(self.paths, size, parts), strict=True):
            self.bad |= {one.path: one.reason for one in batch.skipped}
            yield np.isin(rows, batch.rows), self._carry(torch.from_numpy(batch.pixels))

    def _carry(self, tensor: Tensor) -> Tensor:
        return carry(tensor, self.network.anchor)

    def _dice(self, seed: Sequence[int]) -> torch.Generator:
        drawn = np.random.default_rng([*seed, self.ranks.rank]).integers(2**62)
        return torch.Generator().manual_seed(int(drawn))
