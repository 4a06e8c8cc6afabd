"""Photos → descriptors: the only way, whoever asks, with what could not be read set apart.

N photos · B batch · H, W pixels · D descriptor · E the ranking network's
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenplace.describe.decoding import Batch, Photo, load_batches, load_now, resize_pixels
from evenplace.describe.engines import Engine, TorchEngine
from evenplace.describe.parts import Parts, describe_parts
from evenplace.networks.network import PlaceNetwork
from evenplace.photos.table import Skipped

Floats = NDArray[np.float32]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Described:
    """Unit descriptors of the readable photos, and their rows in what was asked for."""

    descriptors: Floats  # (N, D), or (N, D + E) of two networks side by side
    rows: NDArray[np.int64]  # (N,)
    skipped: tuple[Skipped, ...]
    dims: tuple[int, ...]  # how many numbers each network gives
    decode_ms: float = 0.0  # of all threads together
    network_ms: float = 0.0

    def split(self) -> list[Floats]:
        """The descriptors of each network for itself.  (N, D), (N, E)."""
        return np.split(self.descriptors, np.cumsum(self.dims)[:-1], axis=1)


class Describer:
    """A network, or two side by side, at work on a device.

    ranked_by: a second network, which sees the same photos; each is decoded once, at the larger
    input size.  device: auto, cuda, mps or cpu.  precision: auto, float32, bfloat16 or float16.
    batch: photos at a time; what suits the device unless told.  A network whose descriptors
    depend on their batch gets its own number, in the order of the photos.
    """

    def __init__(
        self,
        network: PlaceNetwork,
        ranked_by: PlaceNetwork | None = None,
        *,
        device: str = "auto",
        precision: str = "auto",
        batch: int | None = None,
        local: int = 0,
    ) -> None:
        networks = [network] if ranked_by is None else [network, ranked_by]
        self.engines: tuple[Engine, ...] = tuple(
            TorchEngine(one, device, precision, local) for one in networks
        )
        wanted = [engine.together for engine in self.engines if engine.together]
        self.together: int | None = wanted[-1] if wanted else None
        self.batch = self.together or batch or min(engine.batch for engine in self.engines)

    @property
    def dims(self) -> tuple[int, ...]:
        """How many numbers each network gives."""
        return tuple(engine.dim for engine in self.engines)

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width photos are decoded at, each the larger of the networks'."""
        heights, widths = zip(*(engine.image_size for engine in self.engines), strict=True)
        return max(heights), max(widths)

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """Which weights each network has; an index tells by it who wrote it."""
        return tuple(engine.fingerprint for engine in self.engines)

    @property
    def network(self) -> PlaceNetwork | None:
        """The network itself, where it is alone and torch runs it: for the trunk's cache."""
        alone = self.engines[0] if len(self.engines) == 1 else None
        return alone.network if isinstance(alone, TorchEngine) else None

    @property
    def parameters(self) -> int:
        return sum(engine.parameters for engine in self.engines)

    @property
    def chosen(self) -> str:
        """What describes, in one sentence."""
        return f"describing with {self.engines[0].chosen}, {self.batch} photos at a time"

    def describe(
        self, photos: Sequence[Photo] | NDArray[np.uint8], *, progress: Progress | None = None
    ) -> Described:
        """Describe files, bytes, pictures, or pixels (B, 3, H, W), in their order."""
        found, rows, skipped = [], [], []
        decode_ms = network_ms = 0.0
        for batch in self._batches(photos):
            began = time.perf_counter()
            if batch.rows:
                found.append(self._run(batch.pixels))
            network_ms += (time.perf_counter() - began) * 1e3
            decode_ms += batch.decode_ms
            rows += batch.rows
            skipped += batch.skipped
            if progress:
                progress(len(rows) + len(skipped), len(photos))
        return Described(
            descriptors=np.concatenate(found or [np.empty((0, sum(self.dims)), np.float32)]),
            rows=np.array(rows, np.int64),
            skipped=tuple(skipped),
            dims=self.dims,
            decode_ms=decode_ms,
            network_ms=network_ms,
        )

    def parts(
        self,
        paths: Sequence[str],
        folder: str | Path,
        *,
        rank: int = 0,
        ranks: int = 1,
        progress: Progress | None = None,
    ) -> Parts:
        """Describe a database to files, those parts that are not there yet: see `parts`."""
        return describe_parts(self, paths, Path(folder), rank=rank, ranks=ranks, progress=progress)

    def _batches(self, photos: Sequence[Photo] | NDArray[np.uint8]) -> Iterator[Batch]:
        if isinstance(photos, np.ndarray):
            for start in range(0, len(photos), self.batch):
                pixels = photos[start : start + self.batch]
                yield Batch(list(range(start, start + len(pixels))), pixels, [], 0.0)
        elif len(photos) == 1:
            yield load_now(photos, self.image_size)
        else:
            yield from load_batches(photos, self.image_size, batch=self.batch)

    def _run(self, pixels: NDArray[np.uint8]) -> Floats:
        seen = [one.run(resize_pixels(pixels, one.image_size)) for one in self.engines]
        return np.concatenate(seen, axis=1) if len(seen) > 1 else seen[0]
