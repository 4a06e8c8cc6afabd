"""How well held-out photos are found among those that train: the measure that chooses an epoch.

Nearest neighbour by descriptor, right within 25 m.  Never the test set: the photos are a share of
the training set's own spots.

    Q held-out photos · N photos that train · D descriptor
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenplace.arrays import Bools, Ints, renumber
from evenplace.photos.choose import split_by_position
from evenplace.photos.nearby import find_nearby
from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.places.tiers import TIERS, tiers
from evenplace.training.photo_source import PhotoSource

RADIUS = 25.0
_CHUNK = 256


@dataclass(frozen=True)
class Recall:
    """Share of held-out photos whose nearest neighbour was taken within 25 m, by tier."""

    overall: float
    head: float
    middle: float
    tail: float
    queries: int

    def as_dict(self) -> dict[str, Any]:
        """For the log, in percent; a tier nobody asked about is left out."""
        named = {"recall": self.overall} | {f"recall_{name}": getattr(self, name) for name in TIERS}
        found = {key: round(100 * value, 2) for key, value in named.items() if value == value}
        return found | {"queries": self.queries}

    def __str__(self) -> str:
        parts = [f"{name} {100 * getattr(self, name):.1f}" for name in TIERS]
        return f"R@1 {100 * self.overall:.1f} ({', '.join(parts)}) of {self.queries} photos"


class HeldOut:
    """Photos kept from training.  rows: (Q,) theirs, train: (N,) the others', of all photos."""

    def __init__(self, photos: Photos, places: Places, rows: Ints) -> None:
        train = np.flatnonzero(places.labels >= 0)
        self.near = find_nearby(photos[train], photos[rows], RADIUS)
        self.rows, self.train = rows, train
        place = places.locate(photos[rows])
        self.tier = np.where(place >= 0, places.tiers[place] if len(places) else 0, 2)

    def recall(self, source: PhotoSource) -> Recall:
        """Ask every held-out photo that has a neighbour to find; the others cannot be found."""
        asked = np.flatnonzero((self.near.counts > 0) & source.readable[self.rows])
        database, queries = source.look(self.train), source.look(self.rows[asked])
        right = np.zeros(len(asked), bool)
        for start in range(0, len(asked), _CHUNK):
            best = (queries[start : start + _CHUNK] @ database.T).argmax(axis=1)
            for at, found in enumerate(best, start):
                right[at] = found in self.near.of(int(asked[at]))
        head, middle, tail = (_mean(right[self.tier[asked] == tier]) for tier in range(3))
        return Recall(_mean(right), head, middle, tail, len(asked))


def hold_out(photos: Photos, share: float, seed: int) -> Ints:
    """Rows of the photos to hold out: a share of the spots, so that no spot is on both sides."""
    numbered = Photos(photos.table.append_column("row", [np.arange(len(photos))]))
    _, held = split_by_position(numbered, (1 - share, share), seed)
    return held.column("row").astype(np.int64)


def without(places: Places, rows: Ints) -> Places:
    """The places as if some photos had never been taken; places left without any are gone."""
    labels = places.labels.copy()
    labels[rows] = -1
    counts = np.bincount(labels[labels >= 0], minlength=len(places))
    kept = counts > 0
    left = counts[kept]
    return replace(places.take(kept), labels=renumber(kept)[labels], counts=left, tiers=tiers(left))


def _mean(right: Bools) -> float:
    return float(right.mean()) if len(right) else float("nan")
