"""Which photos lie within a radius of others: the ground truth of every test.

# N database photos · Q queries
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Ints, ranges, starts_of
from evenplace.errors import SettingError
from evenplace.photos.table import Photos

BLOCK = 4096  # queries at a time


@dataclass(frozen=True)
class Nearby:
    """For each query the database rows near it: rows[starts[q]:starts[q + 1]], ascending."""

    starts: Ints  # (Q + 1,)
    rows: Ints

    def of(self, query: int) -> Ints:
        return self.rows[self.starts[query] : self.starts[query + 1]]

    @property
    def counts(self) -> Ints:
        """How many each query has: (Q,)."""
        return np.diff(self.starts)

    @cached_property
    def query(self) -> Ints:
        """Which query each of the rows is near: as long as they are."""
        return np.repeat(np.arange(len(self.starts) - 1), self.counts)


def find_nearby(database: Photos, queries: Photos, radius: float = 25.0) -> Nearby:
    """Find the database photos within `radius` metres (at most, not below) of each query.

    Photos of different UTM zones are never near each other, so cities do not mix.
    """
    if not radius > 0:
        raise SettingError(f"radius is {radius}; give a positive number of metres")
    if not len(database) or not len(queries):
        return Nearby(np.zeros(len(queries) + 1, np.int64), np.empty(0, np.int64))
    side = radius * (1 + 1e-9)  # a rounded distance of one radius stays within neighbouring cells
    corner, height = _frame(database, side)
    keys = _keys(database, side, corner, height)
    order = np.argsort(keys, kind="stable")
    found: list[tuple[Ints, Ints]] = []
    for start in range(0, len(queries), BLOCK):
        block = queries[start : start + BLOCK]
        rows, query = _candidates(keys[order], _keys(block, side, corner, height), height)
        rows = order[rows]
        away = np.hypot(
            database.east[rows] - block.east[query], database.north[rows] - block.north[query]
        )
        near = (away <= radius) & (database.zone[rows] == block.zone[query])
        found.append((rows[near], query[near] + start))
    rows, query = (np.concatenate(part) for part in zip(*found, strict=True))
    return _by_query(rows, query, len(queries))


def find_frames(database: Photos, queries: Photos, tolerance: int) -> Nearby:
    """Find the database frames at most `tolerance` frames from each query's (Nordland)."""
    frames = database.column("frame")
    order = np.argsort(frames, kind="stable")
    wanted = queries.column("frame")
    first = np.searchsorted(frames[order], wanted - tolerance, "left")
    last = np.searchsorted(frames[order], wanted + tolerance, "right")
    rows, query = ranges(first, last)
    return _by_query(order[rows], query, len(wanted))


def turn(one: NDArray[np.floating], other: NDArray[np.floating]) -> NDArray[np.floating]:
    """Degrees between two headings, the shorter way round; nan where either is unknown."""
    away = np.abs(one - other) % 360
    shorter: NDArray[np.floating] = np.minimum(away, 360 - away)
    return shorter


def _frame(photos: Photos, radius: float) -> tuple[tuple[int, int], int]:
    """The south-west cell with a margin, and the number of cells from south to north."""
    west, south, north = (
        int(np.floor(value / radius))
        for value in (photos.east.min(), photos.north.min(), photos.north.max())
    )
    return (west - 2, south - 2), north - south + 5


def _keys(photos: Photos, radius: float, corner: tuple[int, int], height: int) -> Ints:
    """A number for each photo's cell of one radius; columns of cells lie `height` apart.

    Cells beyond the frame land on those of other columns, whose photos the distance then rejects.
    """
    column = np.floor(photos.east / radius).astype(np.int64) - corner[0]
    row = np.floor(photos.north / radius).astype(np.int64) - corner[1]
    return column * height + row


def _candidates(cells: Ints, wanted: Ints, height: int) -> tuple[Ints, Ints]:
    """Rows of the sorted `cells` in the nine cells around each one wanted, and whose they are."""
    parts = []
    for column in (-1, 0, 1):  # three cells above each other are neighbours in number too
        first = np.searchsorted(cells, wanted + column * height - 1, "left")
        last = np.searchsorted(cells, wanted + column * height + 1, "right")
        parts.append(ranges(first, last))
    rows, query = (np.concatenate(part) for part in zip(*parts, strict=True))
    return rows, query


def _by_query(rows: Ints, query: Ints, count: int) -> Nearby:
    order = np.lexsort((rows, query))
    starts = starts_of(np.bincount(query, minlength=count))
    return Nearby(starts, rows[order])
