"""Cells that split where photos crowd (PlaNet), and HGE's hierarchy of them.

# N photos · C places · F finest cells
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenplace.arrays import Doubles, Floats, Ints, blocks, renumber
from evenplace.errors import SettingError
from evenplace.photos.table import Photos
from evenplace.places.cities import CutByCity
from evenplace.places.grid import CORNERS, cell_numbers, cell_range
from evenplace.places.keys import Span, look_up, tally
from evenplace.places.maps import Sheet
from evenplace.places.table import Places


@dataclass(frozen=True)
class Quadtree(CutByCity):
    """Quarter every cell with more than `max_photos`, then drop those with fewer than `min_photos`.

    PlaNet's t1 and t2, on squares of UTM metres where PlaNet has S2's cells.  There are `levels`
    sizes of cell: the smallest has a side of `finest` metres, the largest of finest · 2^(levels -
    1), 10 km.  The id of a cell is its level (0 the largest), column and row.
    """

    max_photos: int = 320
    min_photos: int = 1
    finest: float = 5.0
    levels: int = 12

    name = "quadtree"

    def __post_init__(self) -> None:
        if self.max_photos < 1 or self.min_photos < 1 or not self.finest > 0:
            raise SettingError(
                f"max_photos is {self.max_photos}, min_photos {self.min_photos} and finest "
                f"{self.finest}; give at least 1 photo and a positive number of metres"
            )
        if not 1 <= self.levels <= 40:
            raise SettingError(f"levels is {self.levels}; give 1 to 40")

    def _cut(self, sheet: Sheet) -> Places:
        east, north = sheet.photos.east, sheet.photos.north
        span = Span.between(*cell_range(sheet.photos, self.finest))
        keys = np.empty(len(east), np.int64)
        for rows in blocks(len(keys)):
            keys[rows] = span.pack(self._finest(east[rows], north[rows]))
        found = tally(keys, span.total)
        fine = span.unpack(found.keys)  # (F, 2) column, row
        ids = self._ancestors(fine, self._depths(fine, found.counts))  # (F, 3)
        ids, counts, place = _distinct(ids, found.counts, self.min_photos)
        for rows in blocks(len(keys)):
            keys[rows] = place[keys[rows]]
        return Places.build(self, sheet, labels=keys, ids=ids, counts=counts)

    def hierarchy(self, photos: Photos, max_photos: Sequence[int]) -> Places:
        """Cut the map several times, coarse to fine, as HGE's 5000, 2000, 1000: the finest places.

        Cells are nested: `extra["level_0"]`, the coarsest, `level_1` … say which place of a coarser
        cut holds each.
        """
        if list(max_photos) != sorted(max_photos, reverse=True) or not max_photos:
            raise SettingError(f"max_photos is {max_photos}; go from coarse to fine")
        *coarse, fine = (replace(self, max_photos=most).partition(photos) for most in max_photos)
        parents = [one.locate(fine.centres, zone=fine.zones, home=fine.home) for one in coarse]
        return replace(fine, extra={f"level_{n}": parent for n, parent in enumerate(parents)})

    def find(self, ids: Ints, positions: Doubles, heading: Floats) -> Ints:
        """Which cell each position lies in, asking every level there is: (N, 2) -> (N,)."""
        labels = np.full(len(positions), -1, np.int64)
        if not len(ids):
            return labels
        fine = np.stack(self._finest(positions[:, 0], positions[:, 1]), axis=1)
        span = Span.between(ids.min(axis=0), ids.max(axis=0))
        known = span.pack(ids.T)
        for level in np.unique(ids[:, 0]):
            cells = self._ancestors(fine, np.full(len(fine), level))
            labels = np.maximum(labels, look_up(known, span.pack(cells.T), span.total))
        return labels

    def outlines(self, ids: Ints) -> Doubles:
        """The square of each cell: (C, 3) -> (C, 4, 2)."""
        side = self.finest * 2.0 ** (self.levels - 1 - ids[:, 0])
        corners: Doubles = (ids[:, None, 1:] + CORNERS) * side[:, None, None]
        return corners

    def _finest(self, east: Doubles, north: Doubles) -> list[Ints]:
        """Column and row of the smallest cells: (N,) each."""
        return [cell_numbers(axis, self.finest) for axis in (east, north)]

    def _ancestors(self, fine: Ints, level: Ints) -> Ints:
        """The ids of the cells at given levels that hold the finest ones: (F, 2) -> (F, 3)."""
        shift = self.levels - 1 - level
        return np.stack([level, fine[:, 0] >> shift, fine[:, 1] >> shift], axis=1)

    def _depths(self, fine: Ints, counts: Ints) -> Ints:
        """The first level, from the largest cells on, at which few enough photos are left: (F,)."""
        depth = np.full(len(fine), self.levels - 1, np.int64)
        crowded = np.arange(len(fine))
        for level in range(self.levels - 1):
            cells = self._ancestors(fine[crowded], np.full(len(crowded), level))
            _, total, at = _distinct(cells, counts[crowded])
            settled = total[at] <= self.max_photos
            depth[crowded[settled]] = level
            crowded = crowded[~settled]
            if not len(crowded):
                break
        return depth


def _distinct(ids: Ints, counts: Ints, least: int = 1) -> tuple[Ints, Ints, Ints]:
    """The distinct ids with at least so many photos, their photos, and where each row went."""
    span = Span.between(ids.min(axis=0), ids.max(axis=0))
    found = tally(span.pack(ids.T), span.total)
    total = np.bincount(found.labels, counts, len(found.keys)).astype(np.int64)
    keep = total >= least
    return span.unpack(found.keys[keep]), total[keep], renumber(keep)[found.labels]
