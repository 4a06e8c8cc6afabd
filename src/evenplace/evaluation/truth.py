"""Which database photos count as right: near enough, and looking the same way if asked.

Q queries · N database photos · P pairs
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import SettingError
from evenplace.photos.nearby import Nearby, find_frames, find_nearby, turn
from evenplace.photos.table import Photos

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Truth:
    """A photo is a match within `radius` metres (inclusive), and `heading` degrees if given.

    frames: a match is instead at most so many frames away, as Nordland counts; the photos then
    need a `frame` column.
    """

    radius: float = 25.0
    heading: float | None = None
    frames: int | None = None

    def __post_init__(self) -> None:
        if not self.radius > 0:
            raise SettingError(f"radius={self.radius} must be a positive number of metres")
        if self.heading is not None and not 0 <= self.heading <= 180:
            raise SettingError(f"heading={self.heading} must be 0 to 180 degrees")
        if self.frames is not None and self.frames < 0:
            raise SettingError(f"frames={self.frames} must be 0 or more")

    def __str__(self) -> str:
        if self.frames is not None:
            return f"±{self.frames} frames"
        turn = "" if self.heading is None else f" and {self.heading:g}°"
        return f"{self.radius:g} m{turn}"

    def right(
        self, queries: Photos, database: Photos, asked: Rows, rows: Rows
    ) -> NDArray[np.bool_]:
        """Whether database photo rows[i] answers query asked[i]; row -1 never does.  (P,)."""
        if self.frames is not None:
            gap = queries.column("frame")[asked] - database.column("frame")[rows]
            near: NDArray[np.bool_] = (np.abs(gap) <= self.frames) & (rows >= 0)
            return near
        east = queries.east[asked] - database.east[rows]
        north = queries.north[asked] - database.north[rows]
        right = np.hypot(east, north) <= self.radius
        right &= queries.zone[asked] == database.zone[rows]
        if self.heading is not None:
            right &= turn(queries.heading[asked], database.heading[rows]) <= self.heading
        return right & (rows >= 0)

    def positives(self, queries: Photos, database: Photos) -> Nearby:
        """The matches of each query."""
        if self.frames is not None:
            return find_frames(database, queries, self.frames)
        near = find_nearby(database, queries, self.radius)
        if self.heading is None:
            return near
        asked = np.repeat(np.arange(len(queries)), near.counts)
        kept = self.right(queries, database, asked, near.rows)
        counts = np.bincount(asked[kept], minlength=len(queries))
        return Nearby(np.append(0, np.cumsum(counts)), near.rows[kept])
