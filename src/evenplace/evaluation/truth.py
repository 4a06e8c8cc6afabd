"""Which database photos count as right: near enough, and looking the same way if asked.

Q queries · N database photos · P pairs
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import SettingError
from evenplace.photos.table import Photos

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Truth:
    """A photo is a match within `radius` metres (inclusive), and `heading` degrees if given."""

    radius: float = 25.0
    heading: float | None = None

    def __post_init__(self) -> None:
        if not self.radius > 0:
            raise SettingError(f"radius={self.radius} must be a positive number of metres")

    def right(
        self, queries: Photos, database: Photos, asked: Rows, rows: Rows
    ) -> NDArray[np.bool_]:
        """Whether database photo rows[i] answers query asked[i]; row -1 never does.  (P,)."""
        gap = queries.positions[asked] - database.positions[rows]
        right = np.hypot(gap[:, 0], gap[:, 1]) <= self.radius
        if self.heading is not None:
            turn = np.abs(queries.heading[asked] - database.heading[rows]) % 360
            right &= np.minimum(turn, 360 - turn) <= self.heading
        return right & (rows >= 0)

    def answerable(self, queries: Photos, database: Photos) -> NDArray[np.bool_]:
        """Whether the database holds any match of each query.  (Q,)."""
        found = np.zeros(len(queries), bool)
        for asked, rows in nearby(queries.positions, database.positions, self.radius):
            found[asked[self.right(queries, database, asked, rows)]] = True
        return found


def nearby(points: Floats, others: Floats, radius: float) -> Iterator[tuple[Rows, Rows]]:
    """Pairs that may lie within `radius`: both in neighbouring cells of that size, block by block.

    Memory is bounded by the pairs of one of nine neighbour directions.
    """
    if not len(points) or not len(others):
        return
    cells = np.floor(np.concatenate([points, others]) / radius).astype(np.int64)
    cells -= cells.min(axis=0) - 1
    width = int(cells[:, 1].max()) + 2
    keys = cells[:, 0] * width + cells[:, 1]
    mine, theirs = keys[: len(points)], keys[len(points) :]
    order = np.argsort(theirs, kind="stable")
    theirs = theirs[order]
    for step in (-width - 1, -width, -width + 1, -1, 0, 1, width - 1, width, width + 1):
        low = np.searchsorted(theirs, mine + step, "left")
        many = np.searchsorted(theirs, mine + step, "right") - low
        asked = np.repeat(np.arange(len(points)), many)
        within = np.arange(len(asked)) - np.repeat(np.cumsum(many) - many, many)
        yield asked, order[np.repeat(low, many) + within]
