"""Under which conditions a query was taken: each name parts the queries by one question.

A query about which a question cannot be answered (no heading, no time) has the label "".

    Q queries · N database photos
"""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenplace.arrays import Ints
from evenplace.photos.nearby import Nearby, turn
from evenplace.photos.table import Photos

Labels = NDArray[np.str_]
LABELS = {
    "light": ("day", "night"),
    "season": ("spring", "summer", "autumn", "winter"),
    "looking": ("north", "east", "south", "west"),
    "turned": ("0-30°", "30-60°", "60-90°", "over 90°"),
    "away": ("0-5 m", "5-10 m", "10-25 m", "over 25 m"),
}
_SEASON_OF_MONTH = np.array([3, 3, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3])  # January first
_DAY, _NIGHT = (re.compile(rf"(^|[^a-z]){word}([^a-z]|$)", re.I) for word in ("day", "night"))


def find_conditions(queries: Photos, database: Photos, positives: Nearby) -> dict[str, Labels]:
    """Label every query under every condition that is known for at least one.

    light: the `night` column, or the word in the photo's note.  season: of the month, turned
    round in the south.  turned: between the query and the match that looks most alike.  away:
    metres to the nearest match (beyond 25 m where the radius is larger).
    """
    turned, away = _to_matches(queries, database, positives)
    numbers = {"light": _light(queries), "season": _season(queries), "looking": _looking(queries),
               "turned": turned, "away": away}  # fmt: skip
    return {
        name: np.array([*LABELS[name], ""])[which]
        for name, which in numbers.items()
        if (which >= 0).any()
    }


def _light(photos: Photos) -> Ints:
    names = photos.table.column_names
    if "night" in names:
        dark = photos.table.column("night")
        known = pc.is_valid(dark).to_numpy(zero_copy_only=False)
        return np.where(known, pc.fill_null(dark, False).to_numpy(zero_copy_only=False), -1).astype(
            np.int64
        )
    if "note" not in names:
        return np.full(len(photos), -1)
    notes = [note or "" for note in photos.table.column("note").to_pylist()]
    return np.array(
        [1 if _NIGHT.search(note) else 0 if _DAY.search(note) else -1 for note in notes], np.int64
    )


def _season(photos: Photos) -> Ints:
    if "time" not in photos.table.column_names:
        return np.full(len(photos), -1)
    months = pc.fill_null(pc.month(photos.table.column("time").cast(pa.timestamp("s"))), 0)
    month = months.to_numpy(zero_copy_only=False)  # 0 where unknown
    season = _SEASON_OF_MONTH[month - 1]
    return np.where(month > 0, np.where(photos.zone < 0, (season + 2) % 4, season), -1)


def _looking(photos: Photos) -> Ints:
    known = np.isfinite(photos.heading)
    quarter = np.floor(((np.nan_to_num(photos.heading) + 45) % 360) / 90).astype(np.int64)
    return np.where(known, quarter, -1)


def _to_matches(queries: Photos, database: Photos, positives: Nearby) -> tuple[Ints, Ints]:
    """The turn to the match that looks most alike, the metres to the nearest; -1 if unknown."""
    asked, rows = positives.query, positives.rows
    degrees = turn(queries.heading[asked], database.heading[rows])
    metres = np.hypot(*(queries.positions[asked] - database.positions[rows]).T)
    found = []
    for values, edges in ((degrees, [30, 60, 90]), (metres, [5, 10, 25])):
        least, known = np.full(len(queries), np.inf), np.isfinite(values)
        np.minimum.at(least, asked[known], values[known])
        found.append(np.where(np.isfinite(least), np.digitize(least, edges, right=True), -1))
    return found[0], found[1]
