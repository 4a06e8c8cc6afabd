"""Square cells (Eq. 1), interleaved groups of them, and heading bins: CosPlace's and D&C's classes;
and EigenPlaces': cells whose photos all look at one point, beside the street or along it.

# N photos · C places
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Doubles, Floats, Ints, blocks, renumber
from evenplace.errors import PlaceError, SettingError
from evenplace.photos.nearby import turn
from evenplace.photos.table import Photos
from evenplace.places.cities import CutByCity
from evenplace.places.keys import Span, look_up, tally
from evenplace.places.maps import Sheet
from evenplace.places.table import Places

EXACT = 1 << 52  # whole numbers below this are exact as floats
CORNERS = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
VIEWS = ("lateral", "frontal")


@dataclass(frozen=True)
class Grid(CutByCity):
    """Cut the map into square cells of `cell` metres (Eq. 1), optionally by heading too.

        i = floor(east / cell),  j = floor(north / cell),  h = floor(heading / (360 / heading_bins))

    `groups` = N interleaves N × N sub-lattices, i mod N and j mod N, each with its own softmax, so
    that cells of one group are never adjacent; `heading_groups` = L does the same for headings.
    `groups_in_use` keeps the first so many groups and leaves the photos of the others outside.
    Cells with fewer than `min_photos` are no places.  CosPlace is `Grid.cosplace()`.
    """

    cell: float = 20.0
    min_photos: int = 1
    groups: int = 1
    heading_bins: int = 1
    heading_groups: int = 1
    groups_in_use: int | None = None

    name = "grid"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.cell) and self.cell > 0):
            raise SettingError(f"cell is {self.cell}; give a positive number of metres")
        for name in ("min_photos", "groups", "heading_bins", "heading_groups"):
            if getattr(self, name) < 1:
                raise SettingError(f"{name} is {getattr(self, name)}; give at least 1")
        if self.groups_in_use is not None and not 1 <= self.groups_in_use <= self.group_total:
            raise SettingError(
                f"groups_in_use is {self.groups_in_use}; give 1 to {self.group_total}"
            )
        L, bins = self.heading_groups, self.heading_bins
        if L > 1 and (bins - 1) % L == 0:
            raise SettingError(
                f"heading_groups is {L}, which puts the first and the last of {bins} heading bins, "
                f"neighbours across north, in one group; take a divisor of {bins}"
            )

    @classmethod
    def cosplace(cls) -> "Grid":
        """CosPlace's classes: M = 10 m, α = 30°, N = 5, L = 2, 8 of the 50 groups in use.

        CosPlace takes the first 8 groups that appear among its sorted paths; we take the first 8
        by number, because an order of photos must not decide it.
        """
        return cls(cell=10.0, min_photos=10, groups=5, heading_bins=12, heading_groups=2,
                   groups_in_use=8)  # fmt: skip

    @property
    def group_total(self) -> int:
        """How many groups there can be: N × N × L."""
        return self.groups**2 * self.heading_groups

    def _cut(self, sheet: Sheet) -> Places:
        photos = sheet.photos
        span = self._span(photos)
        keys = np.empty(len(photos), np.int64)
        east, north, heading = photos.east, photos.north, photos.heading
        for rows in blocks(len(keys)):
            keys[rows] = self._keys(span, east[rows], north[rows], heading[rows])
        found = tally(keys, span.total, self.min_photos)
        return self._places(span.unpack(found.keys), found.counts, found.labels, sheet)

    def find(self, ids: Ints, positions: Doubles, heading: Floats) -> Ints:
        """Which cell each position lies in: (N, 2) -> (N,)."""
        if not len(ids):
            return np.full(len(positions), -1, np.int64)
        span = Span.between(ids.min(axis=0), ids.max(axis=0))
        columns = self._columns(positions[:, 0], positions[:, 1], heading)
        return look_up(span.pack(ids.T), span.pack(columns), span.total)

    def outlines(self, ids: Ints) -> Doubles:
        """The square of each cell: (C, k) -> (C, 4, 2)."""
        corners: Doubles = (ids[:, None, :2] + CORNERS) * self.cell
        return corners

    def group_of(self, ids: Ints) -> NDArray[np.int32]:
        """The group of each cell, CosPlace's triple as one number: (C, k) -> (C,)."""
        N = self.groups
        group = (ids[:, 0] % N) * N + ids[:, 1] % N
        if self.heading_bins > 1:
            group = group * self.heading_groups + ids[:, 2] % self.heading_groups
        return group.astype(np.int32)

    def _span(self, photos: Photos) -> Span:
        low, high = cell_range(photos, self.cell)
        if self.heading_bins > 1:
            low, high = [*low, 0], [*high, self.heading_bins - 1]
        return Span.between(low, high)

    def _columns(self, east: Doubles, north: Doubles, heading: Floats) -> list[Ints]:
        columns = [cell_numbers(east, self.cell), cell_numbers(north, self.cell)]
        if self.heading_bins > 1:
            known = np.nan_to_num(heading, nan=-1.0)  # bin -1 is outside every span
            columns.append(cell_numbers(known.astype(np.float64), 360 / self.heading_bins))
        return columns

    def _keys(self, span: Span, east: Doubles, north: Doubles, heading: Floats) -> Ints:
        """The keys of photos that the span was made around: `span.pack` without its checks."""
        if span.total >= EXACT:
            return span.pack(self._columns(east, north, heading))
        key = floor_cells(east, self.cell)
        key -= span.low[0]
        key *= span.size[1]
        key += floor_cells(north, self.cell)
        key -= span.low[1]
        if self.heading_bins > 1:
            key *= self.heading_bins
            key += floor_cells(np.nan_to_num(heading), 360 / self.heading_bins)
            key[np.isnan(heading)] = span.total
        return key.astype(np.int64)

    def _places(self, ids: Ints, counts: Ints, labels: Ints, sheet: Sheet) -> Places:
        groups = self.group_of(ids)
        if self.groups_in_use is not None:
            used = groups < self.groups_in_use
            ids, counts, groups = ids[used], counts[used], groups[used]
            labels = renumber(used)[labels]
        return Places.build(self, sheet, labels=labels, ids=ids, counts=counts, groups=groups)


@dataclass(frozen=True)
class GridGroups(Grid):
    """Divide&Classify's classes: cells of 20 m, 2 × 2 interleaved groups, 10 photos at least."""

    groups: int = 2
    min_photos: int = 10


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

    def outlines(self, ids: Ints) -> Doubles:
        return self.grid.outlines(ids)

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


def cell_range(photos: Photos, cell: float) -> tuple[list[int], list[int]]:
    """Column and row of the south-westernmost cell with photos, and of the north-easternmost."""
    ends = (np.array([axis.min(), axis.max()]) for axis in (photos.east, photos.north))
    (west, east), (south, north) = (cell_numbers(end, cell).tolist() for end in ends)
    return [west, south], [east, north]


def cell_numbers(metres: Doubles, cell: float) -> Ints:
    """floor(x / cell), exactly: a photo a hair west of a boundary stays west of it.

    The rounded quotient may land on the boundary, so it is checked against it; this gives what
    Python's `x // cell` gives, several times faster.
    """
    cells = floor_cells(metres, cell)
    if cells.size and np.abs(cells).max() >= EXACT:
        worst = metres[np.abs(cells).argmax()]
        raise SettingError(f"a coordinate of {worst} is beyond any map; check the photos")
    return cells.astype(np.int64)


def floor_cells(metres: Doubles, cell: float) -> Doubles:
    """Cell numbers as floats, which hold them exactly below 2^52."""
    cells: Doubles = metres / cell
    np.floor(cells, out=cells)
    cells -= cells * cell > metres
    return cells
