"""Which database photos count as right, and what that makes of a ranking.

Q queries · N database photos · P pairs · k hits
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evenplace.arrays import Bools, Doubles, Ints, starts_of
from evenplace.errors import PhotoError, RunError, SettingError
from evenplace.photos.nearby import Nearby, find_frames, find_nearby, turn
from evenplace.photos.protocols import TestSet, read_protocol
from evenplace.photos.table import Photos
from evenplace.retrieval import open_index

RANKS = (1, 5, 10, 20)


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

    def check_headings(self, queries: Photos, database: Photos) -> None:
        """Refuse to count as wrong what nobody can tell."""
        for photos, named in ((queries, "queries"), (database, "database photos")):
            if self.heading is not None and np.isnan(photos.heading).all():
                raise PhotoError(
                    f"heading={self.heading:g} asks which way photos look, and none of the "
                    f"{len(photos)} {named} says; leave heading out"
                )

    def right(self, queries: Photos, database: Photos, asked: Ints, rows: Ints) -> Bools:
        """Whether database photo rows[i] answers query asked[i]; row -1 never does.  (P,)."""
        if self.frames is not None:
            gap = queries.column("frame")[asked] - database.column("frame")[rows]
            near: Bools = (np.abs(gap) <= self.frames) & (rows >= 0)
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
        kept = self.right(queries, database, near.query, near.rows)
        counts = np.bincount(near.query[kept], minlength=len(queries))
        return Nearby(starts_of(counts), near.rows[kept])


def first_right(right: Bools) -> Ints:
    """Rank of the first right hit, -1 where none is.  right: (Q, k) -> (Q,)."""
    if not right.shape[1]:
        return np.full(len(right), -1, dtype=np.int64)
    return np.where(right.any(axis=1), right.argmax(axis=1), -1)


def average_precisions(right: Bools, positives: Ints, k: int) -> Doubles:
    """Average precision of each query's first k hits; their mean is mAP@k.

        AP@k = sum_{i <= k} right_i (share right among the first i) / min(k, positives)

    as Mapillary's challenge has it.  A query without positives gets 0: leave it out or count it,
    as the protocol says.  right: (Q, k'), positives: (Q,) database photos that count -> (Q,).
    """
    right = right[:, :k]
    if not right.shape[1]:
        return np.zeros(len(right))
    share = np.cumsum(right, axis=1) / np.arange(1, right.shape[1] + 1)
    found: Doubles = (share * right).sum(axis=1)
    return found / np.maximum(np.minimum(positives, k), 1)


def read_test(index: Path, name: str, path: Path, allow_partial: bool = False) -> TestSet:
    """Read a named test and make sure that the index is of its database.

    A few photos that could not be decoded are no obstacle to a part; more photos than the test
    has always are.
    """
    test = read_protocol(name, path, allow_partial)
    indexed = len(open_index(index))
    if indexed > len(test.database) or (indexed < len(test.database) and not allow_partial):
        raise RunError(
            f"{index} has {indexed:,} photos and {name} has {len(test.database):,}; index that "
            f"database first: evenplace index {index.parent} --database PHOTOS"
        )
    return test
