"""Photos → descriptors: the only way, whoever asks, with what could not be read set apart.

N photos · B batch · H, W pixels · D descriptor · E the ranking network's
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evenplace.arrays import Bytes, Floats, Ints
from evenplace.describe.decoding import (
    Batch,
    Photo,
    in_order,
    load_batches,
    load_now,
    resize_pixels,
)
from evenplace.describe.engines import Engine, Wanted, start_engine
from evenplace.errors import SettingError
from evenplace.photos.table import Skipped

if TYPE_CHECKING:
    from evenplace.networks.network import PlaceNetwork

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Described:
    """Unit descriptors of the readable photos, and their rows in what was asked for."""

    descriptors: Floats  # (N, D), or (N, D + E) of two networks side by side
    rows: Ints  # (N,)
    skipped: tuple[Skipped, ...]
    dims: tuple[int, ...]  # how many numbers each network gives
    decode_ms: float = 0.0  # of all threads together
    network_ms: float = 0.0

    @property
    def asked(self) -> int:
        """How many photos it is of, read or not."""
        return len(self.rows) + len(self.skipped)

    def split(self) -> list[Floats]:
        """The descriptors of each network for itself.  (N, D), (N, E)."""
        return np.split(self.descriptors, np.cumsum(self.dims)[:-1], axis=1)


class Describer:
    """A network, or two side by side, at work on a device.

    network: in memory, a run's model.safetensors, or an exported .onnx.  ranked_by: a second
    one, which sees the same photos; each is decoded once, at the larger input size.
    device: auto, cuda, mps or cpu.  engine: auto, onnxruntime, torch or torch-compile.
    precision: auto, float32, bfloat16 or float16.  batch: photos at a time; what suits the device
    unless told.  A network whose descriptors depend on their batch gets its own number, in the
    order of the photos.  expected: photos that are coming, which decides whether exporting a
    network for onnxruntime pays; None where they come one by one, for as long as it runs.  local:
    number of this process on its machine, for its own GPU.  tell: hears what was chosen.
    """

    def __init__(
        self,
        network: "PlaceNetwork | str | Path",
        ranked_by: "PlaceNetwork | str | Path | None" = None,
        *,
        device: str = "auto",
        engine: str = "auto",
        precision: str = "auto",
        batch: int | None = None,
        expected: int | None = None,
        local: int = 0,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        if batch is not None and batch < 1:
            raise SettingError(f"batch={batch} describes nothing; use 1 or more")
        tell = tell or (lambda text: None)
        wanted = Wanted(device, engine, precision, expected, local, tell)
        networks = [network] if ranked_by is None else [network, ranked_by]
        self.engines: tuple[Engine, ...] = tuple(
            start_engine(Path(one) if isinstance(one, str) else one, wanted) for one in networks
        )
        depending = [engine.together for engine in self.engines if engine.together]
        self.together: int | None = depending[-1] if depending else None
        self.batch = self.together or batch or min(engine.batch for engine in self.engines)
        self.parallel = min(engine.parallel for engine in self.engines)
        tell(self.chosen)

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
    def network(self) -> "PlaceNetwork | None":
        """The network itself, where it is alone and torch runs it: for the trunk's cache."""
        return getattr(self.engines[0], "network", None) if len(self.engines) == 1 else None

    @property
    def parameters(self) -> int:
        return sum(engine.parameters for engine in self.engines)

    @property
    def chosen(self) -> str:
        """What describes, in one sentence."""
        return f"describing with {self.engines[0].chosen}, {self.batch} photos at a time"

    def describe(
        self, photos: Sequence[Photo] | Bytes, *, progress: Progress | None = None
    ) -> Described:
        """Describe files, bytes, pictures, or pixels (B, 3, H, W), in their order."""
        parts, done = [], 0
        for part in self._seen(photos):
            parts.append(part)
            done += part.asked
            if progress:
                progress(done, len(photos))
        return _joined(parts, self.dims)

    def stream(self, photos: Sequence[Photo], least: int) -> Iterator[Described]:
        """The same as it comes, so many photos at a time or a few more, their rows going on.

        Threads describe the next ones while whoever listens works on these.
        """
        parts: list[Described] = []
        for part in self._seen(photos):
            parts.append(part)
            if sum(one.asked for one in parts) >= least:
                yield _joined(parts, self.dims)
                parts = []
        if parts:
            yield _joined(parts, self.dims)

    def _seen(self, photos: Sequence[Photo] | Bytes) -> Iterator[Described]:
        """Batch by batch; decoding on threads, and the network too where the engine likes that."""
        cuts = range(0, len(photos), self.batch)
        if len(photos) > self.batch and self.parallel > 1:
            yield from in_order(lambda at: self._one(photos, at), cuts, self.parallel)
        elif isinstance(photos, np.ndarray) or len(photos) == 1:
            yield from (self._one(photos, at) for at in cuts)
        else:
            yield from map(self._run, load_batches(photos, self.image_size, batch=self.batch))

    def _one(self, photos: Sequence[Photo] | Bytes, start: int) -> Described:
        """A batch from its photos to their descriptors, on this thread."""
        mine = photos[start : start + self.batch]
        rows = list(range(start, start + len(mine)))
        if isinstance(mine, np.ndarray):
            return self._run(Batch(rows, mine, [], 0.0))
        return self._run(load_now(mine, self.image_size, rows))

    def _run(self, batch: Batch) -> Described:
        began = time.perf_counter()
        found = np.empty((0, sum(self.dims)), np.float32)
        if batch.rows:
            resized = (resize_pixels(batch.pixels, one.image_size) for one in self.engines)
            seen = [one.run(pixels) for one, pixels in zip(self.engines, resized, strict=True)]
            found = np.concatenate(seen, axis=1) if len(seen) > 1 else seen[0]
        return Described(
            descriptors=found,
            rows=np.array(batch.rows, np.int64),
            skipped=tuple(batch.skipped),
            dims=self.dims,
            decode_ms=batch.decode_ms,
            network_ms=(time.perf_counter() - began) * 1e3,
        )


def _joined(parts: Sequence[Described], dims: tuple[int, ...]) -> Described:
    """Batches as one; of none, nothing."""
    none = [np.empty((0, sum(dims)), np.float32)]
    return Described(
        descriptors=np.concatenate([part.descriptors for part in parts] or none),
        rows=np.concatenate([part.rows for part in parts] or [np.empty(0, np.int64)]),
        skipped=tuple(one for part in parts for one in part.skipped),
        dims=dims,
        decode_ms=sum(part.decode_ms for part in parts),
        network_ms=sum(part.network_ms for part in parts),
    )
