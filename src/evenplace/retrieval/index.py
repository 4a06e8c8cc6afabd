"""An index on disk, and what a reader sees of it.

    index/manifest.json            one generation: its files with checksums, the model, the scale
    index/lock                     held by whoever writes
    index/000001/                  the files of the first generation
        rows-descriptors.npy       (N, D) float16, photos of a place side by side
        rows-NAME.npy              (N, W) whatever else is kept of each photo
        slots.npy                  (N,) which of the rows is each photo's, after an update
        codec-*.npy                how descriptors are kept, where not as float16
        starts.npy                 (C + 1,) photos starts[c] to starts[c + 1] belong to place c
        photos.arrow               path, position, heading, time of each
        impostors.npy              (N,) float32
        places.parquet             the places
        prototypes.npy             (C, D) float32
        coarse*                    codes of the prototypes, from 4096 places on
        levels-*.npy               classes whose sums score the places (CPlaNet)
        spectra-NAME-*.npy         characteristic functions of the places

A generation is whole.  An update writes the small files anew; rows of photos are written behind
those of the generation before, in the same file by another name (a hard link), and `slots` puts
them into the order of the places.  When half of the rows are of photos that went, all are written
again.

Photos from starts[C] on are in no place: no shortlist reaches them.

N photos · C places · D descriptor · W numbers a photo
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenplace.arrays import Floats, ranges
from evenplace.errors import EvenPlaceError, PhotoError
from evenplace.photos.choose import canonical
from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.retrieval.array_files import Column, Rows, map_array, map_photos, widened
from evenplace.retrieval.codec import Codec, Descriptors
from evenplace.retrieval.level_scores import Levels
from evenplace.retrieval.manifest import Manifest
from evenplace.retrieval.shortlist_codes import Coarse
from evenplace.retrieval.spectrum import COUNT, SEED, PolarSpectra

T = TypeVar("T")
ROWS = "rows-"  # files with a row a photo


@dataclass(frozen=True)
class Index:
    """One generation of a database, ready to be searched; arrays stay on disk until touched.

    It stays as it is while a writer makes the next generation: open the folder again to see that.
    """

    folder: Path
    manifest: Manifest
    photos: Photos
    places: Places
    starts: Rows  # (C + 1,)
    prototypes: Floats  # (C, D)
    impostors: Floats  # (N,) how much each photo looks like somewhere else
    columns: dict[str, Column]  # what is kept of each photo, by name
    codec: Codec
    coarse: Coarse | None
    levels: Levels | None
    kept_spectra: dict[str, PolarSpectra]

    def __len__(self) -> int:
        return len(self.photos)

    @property
    def model(self) -> str:
        return self.manifest.model

    @property
    def scale(self) -> float:
        return self.manifest.scale

    @cached_property
    def descriptors(self) -> Descriptors:
        """Descriptors of all photos; rows are read as they are asked for.  (N, D)."""
        return Descriptors(self.columns["descriptors"], self.codec)

    @property
    def as_given(self) -> Descriptors | Column:
        """Descriptors as the model made them, where they are kept beside what answers.  (N, D)."""
        return self.columns.get("exact", self.descriptors)

    @property
    def dim(self) -> int:
        """Numbers that are kept of a photo."""
        return self.descriptors.shape[1]

    @property
    def given(self) -> int:
        """Numbers of a descriptor as the model makes it."""
        return self.dim if self.codec.axes is None else len(self.codec.axes)

    @property
    def bytes(self) -> int:
        return sum(entry.total for entry in self.manifest.files.values())

    @cached_property
    def sizes(self) -> Rows:
        """Database photos in each place.  (C,)."""
        return np.diff(self.starts)

    @cached_property
    def labels(self) -> Rows:
        """Place of each photo, -1 for photos that no place holds.  (N,)."""
        placed = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return np.concatenate([placed, np.full(len(self) - len(placed), -1)])

    @cached_property
    def headings(self) -> Floats:
        """Where every photo looks, degrees.  (N,)."""
        return self.photos.heading

    @cached_property
    def positions(self) -> NDArray[np.float64]:
        """East and north of every photo.  (N, 2)."""
        return self.photos.positions

    @cached_property
    def _axes(self) -> tuple[NDArray[np.float64], ...]:
        """East, north and what keeps zones apart of every photo.  (N,) each."""
        return self.photos.east, self.photos.north, self.photos.apart

    def spots(self, rows: Rows) -> NDArray[np.float64]:
        """Where some photos are, as `Photos.points`; columns in one piece.  (P,) -> (P, 3)."""
        try:
            return np.stack([axis[rows] for axis in self._axes]).T
        except IndexError as cause:
            raise PhotoError(f"there is no such row among {len(self)} photos ({cause})") from cause

    def vectors(self, rows: Rows) -> Floats:
        """Descriptors of some photos.  (P,) -> (P, D)."""
        return widened(self.descriptors[rows])

    def paths(self, rows: Rows) -> list[str]:
        """Where some photos lie; their row numbers when they came without files."""
        table = self.photos.table
        if "path" not in table.column_names:
            return [f"photo {row}" for row in rows]
        return [table.column("path")[int(row)].as_py() for row in rows]

    def find(self, paths: list[str]) -> Rows:
        """Row of each path, -1 where there is none."""
        rows = np.full(len(paths), -1)
        if not paths:
            return rows
        if "path" not in self.photos.table.column_names:
            raise PhotoError(f"the photos of {self.folder} have no paths to find them by")
        known = self.photos.table.column("path")
        names = canonical(pa.chunked_array([*known.chunks, pa.array(paths, known.type)]))
        own, wanted = names.slice(0, len(self)), names.slice(len(self))
        found = np.asarray(pc.index_in(own, value_set=wanted).fill_null(-1))
        rows[found[found >= 0]] = np.flatnonzero(found >= 0)
        return rows

    def places_of(self, rows: Rows) -> Rows:
        """Place of some photos, -1 for none.  (P,) -> (P,)."""
        places = np.searchsorted(self.starts, rows, "right") - 1
        return np.where(places < len(self.places), places, -1)

    def rows_of(self, places: Rows) -> tuple[Rows, Rows]:
        """Rows of the photos of some places, place by place, and which of the places each is of."""
        return ranges(self.starts[places], self.starts[places + 1])

    def spectra(self, name: str, count: int = COUNT, seed: int = SEED) -> PolarSpectra:
        """Characteristic functions of all places: from the files, or measured now."""
        if (count, seed) == (COUNT, SEED) and name in self.kept_spectra:
            return self.kept_spectra[name]
        return PolarSpectra.draw(name, self.descriptors, self.starts, count, seed)


def open_index(folder: str | Path) -> Index:
    """Open the newest generation without reading it.

    Sizes of files are checked now, contents by `verify_index`.
    """
    return _newest(Path(folder), _open)


def verify_index(folder: str | Path) -> Manifest:
    """Read every file and compare it with its checksum."""

    def check(folder: Path, manifest: Manifest) -> Manifest:
        manifest.check_contents(folder)
        return manifest

    return _newest(Path(folder), check)


def _newest(folder: Path, look: Callable[[Path, Manifest], T]) -> T:
    """Look at the newest generation, or at a newer one if a writer swept it away meanwhile."""
    while True:
        manifest = Manifest.read(folder)
        try:
            return look(folder, manifest)
        except (EvenPlaceError, OSError):
            if Manifest.read(folder).generation == manifest.generation:
                raise


def _open(folder: Path, manifest: Manifest) -> Index:
    manifest.check_sizes(folder)

    here, names = folder / manifest.part, [path.partition("/")[2] for path in manifest.files]

    def named(prefix: str) -> list[Path]:
        return [here / name for name in names if name.startswith(prefix)]

    slots = np.array(map_array(here / "slots.npy")) if named("slots.") else None
    return Index(
        folder=folder,
        manifest=manifest,
        photos=map_photos(here / "photos.arrow"),
        places=Places.read(here / "places.parquet"),
        starts=np.array(map_array(here / "starts.npy")),
        prototypes=np.asarray(map_array(here / "prototypes.npy")),
        impostors=np.asarray(map_array(here / "impostors.npy")),
        columns={path.stem[len(ROWS) :]: Column(path, slots) for path in named(ROWS)},
        codec=Codec.open(manifest.codec, named("codec-")),
        coarse=Coarse.open(here, manifest.tuning) if named("coarse.") else None,
        levels=Levels.open(here) if named("levels-") else None,
        kept_spectra={name: PolarSpectra.open(here, name) for name in manifest.spectra},
    )
