"""Median splits: cells of even counts and uneven areas (the paper's adaptive partition).

Evening the counts moves the imbalance into the areas: a leaf on the avenue is a doorstep, one on
the edge of town a whole quarter.

# N photos · C leaves · S splits
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evenplace.arrays import Doubles, Floats, Ints
from evenplace.errors import SettingError
from evenplace.places.cities import CutByCity
from evenplace.places.keys import tally
from evenplace.places.median_splits import grow
from evenplace.places.split_tree import Cuts
from evenplace.places.table import Places, Sheet, box_outlines


@dataclass(frozen=True)
class KdTree(CutByCity):
    """Split the longer side of a cell at its median photo until it has at most `max_photos`.

    Counts then differ by a factor of two at most, as long as photos have positions of their own;
    photos taken on one spot cannot be parted.  The id of a leaf is its number in the tree: the
    root is 1, the halves of node n are 2n (west or south) and 2n + 1.
    """

    max_photos: int = 320
    min_photos: int = 1
    cuts: Cuts | None = field(default=None, repr=False)  # where a partition split, once it has

    name = "kd-tree"

    def __post_init__(self) -> None:
        if self.max_photos < 1 or self.min_photos < 1:
            raise SettingError(
                f"max_photos is {self.max_photos} and min_photos {self.min_photos}; give at least 1"
            )
        if isinstance(self.cuts, dict):
            object.__setattr__(self, "cuts", Cuts.from_plain(self.cuts))

    def _cut(self, sheet: Sheet) -> Places:
        cuts, labels = grow(sheet.photos.east, sheet.photos.north, self.max_photos)
        found = tally(labels, len(cuts.leaves), self.min_photos)
        return Places.build(
            replace(self, cuts=cuts),
            sheet,
            labels=found.labels,
            ids=cuts.leaves[found.keys][:, None],
            counts=found.counts,
        )

    def find(self, ids: Ints, positions: Doubles, heading: Floats) -> Ints:
        """Which leaf each position lies in, -1 off the map of the photos: (N, 2) -> (N,)."""
        leaves = self._grown.leaves
        place = np.full(len(leaves) + 1, -1, np.int64)  # the last is for off the map
        place[np.searchsorted(leaves, ids[:, 0])] = np.arange(len(ids))
        return place[self._grown.find(positions)]

    def outlines(self, ids: Ints, zone: int) -> Doubles:
        """The box of each leaf: (C, 1) -> (C, 4, 2)."""
        return box_outlines(self._grown.boxes(ids[:, 0]))

    def settings(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"max_photos": self.max_photos, "min_photos": self.min_photos}
        return plain | {"cuts": None if self.cuts is None else self.cuts.to_plain()}

    @property
    def _grown(self) -> Cuts:
        if self.cuts is None:
            raise SettingError("this kd-tree has cut no map yet; call partition(photos)")
        return self.cuts
