"""Which database photos count as right: near enough, and looking the same way if asked.

Q queries · N database photos · P pairs
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import SettingError
from evenplace.photos.nearby import find_nearby
from evenplace.photos.table import Photos

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
        right &= queries.zone[asked] == database.zone[rows]
        if self.heading is not None:
            turn = np.abs(queries.heading[asked] - database.heading[rows]) % 360
            right &= np.minimum(turn, 360 - turn) <= self.heading
        return right & (rows >= 0)

    def answerable(self, queries: Photos, database: Photos) -> NDArray[np.bool_]:
        """Whether the database holds any match of each query.  (Q,)."""
        near = find_nearby(database, queries, self.radius)
        asked = np.repeat(np.arange(len(queries)), np.diff(near.starts))
        right = self.right(queries, database, asked, near.rows)
        return np.bincount(asked[right], minlength=len(queries)) > 0
