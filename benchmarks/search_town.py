"""A city of descriptors for the search benchmark, drawn with structure.

Places lie on a 20 m grid with SF-XL's long-tailed counts, their looks follow smooth fields over
the map (districts and streets, so neighbours are alike), each place has its own spread, and a
query is another photo of a place, half again as far off.

    C places · D descriptor
"""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from evenplace.photos import Photos

Floats = NDArray[np.float32]
DENSITY = 2_800_000 / 110_000  # photos a place
FIELDS = 48  # independent ways in which places differ
SEED = 0
_FALL = 1.0  # energy along axis i is i to minus this; chosen, not fitted to any network
_BLOCK = 8192


class Town:
    """Places on a grid, and photos of them on demand: nothing is kept but the places."""

    def __init__(self, photos: int, dim: int) -> None:
        rng = np.random.default_rng(SEED)
        self.count, self.dim = max(1, round(photos / DENSITY)), dim
        side = int(np.ceil(self.count**0.5))
        looks = 0.55 * field(rng, side, 12, 2) + 0.8 * field(rng, side, 1, 4)
        looks += 0.35 * field(rng, side, 1, 0) + 0.5 * rng.normal(size=FIELDS)
        self.basis = unit(rng.normal(size=(FIELDS, dim)))
        self.centres = unit(looks.reshape(-1, FIELDS)[: self.count] @ self.basis)  # (C, D)
        self.cells = np.stack(np.divmod(np.arange(self.count), side), axis=1)
        self.spread = rng.uniform(0.5, 1.3, self.count).astype(np.float32)
        weights = rng.pareto(1.2, self.count) + 0.15
        self.sizes = np.maximum(1, np.minimum(weights / weights.mean(), 40) * DENSITY).astype(int)
        self.sizes = rescaled(self.sizes, photos)
        self.labels = np.repeat(np.arange(self.count), self.sizes)
        self.fall = np.full(dim, dim**0.5, np.float32)  # what a photo's own look is divided by

    def photos(self) -> Photos:
        rng = np.random.default_rng(SEED + 1)
        spots = self.cells[self.labels] * 20.0 + rng.uniform(0, 20, (len(self.labels), 2))
        names = [f"town/{number:08d}.jpg" for number in range(len(spots))]
        return Photos.from_arrays(
            east=500_000 + spots[:, 0], north=4_000_000 + spots[:, 1], zone=10, path=names
        )

    def looks(self, labels: NDArray[np.int64], seed: int, far: float = 1.0) -> Floats:
        """A photo of each of the places.  far: 1 as in the database, more for queries."""
        draw = torch.Generator().manual_seed(seed)
        shared = torch.randn(len(labels), FIELDS, generator=draw) @ torch.from_numpy(self.basis)
        own = torch.randn(len(labels), self.dim, generator=draw)
        spread = torch.from_numpy(far * self.spread[labels])[:, None]
        rows = torch.from_numpy(self.centres[labels])
        rows = rows + spread * (
            0.35 * shared / FIELDS**0.5 + 0.55 * own / torch.from_numpy(self.fall)
        )
        looks: Floats = (rows / rows.norm(dim=1, keepdim=True)).numpy()
        return looks


class FallingTown(Town):
    """The same, where places and photos differ along all axes, along each less than the last.

    In `Town` a photo's own look is white and lies beside the 48 axes along which places differ:
    whatever keeps few axes takes most of that noise away and finds more than the whole does.
    Descriptors of networks fall off instead, and what is cut off them tells places apart too.
    """

    def __init__(self, photos: int, dim: int) -> None:
        super().__init__(photos, dim)
        rng = np.random.default_rng(SEED + 3)
        energy = rng.permutation(np.arange(1, dim + 1) ** -_FALL)
        self.fall = np.sqrt(energy.sum() / energy).astype(np.float32)
        self.centres = unit(self.centres + 0.5 * rng.normal(size=self.centres.shape) / self.fall)


class Drawn:
    """The descriptors of a town's photos, drawn as they are read; always the same."""

    def __init__(self, town: Town) -> None:
        self.town, self.shape = town, (len(town.labels), town.dim)

    def __getitem__(self, rows: slice) -> Floats:
        return self.town.looks(self.town.labels[rows], SEED + 2 + rows.start)


def unit(rows: NDArray[np.floating]) -> Floats:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def field(rng: np.random.Generator, side: int, step: int, smooth: int) -> NDArray[np.float32]:
    """Numbers over the map that change every `step` cells, blurred.  (side, side, FIELDS)."""
    cells = -(-side // step)
    values: NDArray[np.floating] = rng.standard_normal((cells, cells, FIELDS), np.float32)
    for _ in range(smooth):
        for axis in (0, 1):
            values = (np.roll(values, 1, axis) + 2 * values + np.roll(values, -1, axis)) / 4
    values /= values.std()
    return np.asarray(np.repeat(np.repeat(values, step, 0), step, 1)[:side, :side], np.float32)


def rescaled(sizes: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Sizes of the same shape that add up to the total, one at least."""
    scaled = np.maximum(1, np.floor(sizes * (total / sizes.sum()))).astype(np.int64)
    largest = np.argsort(-scaled)
    off = total - int(scaled.sum())
    for at in range(abs(off)):
        scaled[largest[at % max(1, len(largest) // 10)]] += 1 if off > 0 else -1
    return np.asarray(scaled, np.int64)


def drawn(town: Town, folder: Path) -> NDArray[np.float16]:
    """The descriptors in a file as a user has them; drawn when they are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "descriptors.npy"
    if not path.exists():
        source, draft = Drawn(town), path.with_suffix(".draft")
        with draft.open("wb") as file:
            header = {"descr": "<f2", "fortran_order": False, "shape": source.shape}
            np.lib.format.write_array_header_1_0(file, header)
            for start in range(0, source.shape[0], _BLOCK):
                block = source[slice(start, min(start + _BLOCK, source.shape[0]))]
                file.write(torch.from_numpy(block).half().numpy().tobytes())
        draft.rename(path)
    vectors: NDArray[np.float16] = np.load(path, mmap_mode="r")
    return vectors


def asked(town: Town, count: int = 512) -> Floats:
    """Queries: other photos of places, half again as far off.  (count, D)."""
    return town.looks(np.random.default_rng(5).integers(town.count, size=count), 77, far=1.5)
