"""Photos side by side in files, and what came and went since they were written.

N photos · C places · D descriptor · P photos asked for
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import PhotoError
from evenplace.photos.table import Photos
from evenplace.retrieval.arrays import map_array, map_photos
from evenplace.retrieval.rows import RowFile

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Segment:
    """Photos side by side, place by place; file: their descriptors, to be read by rows."""

    descriptors: NDArray[np.float16]  # (N, D)
    starts: Rows  # (C + 1,)
    impostors: Floats  # (N,)
    photos: Photos
    file: RowFile | None = None

    def __len__(self) -> int:
        return len(self.descriptors)

    @classmethod
    def open(cls, folder: Path) -> "Segment":
        names = ("descriptors", "starts", "impostors")
        descriptors, starts, impostors = (map_array(folder / f"{name}.npy") for name in names)
        return cls(
            descriptors,
            np.array(starts),
            np.asarray(impostors),
            map_photos(folder / "photos.arrow"),
            RowFile(folder / "descriptors.npy", descriptors),
        )

    @cached_property
    def axes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """East and north of every photo, in the memory of the table.  (N,) each."""
        return self.photos.east, self.photos.north

    def labels(self) -> Rows:
        """Place of each row, -1 for none.  (N,)."""
        placed = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return np.concatenate([placed, np.full(len(self) - len(placed), -1)])

    def places_of(self, rows: Rows) -> Rows:
        """Place of some rows, -1 for none.  (P,) -> (P,)."""
        places = np.searchsorted(self.starts, rows, "right") - 1
        return np.where(places < len(self.starts) - 1, places, -1)

    def spots(self, rows: Rows) -> NDArray[np.float64]:
        """East and north of some rows.  (P,) -> (P, 2)."""
        found = np.empty((len(rows), 2))
        try:
            for axis, values in enumerate(self.axes):
                found[:, axis] = values[rows]
        except IndexError as cause:
            raise PhotoError(f"there is no such row among {len(self)} photos ({cause})") from cause
        return found

    def read(self, rows: Rows, out: NDArray[np.float16]) -> None:
        """Descriptors of some rows into an array.  (P,), (P, D)."""
        if self.file is None:
            out[:] = self.descriptors[rows]
        else:
            self.file.read(rows, out)


@dataclass(frozen=True)
class Delta:
    """What came and went since the bulk was written."""

    added: Segment
    removed: Rows  # rows of the bulk, ascending
    numbers: Rows  # (C of the bulk,) what its places are called since new ones came between
    touched: Rows  # places whose prototype below replaces the bulk's, new ones included
    prototypes: Floats  # (touched, D)

    @classmethod
    def open(cls, folder: Path) -> "Delta":
        names = ("removed", "numbers", "touched", "prototypes")
        return cls(Segment.open(folder), *(np.array(map_array(folder / f"{n}.npy")) for n in names))


def ranges(first: Rows, last: Rows) -> tuple[Rows, Rows]:
    """Every number in every range, range by range, and which range it is of."""
    lengths = last - first
    of = np.repeat(np.arange(len(first)), lengths)
    before = np.cumsum(lengths) - lengths
    return np.arange(len(of)) + np.repeat(first - before, lengths), of
