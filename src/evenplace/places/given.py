"""Places that a data set brings with it: GSV-Cities' place, MSLS's cluster, a clique.

# N photos · C places
"""

from dataclasses import dataclass, field, replace

import numpy as np

from evenplace.arrays import Bools, Doubles, Floats, Ints, renumber
from evenplace.errors import PlaceError, SettingError
from evenplace.photos.nearby import find_nearby
from evenplace.photos.table import Photos
from evenplace.places.cities import CutByCity
from evenplace.places.maps import Sheet
from evenplace.places.table import Places, box_outlines


@dataclass(frozen=True)
class Given(CutByCity):
    """Take the places of a column: photos with the same value, in one city, share a place.

    A photo that the places were not made from belongs to the place whose middle is nearest, if
    that is within `reach` metres.  Photos without a value, or below 0, are in no place.  The id
    of a place is its value; words are numbered in their order.
    """

    column: str = "place"
    min_photos: int = 1
    reach: float = 25.0
    boxes: tuple[tuple[float, float, float, float], ...] = field(default=(), repr=False)

    name = "given"

    def __post_init__(self) -> None:
        if self.min_photos < 1 or not self.reach > 0:
            raise SettingError(
                f"min_photos is {self.min_photos} and reach {self.reach}; give at least 1 photo "
                "and a positive number of metres"
            )
        object.__setattr__(self, "boxes", tuple(tuple(box) for box in self.boxes))

    def partition(self, photos: Photos) -> Places:
        """Sort the photos into the places they say they are of."""
        if self.column not in photos.table.column_names:
            raise PlaceError(
                f"these photos have no column {self.column!r} that says their places; they have "
                f"{', '.join(photos.table.column_names)}"
            )
        return super().partition(photos)

    def _cut(self, sheet: Sheet) -> Places:
        values, known = _values(sheet.photos, self.column)
        ids, at, counts = np.unique(values[known], return_inverse=True, return_counts=True)
        keep = counts >= self.min_photos
        labels = np.full(len(values), -1, np.int64)
        labels[known] = renumber(keep)[at]
        boxes = _boxes(sheet.photos, labels, int(keep.sum()))
        return Places.build(
            replace(self, boxes=tuple(map(tuple, boxes.tolist()))),
            sheet,
            labels=labels,
            ids=ids[keep][:, None],
            counts=counts[keep],
        )

    def find(self, ids: Ints, positions: Doubles, heading: Floats) -> Ints:
        """The place whose middle is nearest each position, within reach: (N, 2) -> (N,)."""
        if not len(ids):
            return np.full(len(positions), -1, np.int64)
        centres = self.outlines(ids).mean(axis=1)
        return nearest_within(Photos.at(centres), Photos.at(positions), self.reach)

    def outlines(self, ids: Ints) -> Doubles:
        """The box around the photos of each place: (C, 1) -> (C, 4, 2)."""
        return box_outlines(np.array(self.boxes).reshape(-1, 4))


def nearest_within(centres: Photos, asked: Photos, radius: float) -> Ints:
    """The centre nearest to each photo, -1 where none is within the radius: (N,)."""
    near = find_nearby(centres, asked, radius)
    gap = np.linalg.norm(asked.positions[near.query] - centres.positions[near.rows], axis=1)
    found = np.full(len(asked), -1, np.int64)
    farthest_first = np.argsort(-gap, kind="stable")  # so that the nearest is written last
    found[near.query[farthest_first]] = near.rows[farthest_first]
    return found


def _values(photos: Photos, column: str) -> tuple[Ints, Bools]:
    """The value of each photo as a number, and whether it has one."""
    values = photos.table.column(column).combine_chunks()
    known = np.asarray(values.is_valid())
    filled = photos.column(column)
    if filled.dtype.kind in "iuf":
        numbers = np.nan_to_num(filled, nan=-1).astype(np.int64)
    else:
        numbers = np.full(len(known), -1, np.int64)
        numbers[known] = np.unique(filled[known].astype(str), return_inverse=True)[1]
    return numbers, known & (numbers >= 0)


def _boxes(photos: Photos, labels: Ints, count: int) -> Doubles:
    """West, south, east and north of the photos of each place, a metre wide at least.  (C, 4)."""
    boxes = np.tile(np.array([np.inf, np.inf, -np.inf, -np.inf]), (count, 1))
    inside = labels >= 0
    for axis, values in enumerate((photos.east, photos.north)):
        np.minimum.at(boxes[:, axis], labels[inside], values[inside])
        np.maximum.at(boxes[:, axis + 2], labels[inside], values[inside])
        thin = np.maximum(1.0 - (boxes[:, axis + 2] - boxes[:, axis]), 0) / 2
        boxes[:, axis] -= thin
        boxes[:, axis + 2] += thin
    return boxes.round(3)
