"""Places to search by and their prototypes: a classifier's where it was trained, means elsewhere.

A city of the database is known where any of its photos lies in a place of the run.  In the others
places are cut from the database, and a place's prototype is the mean of its photos' descriptors.
Two numbers are fitted beside: the scale of the posterior, and the spread of a place.

N photos · C places · D descriptor · B photos of a block · V photos asked
"""

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Floats, evenly
from evenplace.photos.table import Photos
from evenplace.places.new_places import database_places, open_places, unknown_cities
from evenplace.places.table import Places
from evenplace.retrieval.array_files import Rows

MEANS = "means"  # a kind of prototypes, and a column of `Places.extra`: 1 where one is a mean
_ASKED, _RIVALS = 256, 4096
_IN_MEMORY = 1 << 27  # numbers: 42,370 places of 8,448 would take 1.4 GB
SCALES = np.geomspace(4, 256, 37)


@dataclass(frozen=True)
class Reach:
    """Places to search by, and their prototypes: (C, D), nan where a mean is wanted; None: all."""

    places: Places
    prototypes: Floats | None


def reach(places: Places, prototypes: Floats | None, photos: Photos) -> Reach:
    """The classifier's places and, in cities it was not trained in, the database's.

    prototypes: (C, D) of a classifier; None for a network that only ranks.
    """
    unknown = unknown_cities(places, photos)
    if not unknown.any():
        return Reach(places, prototypes)
    if unknown.all():
        return Reach(database_places(photos, places), None)
    opened = open_places(places, photos[unknown])
    if prototypes is None:
        return Reach(opened.places, None)
    grown = np.full((len(opened.places), prototypes.shape[1]), np.nan, np.float32)
    grown[opened.numbers] = prototypes
    return Reach(mark_means(opened.places, opened.fresh), grown)


def mark_means(places: Places, which: NDArray[np.bool_] | bool = True) -> Places:
    """The places, with a note of those whose prototype is a mean."""
    noted = np.broadcast_to(np.asarray(which, np.int64), len(places)).copy()
    return replace(places, extra={**places.extra, MEANS: noted})


def fill_means(prototypes: Floats, means: Floats) -> Floats:
    """Prototypes with means where they are nan, as long as the others are.  (C, D)."""
    prototypes = np.asarray(prototypes, np.float32)
    wanted = np.isnan(prototypes[:, 0])
    lengths = np.linalg.norm(prototypes, axis=1)
    length = 1.0 if np.all(wanted) else float(np.nanmedian(lengths))
    filled: Floats = np.where(wanted[:, None], means * np.float32(length), prototypes)
    return filled


class PlaceMeans:
    """Adds up descriptors block by block; the directions are asked for once.

    folder: where the sums lie in a file without a name, if they are more than half a gigabyte.
    """

    def __init__(self, count: int, dim: int, folder: Path | None = None) -> None:
        small = count * dim <= _IN_MEMORY
        self._sums: Floats = (
            np.zeros((count + 1, dim), np.float32) if small else _on_disk(count + 1, dim, folder)
        )
        self.lengths: Floats = np.zeros(count, np.float32)  # of the sums, once asked for

    def add(self, labels: Rows, descriptors: Floats) -> None:
        """labels: (B,) places in ascending order, `count` for none; descriptors: (B, D)."""
        first = np.flatnonzero(np.diff(labels, prepend=-1))
        parts = np.split(descriptors, first[1:])  # a seventh of the time of `np.add.reduceat`
        for place, rows in zip(labels[first].tolist(), parts, strict=False):
            self._sums[place] += rows.sum(axis=0)

    def directions(self) -> Floats:
        """Unit vectors; zero where a place has no photo.  (C, D)."""
        means: Floats = self._sums[:-1]  # in place: of a city they are a third of a gigabyte
        self.lengths = np.sqrt(np.vecdot(means, means))
        means /= np.maximum(self.lengths, 1e-12)[:, None]
        return means


def _on_disk(count: int, dim: int, folder: Path | None) -> Floats:
    """Zeros in a file that ends with its last reader; written plainly: a full disk is an error."""
    with TemporaryFile(dir=folder) as file:
        for _ in range(count):
            file.write(bytes(4 * dim))
        file.flush()
        return np.memmap(file, np.float32, "r+", shape=(count, dim))


def fit_scale(descriptors: Any, starts: Rows, prototypes: Floats, seed: int = 0) -> float:
    """The scale under which photos best foretell their own place, each left out of its mean.

        minimise over s   -mean_i log softmax_c(s <z_i, m_c>)[place of i],   m_c without z_i

    A classifier brings the scale it was trained with; means of photos have none.  Database
    photos are easier than queries, so this is the surest the posterior should be.  30 when no
    place has two photos.  -> s.
    """
    rng = np.random.default_rng(seed)
    sizes = np.diff(starts)
    several = np.flatnonzero(sizes > 1)
    if not len(several):
        return 30.0
    places = rng.choice(several, _ASKED)
    rows = starts[places] + rng.integers(sizes[places])
    asked = descriptors[rows].astype(np.float32)  # (V, D)
    own = np.array(
        [_left_out(descriptors, starts, *pair) for pair in zip(places, rows, strict=True)]
    )
    held = np.flatnonzero(sizes)
    rivals = np.sort(rng.permutation(held)[:_RIVALS])
    scores = asked @ prototypes[rivals].T  # (V, rivals)
    scores[rivals[None] == places[:, None]] = -np.inf
    mine = np.einsum("vd,vd->v", asked, own)[:, None]
    more = float(np.log(len(held) / len(rivals)))  # each rival stands for so many
    return float(SCALES[np.argmin([_surprise(float(s), mine, scores, more) for s in SCALES])])


def _left_out(descriptors: NDArray[Any], starts: Rows, place: int, row: int) -> Floats:
    """The mean direction of a place's photos without one of them."""
    rest = descriptors[starts[place] : starts[place + 1]].astype(np.float32).sum(axis=0)
    rest -= descriptors[row].astype(np.float32)
    left: Floats = rest / max(float(np.linalg.norm(rest)), 1e-12)
    return left


def _surprise(scale: float, mine: Floats, others: Floats, more: float) -> float:
    """Mean of -log p(own place)."""
    gap = scale * (others - mine) + more
    top = np.maximum(gap.max(axis=1), 0)
    return float(np.mean(top + np.log(np.exp(-top) + np.exp(gap - top[:, None]).sum(axis=1))))


def photo_spread(descriptors: Any, starts: Rows) -> float:
    """Root mean squared distance of photos to their place's mean; 1 if no place has two.

    Of 2000 places evenly chosen, where there are more.
    """
    several = np.flatnonzero(np.diff(starts) > 1)
    chosen = several[evenly(len(several), 2000)]
    total, count = 0.0, 0
    for place in chosen:
        rows = descriptors[starts[place] : starts[place + 1]].astype(np.float32)
        total += float(((rows - rows.mean(axis=0)) ** 2).sum())
        count += len(rows) - 1
    return (total / count) ** 0.5 if count else 1.0
