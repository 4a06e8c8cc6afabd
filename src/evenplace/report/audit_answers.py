"""What a model answered, for the audit: our Parquet, or the text files of VPR-methods-evaluation.

# Q queries
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from evenplace.arrays import Bools, Doubles
from evenplace.errors import PhotoError
from evenplace.evaluation.intervals import Interval, interval
from evenplace.evaluation.predictions import read_texts
from evenplace.photos.layouts.sfxl import read_names
from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.places.tiers import TIERS

RADIUS = 25.0  # metres within which an answer is right where no file says what is


@dataclass(frozen=True)
class Answers:
    """Where each query was taken, and whether its first answer was right."""

    positions: Doubles  # (Q, 2)
    zones: NDArray[np.int8]  # (Q,)
    right: Bools  # (Q,)
    names: list[str]


def read_answers(path: str | Path, photos: Photos) -> Answers:
    """Read predictions.parquet, one text file, or a folder of them (one a query)."""
    where = Path(path)
    if where.suffix == ".parquet":
        return _read_parquet(where)
    asked = read_texts(where)
    queries = [one.query for one in asked]
    firsts = [one.hits[0] for one in asked]
    known = {Path(one).name: row for row, one in enumerate(photos.paths)}
    at, zones = _positions(queries, photos, known)
    best, others = _positions(firsts, photos, known)
    near = (np.hypot(*(at - best).T) <= RADIUS) & (zones == others)
    listed = np.array([one.hits[0] in one.positives for one in asked], bool)
    told = np.array([bool(one.positives) for one in asked], bool)
    return Answers(at, zones, np.where(told, listed, near), queries)


def _read_parquet(file: Path) -> Answers:
    """Our own predictions; of their columns only those that are needed."""
    try:
        table = pq.read_table(file, columns=["path", "east", "north", "zone", "hit_right"])
        right = pc.list_element(table.column("hit_right"), 0).to_numpy()
    except (OSError, pa.ArrowException) as cause:
        raise PhotoError(f"{file} holds no predictions ({cause}); evaluate again") from cause
    positions = np.stack([table.column(axis).to_numpy() for axis in ("east", "north")], axis=1)
    zones = table.column("zone").to_numpy()
    return Answers(positions, zones, right.astype(bool), table.column("path").to_pylist())


def recall_by_tier(answers: Answers, places: Places) -> list[tuple[str, int, Interval]]:
    """Recall@1 overall, by the tier of each query's place, and outside every place."""
    found = places.locate(answers.positions, zone=answers.zones)
    tier = np.where(found >= 0, places.tiers[found] if len(places) else -1, -1)
    rows = []
    for name, mine in [
        ("all", np.ones(len(tier), bool)),
        *((name, tier == number) for number, name in enumerate(TIERS)),
        ("no place", tier == -1),
    ]:
        if mine.any():
            # Queries of one place stand or fall together; those outside stand alone.
            spot = np.where(found >= 0, found, len(places) + np.arange(len(found)))[mine]
            rows.append((name, int(mine.sum()), interval(answers.right[mine].astype(float), spot)))
    return rows


def _positions(
    names: list[str], photos: Photos, known: dict[str, int]
) -> tuple[Doubles, NDArray[np.int8]]:
    """Positions and zones from the names, or of the photo audited that has the name."""
    read = read_names(pa.array(names, pa.large_string()))
    at, zones = np.full((len(names), 2), np.nan), np.zeros(len(names), np.int8)
    if len(read.rows):
        columns = [np.asarray(read.columns[axis]) for axis in ("east", "north")]
        at[read.rows] = np.stack(columns, axis=1)
        zones[read.rows] = np.asarray(read.columns["zone"])
    for row in np.flatnonzero(np.isnan(at[:, 0])):
        name = Path(names[row]).name
        if name not in known:
            raise PhotoError(
                f"{names[row]} says no position and is not among the photos audited; "
                "audit the folder the predictions are of"
            )
        at[row] = photos.east[known[name]], photos.north[known[name]]
        zones[row] = photos.zone[known[name]]
    return at, zones
