"""An index on disk, and what a reader sees of it.

    index/manifest.json            one generation: its files with checksums, the model, the scale
    index/lock                     held by whoever writes
    index/base-000001/             the bulk
        descriptors.npy            (N, D) float16, photos of a place side by side
        starts.npy                 (C + 1,) rows starts[c] to starts[c + 1] belong to place c
        photos.arrow               the same rows: path, position, heading, time
        impostors.npy              (N,) float32
        places.parquet             the places
        prototypes.npy             (C, D) float32
        coarse*                    codes of the prototypes, from 4096 places on
        spectra-NAME-*.npy         characteristic functions of the places
    index/delta-000002/            what came and went since: the same, and which rows are gone

Rows from starts[C] on are photos in no place: no shortlist reaches them.  Outside this room rows
count the photos that are there, first those of the bulk and then the added ones.

N photos · C places · D descriptor
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evenplace.errors import IndexFileError
from evenplace.photos.table import Photos, join_photos
from evenplace.places.table import Places
from evenplace.retrieval.arrays import map_array
from evenplace.retrieval.coarse import Coarse
from evenplace.retrieval.manifest import Manifest
from evenplace.retrieval.polar import COUNT, SEED, PolarSpectra, draw_points
from evenplace.retrieval.scale import photo_spread
from evenplace.retrieval.segment import Delta, Segment, ranges

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Index:
    """One generation of a database, ready to be searched; arrays stay on disk until touched.

    It stays as it is while a writer makes the next generation: open the folder again to see that.
    """

    folder: Path
    manifest: Manifest
    base: Segment
    places: Places
    base_prototypes: Floats  # of the bulk's places
    coarse: Coarse | None
    delta: Delta | None

    def __len__(self) -> int:
        gone = 0 if self.delta is None else len(self.delta.removed) - len(self.delta.added)
        return len(self.base) - gone

    @property
    def model(self) -> str:
        return self.manifest.model

    @property
    def scale(self) -> float:
        return self.manifest.scale

    @property
    def dim(self) -> int:
        return int(self.base.descriptors.shape[1])

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for entry in self.manifest.files.values())

    @cached_property
    def live(self) -> Rows:
        """Rows of the bulk that are still there."""
        keep = np.ones(len(self.base), bool)
        if self.delta is not None:
            keep[self.delta.removed] = False
        return np.flatnonzero(keep)

    @cached_property
    def numbers(self) -> Rows:
        """Number of each of the bulk's places among all.  (C of the bulk,)."""
        known = len(self.base.starts) - 1
        return np.arange(known) if self.delta is None else self.delta.numbers

    @cached_property
    def home(self) -> Rows:
        """Number of each place in the bulk, -1 for a place opened since.  (C,)."""
        home = np.full(len(self.places), -1)
        home[self.numbers] = np.arange(len(self.numbers))
        return home

    @cached_property
    def sizes(self) -> Rows:
        """Database photos in each place.  (C,)."""
        sizes = np.zeros(len(self.places), np.int64)
        sizes[self.numbers] = np.diff(self.base.starts)
        if self.delta is not None:
            place = np.searchsorted(self.base.starts, self.delta.removed, "right") - 1
            place = self.numbers[place[place < len(self.numbers)]]
            sizes -= np.bincount(place, minlength=len(sizes))
            sizes += np.diff(self.delta.added.starts)
        return sizes

    @cached_property
    def labels(self) -> Rows:
        """Place of each photo, -1 for photos that no place holds.  (N,)."""
        if self.delta is None:
            return self.base.labels()
        bulk = self.base.labels()[self.live]
        return np.concatenate([np.append(self.numbers, -1)[bulk], self.delta.added.labels()])

    @cached_property
    def photos(self) -> Photos:
        """The photos in the order of the rows; a copy once there are updates."""
        if self.delta is None:
            return self.base.photos
        kept = self.base.photos[self.live]
        return join_photos([kept, self.delta.added.photos]) if len(self.delta.added) else kept

    @cached_property
    def impostors(self) -> Floats:
        """How often each photo looks like somewhere else (`impostors`).  (N,)."""
        return self._joined("impostors")

    @cached_property
    def descriptors(self) -> NDArray[np.float16]:
        """All descriptors: the mapped file, or a copy once there are updates.  (N, D)."""
        return self._joined("descriptors")

    @cached_property
    def prototypes(self) -> Floats:
        """Prototypes of all places: the mapped file, or a copy once there are updates.  (C, D)."""
        if self.delta is None:
            return self.base_prototypes
        merged = np.zeros((len(self.places), self.dim), np.float32)
        merged[self.numbers] = self.base_prototypes
        merged[self.delta.touched] = self.delta.prototypes
        return merged

    @property
    def starts(self) -> Rows:
        """Where the rows of each place begin.  (C + 1,); only while there are no updates."""
        if self.delta is not None:
            raise IndexFileError(f"{self.folder} has updates beside its bulk; compact it first")
        return self.base.starts

    def spots(self, rows: Rows) -> NDArray[np.float64]:
        """East and north of some photos.  (P,) -> (P, 2)."""
        if self.delta is None:
            return self.base.spots(rows)
        inside, at = self._physical(rows)
        spots = np.empty((len(rows), 2))
        spots[inside] = self.base.spots(at[inside])
        spots[~inside] = self.delta.added.spots(at[~inside])
        return spots

    def vectors(self, rows: Rows) -> Floats:
        """Descriptors of some photos.  (P,) -> (P, D)."""
        halves = np.empty((len(rows), self.dim), np.float16)
        self.read(rows, halves)
        whole: Floats = torch.from_numpy(halves).float().numpy()  # many times as fast as numpy
        return whole

    def read(self, rows: Rows, out: NDArray[np.float16]) -> None:
        """Descriptors of some photos into an array.  (P,), (P, D)."""
        if self.delta is None:
            return self.base.read(rows, out)
        inside, at = self._physical(rows)
        for segment, mine in ((self.base, inside), (self.delta.added, ~inside)):
            part = np.empty((int(mine.sum()), self.dim), np.float16)
            segment.read(at[mine], part)
            out[mine] = part
        return None

    def paths(self, rows: Rows) -> list[str]:
        """Where some photos lie; their row numbers when they came without files."""
        inside, at = self._physical(rows)
        found = []
        for own, row, number in zip(inside, at, rows, strict=True):
            segment = self.base if own else self._added
            table = segment.photos.table
            named = "path" in table.column_names
            found.append(table.column("path")[int(row)].as_py() if named else f"photo {number}")
        return found

    def places_of(self, rows: Rows) -> Rows:
        """Place of some photos, -1 for none.  (P,) -> (P,)."""
        inside, at = self._physical(rows)
        labels = np.full(len(rows), -1)
        labels[inside] = np.append(self.numbers, -1)[self.base.places_of(at[inside])]
        if self.delta is not None:
            labels[~inside] = self.delta.added.places_of(at[~inside])
        return labels

    def spectra(self, name: str, count: int = COUNT, seed: int = SEED) -> PolarSpectra:
        """Characteristic functions of all places: from the files, or measured now."""
        if (count, seed) == (COUNT, SEED) and name in self.manifest.spectra:
            whole = PolarSpectra.open(self.folder / self.manifest.base, name)
        else:
            spread = photo_spread(self.base.descriptors, self.base.starts)
            points = draw_points(name, self.dim, count=count, seed=seed, spread=spread)
            whole = PolarSpectra.measure(self.base.descriptors, self.base.starts, points)
        if self.delta is None:
            return whole
        changed = self.changed
        rows, of = self.rows_of(changed)
        starts = np.searchsorted(of, np.arange(len(changed) + 1))
        median = whole.median(np.diff(self.base.starts))
        fresh = PolarSpectra.measure(self.vectors(rows), starts, whole.points, median)
        return whole.patched(self.numbers, changed, fresh, len(self.places))

    @cached_property
    def changed(self) -> Rows:
        """Places that photos came to or went from since the bulk was written."""
        if self.delta is None:
            return np.empty(0, np.int64)
        gone = np.searchsorted(self.base.starts, self.delta.removed, "right") - 1
        gone = self.numbers[gone[gone < len(self.numbers)]]
        return np.union1d(gone, np.flatnonzero(np.diff(self.delta.added.starts)))

    def rows_of(self, places: Rows) -> tuple[Rows, Rows]:
        """Rows of the photos of some places, place by place, and which of the places each is of."""
        home = self.home[places]
        known = home >= 0
        first = np.where(known, self.base.starts[home], 0)
        rows, of = ranges(first, np.where(known, self.base.starts[home + 1], 0))
        if self.delta is None:
            return rows, of
        removed, starts = self.delta.removed, self.delta.added.starts
        before = np.searchsorted(removed, rows)
        there = np.append(removed, -1)[before] != rows
        added, whose = ranges(starts[places], starts[places + 1])
        kept = len(self.base) - len(removed)
        rows = np.concatenate([(rows - before)[there], added + kept])
        of = np.concatenate([of[there], whose])
        order = np.argsort(of, kind="stable")
        return rows[order], of[order]

    @property
    def _added(self) -> Segment:
        if self.delta is None:
            raise IndexError(f"{self.folder} has {len(self.base)} photos and no others")
        return self.delta.added

    def _physical(self, rows: Rows) -> tuple[NDArray[np.bool_], Rows]:
        """Whether each row is in the bulk, and its number there or among the added."""
        if self.delta is None:
            return np.ones(len(rows), bool), rows
        removed, kept = self.delta.removed, len(self.base) - len(self.delta.removed)
        inside = rows < kept
        shifted = rows + np.searchsorted(removed - np.arange(len(removed)), rows, "right")
        return inside, np.where(inside, shifted, rows - kept)

    def _joined(self, name: str) -> NDArray[Any]:
        whole: NDArray[Any] = getattr(self.base, name)
        if self.delta is None:
            return whole
        return np.concatenate([whole[self.live], getattr(self.delta.added, name)])


def open_index(folder: str | Path) -> Index:
    """Open the newest generation without reading it.

    Sizes of files are checked now, contents by `verify_index`.
    """
    folder = Path(folder)
    manifest = Manifest.read(folder)
    try:
        return _open(folder, manifest)
    except (IndexFileError, OSError):  # swept away while we looked: there is a newer one
        newer = Manifest.read(folder)
        if newer.generation == manifest.generation:
            raise
        return open_index(folder)


def verify_index(folder: str | Path) -> Manifest:
    """Read every file and compare it with its checksum."""
    manifest = Manifest.read(Path(folder))
    manifest.check_contents(Path(folder))
    return manifest


def _open(folder: Path, manifest: Manifest) -> Index:
    manifest.check_sizes(folder)
    bulk = folder / manifest.base
    newest = folder / (manifest.delta or manifest.base)
    return Index(
        folder,
        manifest,
        Segment.open(bulk),
        Places.read(newest / "places.parquet"),
        np.asarray(map_array(bulk / "prototypes.npy")),
        Coarse.open(bulk, manifest.tuning),
        Delta.open(folder / manifest.delta) if manifest.delta else None,
    )
