"""Where the next photos would help most: places with few photos first, and gaps in a street.

    r(n) = a (1 - exp(-n / t))

is how often a query is right where n photos are within 25 m; a and t are fitted to held-out
answers where there are some.  One photo more is worth r(n + 1) - r(n), weighed by how much of
what the curve leaves open is open at that place; photos are given out one by one, each where it
is worth most.

    C places · W wanted · V held-out photos
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import SettingError
from evenplace.photos.nearby import find_nearby
from evenplace.photos.table import Photos
from evenplace.places.table import Places

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
RADIUS = 25.0
STRENGTH = 4.0  # held-out photos that the curve is worth against a place's own
STREET = 0.5  # chance that a gap is a street at all
SIDES = ("north", "east", "south", "west")


@dataclass(frozen=True)
class Curve:
    """How often a query is right where so many photos are near; as usual, unless fitted."""

    height: float = 0.9
    pace: float = 2.5

    def __call__(self, photos: NDArray[np.number]) -> Floats:
        return np.asarray(self.height * (1 - np.exp(-np.asarray(photos, float) / self.pace)))


@dataclass(frozen=True)
class HeldOut:
    """Photos asked about as if the database did not have them."""

    places: Ints  # (V,)
    near: Ints  # (V,) other photos within 25 m
    right: NDArray[np.bool_]  # (V,)


@dataclass(frozen=True)
class Wanted:
    """A spot to photograph."""

    east: float
    north: float
    zone: int
    photos: int  # to take there
    have: int  # within 25 m now
    gain: float  # right answers more in 100 questions about this spot
    sides: tuple[str, ...]  # ways to look that no photo has yet
    between: bool  # in a gap between photographed places: a street by guess


def fit_curve(held: HeldOut) -> Curve:
    """The curve with the least squared error; the usual one where little was held out."""
    if len(held.right) < 30:
        return Curve()
    found = [(float(np.sum((Curve(a, t)(held.near) - held.right) ** 2)), a, t)
             for a in np.arange(0.3, 1.001, 0.05) for t in np.geomspace(0.3, 30, 25)]  # fmt: skip
    _, height, pace = min(found)
    return Curve(float(height), float(pace))


def find_wanted(
    photos: Photos, places: Places, most: int = 100, held: HeldOut | None = None
) -> list[Wanted]:
    """Spots for `most` photos, the most useful first."""
    if most < 1:
        raise SettingError(f"--most {most} wants no photos; use 1 or more")
    held = held or HeldOut(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, bool))
    curve = fit_curve(held)
    gaps = find_gaps(places)
    spots = np.concatenate([places.centres, gaps[:, :2]])
    zones = np.concatenate([places.zones, gaps[:, 2].astype(np.int8)])
    asked = Photos.from_arrays(east=spots[:, 0], north=spots[:, 1], zone=zones)
    near = find_nearby(photos, asked, RADIUS)
    have = near.counts
    leave = np.ones(len(spots))  # how open each place is, against the curve
    if len(held.right):
        trials = np.bincount(held.places, minlength=len(spots)).astype(float)
        good = np.bincount(held.places, held.right, len(spots))
        expected = curve(have)
        own = (good + STRENGTH * expected) / (trials + STRENGTH)
        leave = (1 - own) / np.maximum(1 - expected, 1e-6)
    leave[len(places) :] *= STREET
    added, gain = _give_out(curve, have, leave, most)
    order = np.lexsort((np.arange(len(spots)), -gain))
    return [
        Wanted(
            east=float(spots[row, 0]),
            north=float(spots[row, 1]),
            zone=int(zones[row]),
            photos=int(added[row]),
            have=int(have[row]),
            gain=round(100 * float(gain[row]), 1),
            sides=_unseen(photos.heading[near.of(row)]),
            between=bool(row >= len(places)),
        )
        for row in order.tolist()
        if added[row]
    ]


def find_gaps(places: Places) -> Floats:
    """Spots between two photographed places 30 to 60 m apart that nobody photographed.

    East, north and zone: (G, 3).  The street network of the photos themselves: where a street is
    photographed before and after, it goes on between.
    """
    centres = Photos.from_arrays(
        east=places.centres[:, 0], north=places.centres[:, 1], zone=places.zones
    )
    near = find_nearby(centres, centres, 60.0)
    here = np.repeat(np.arange(len(centres)), near.counts)
    pairs = (near.rows > here) & (
        np.linalg.norm(places.centres[near.rows] - places.centres[here], axis=1) >= 30.0
    )
    middle = (places.centres[near.rows[pairs]] + places.centres[here[pairs]]) / 2
    if not len(middle):
        return np.empty((0, 3))
    cells = np.unique(np.column_stack([np.round(middle / 20.0), places.zones[here[pairs]]]), axis=0)
    spots = np.column_stack([cells[:, :2] * 20.0, cells[:, 2]])
    asked = Photos.from_arrays(
        east=spots[:, 0], north=spots[:, 1], zone=spots[:, 2].astype(np.int8)
    )
    free: Floats = spots[find_nearby(centres, asked, 14.0).counts == 0]
    return free


def _give_out(curve: Curve, have: Ints, leave: Floats, most: int) -> tuple[Ints, Floats]:
    """Photos of each spot, and what they are worth together: (W,), (W,)."""
    added, gain = np.zeros(len(have), np.int64), np.zeros(len(have))
    worth = leave * (curve(have + 1) - curve(have))
    for _ in range(most if len(have) else 0):
        best = int(np.argmax(worth))
        gain[best] += worth[best]
        added[best] += 1
        count = have[best] + added[best]
        worth[best] = float(leave[best] * (curve(count + 1) - curve(count)))
    return added, gain


def _unseen(headings: NDArray[np.float32]) -> tuple[str, ...]:
    known = headings[np.isfinite(headings)]
    seen = set((np.round(known / 90).astype(int) % 4).tolist())
    return tuple(side for number, side in enumerate(SIDES) if number not in seen)
