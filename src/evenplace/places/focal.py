"""EigenPlaces' classes: cells whose photos all look at one point, beside the street or along it.

# N photos · C places
"""

from dataclasses import dataclass, field, replace

import numpy as np

from evenplace.arrays import Doubles, Floats, Ints, renumber
from evenplace.errors import PlaceError, SettingError
from evenplace.photos.nearby import turn
from evenplace.photos.table import Photos
from evenplace.places.cities import CutByCity
from evenplace.places.grid import Grid
from evenplace.places.table import Places, Sheet

VIEWS = ("lateral", "frontal")


@dataclass(frozen=True)
class FocalGrid(CutByCity):
    """Cut square cells, and give each a focal point `distance` metres from its photos' mean.

    The first principal direction of the photos in a cell is the street's.  view="lateral" looks
    across it, view="frontal" along it; of the two opposite points the northern one is taken (the
    eastern one when level).  Photos with
    headings belong to a place only when they look within `tolerance` degrees of its point.
    EigenPlaces: 15 m, 3 × 3 groups, 5 panoramas, 10 m, one partition for each view.
    """

    view: str = "lateral"
    cell: float = 15.0
    groups: int = 3
    min_photos: int = 5
    distance: float = 10.0
    tolerance: float | None = None
    points: tuple[tuple[float, float], ...] = field(default=(), repr=False)  # (C, 2) once cut

    name = "focal-grid"

    def __post_init__(self) -> None:
        if self.view not in VIEWS:
            raise SettingError(f"view is {self.view!r}; it is one of {', '.join(VIEWS)}")
        if not self.distance > 0:
            raise SettingError(f"distance is {self.distance}; give a positive number of metres")
        if self.tolerance is not None and not 0 < self.tolerance <= 180:
            raise SettingError(f"tolerance is {self.tolerance}; give degrees from 0 to 180")
        object.__setattr__(self, "points", tuple((e, n) for e, n in self.points))

    @property
    def grid(self) -> Grid:
        """The cells alone."""
        return Grid(cell=self.cell, groups=self.groups, min_photos=self.min_photos)

    def _cut(self, sheet: Sheet) -> Places:
        photos = sheet.photos
        cells = self.grid.partition(photos)
        points = self._focal_points(photos, cells)  # (C, 2)
        rule = replace(self, points=tuple(map(tuple, points.tolist())))
        labels = rule.find(cells.ids, photos.positions, photos.heading)
        counts = np.bincount(labels[labels >= 0], minlength=len(cells))
        keep = counts >= self.min_photos
        return Places.build(
            replace(rule, points=tuple(map(tuple, points[keep].tolist()))),
            sheet,
            labels=renumber(keep)[labels],
            ids=cells.ids[keep],
            counts=counts[keep],
            groups=cells.groups[keep],
        )

    def find(self, ids: Ints, positions: Doubles, heading: Floats) -> Ints:
        """Which place each photo belongs to: (N, 2) -> (N,)."""
        labels = self.grid.find(ids, positions, heading)
        if self.tolerance is None:
            return labels
        away = turn(heading, self._bearings(positions, labels))
        return np.where(away <= self.tolerance, labels, -1)  # an unknown heading is nowhere

    def outlines(self, ids: Ints, zone: int) -> Doubles:
        return self.grid.outlines(ids, zone)

    def _bearings(self, positions: Doubles, labels: Ints) -> Doubles:
        points = np.array(self.points).reshape(-1, 2)
        if len(points) == 0 and (labels >= 0).any():
            raise PlaceError("this partition has no focal points yet; use the rule of its Places")
        aim = np.full(len(labels), np.nan)
        inside = labels >= 0
        east, north = (points[labels[inside]] - positions[inside]).T
        aim[inside] = np.mod(np.degrees(np.arctan2(east, north)), 360)
        return aim

    def _focal_points(self, photos: Photos, cells: Places) -> Doubles:
        inside = cells.labels >= 0
        labels, count = cells.labels[inside], np.maximum(cells.counts, 1)
        mean = np.stack(
            [
                np.bincount(labels, axis[inside] - origin, len(cells)) / count + origin
                for axis, origin in ((axis, axis.min()) for axis in (photos.east, photos.north))
            ],
            axis=1,
        )  # (C, 2)
        x = photos.east[inside] - mean[labels, 0]
        y = photos.north[inside] - mean[labels, 1]
        xx, yy, xy = (np.bincount(labels, one, len(cells)) for one in (x * x, y * y, x * y))
        street = 0.5 * np.arctan2(2 * xy, xx - yy)  # angle of the first principal direction
        angle = street + (np.pi / 2 if self.view == "lateral" else 0.0)
        look = np.stack([np.cos(angle), np.sin(angle)], axis=1)  # (C, 2)
        level = np.abs(look[:, 1]) < 1e-9
        down = np.where(level, look[:, 0] < 0, look[:, 1] < 0)
        point = mean + self.distance * np.where(down[:, None], -look, look)
        return np.round(point, 3)  # sums depend on the order of photos in their last digits
