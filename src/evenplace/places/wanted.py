"""Where the next photos would help most, and which way to look: views that nobody took.

A photo finds its place by one that stands near and looks the same way, so what counts is views:
a spot and a side.  A photo counts for a view by how near it stands and looks,

    w = (1 - d / 25 m) (1 - angle / 90°),    r(n) = a (1 - exp(-n / t))

and r, with n the sum of the weights, is how often a query of that view is right; a and t are
fitted to held-out answers where there are some.  Photos are given out one by one, each to the
view where all views around gain most together.

    C places · W spots · V held-out photos · S sides
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Bools, Doubles, Ints
from evenplace.errors import SettingError
from evenplace.photos.nearby import Nearby, find_nearby, turn
from evenplace.photos.table import Photos
from evenplace.places.table import Places

RADIUS = 25.0
STRENGTH = 10.0  # wrong answers that the curve is worth against a place's own; 2 was noise
STREET = 0.1  # what a gap is worth; at 0.5 a third of 60 photos went where nobody asked
SIDES = {"north": 0.0, "east": 90.0, "south": 180.0, "west": 270.0}


@dataclass(frozen=True)
class Curve:
    """How often a query is right where photos weigh so much; as usual, unless fitted."""

    height: float = 0.9
    pace: float = 0.8

    def __call__(self, photos: NDArray[np.number]) -> Doubles:
        return np.asarray(self.height * (1 - np.exp(-np.asarray(photos, float) / self.pace)))


@dataclass(frozen=True)
class HeldOut:
    """Photos asked about as if the database did not have them."""

    places: Ints  # (V,)
    near: Doubles  # (V,) what the other photos weigh, as in `weigh_views`
    right: Bools  # (V,)


@dataclass(frozen=True)
class Wanted:
    """A spot to photograph."""

    east: float
    north: float
    zone: int
    photos: int  # to take there
    have: int  # within 25 m now
    gain: float  # right answers more where each spot within 25 m is asked about 100 times
    sides: tuple[str, ...]  # ways to look there, the most useful first
    between: bool  # in a gap between photographed places: a street by guess


def fit_curve(held: HeldOut) -> Curve:
    """The curve with the least squared error; the usual one where little was held out."""
    if len(held.right) < 30:
        return Curve()
    found = [(float(np.sum((Curve(a, t)(held.near) - held.right) ** 2)), a, t)
             for a in np.arange(0.3, 1.001, 0.05) for t in np.geomspace(0.3, 30, 25)]  # fmt: skip
    _, height, pace = min(found)
    return Curve(float(height), float(pace))


def check_most(most: int) -> None:
    """Refuse a list of no photos."""
    if most < 1:
        raise SettingError(f"--most {most} wants no photos; use 1 or more")


def find_wanted(
    photos: Photos, places: Places, most: int = 100, held: HeldOut | None = None
) -> list[Wanted]:
    """Spots for `most` photos, the most useful first."""
    check_most(most)
    held = held or HeldOut(np.empty(0, np.int64), np.empty(0), np.empty(0, bool))
    curve, gaps = fit_curve(held), find_gaps(places)
    at = np.concatenate([places.centres, gaps[:, :2]])
    zones = np.concatenate([places.zones, gaps[:, 2].astype(np.int8)])
    spots = Photos.at(at, zones)
    have = np.column_stack([weigh_views(photos, spots, side) for side in SIDES.values()])
    leave = np.ones(len(spots))
    leave[len(places) :] = STREET
    if len(held.right):
        leave[: len(places)] = _openness(curve, held, len(places))
    taken, gain = _give_out(curve, have, leave, spots, most)
    near = find_nearby(photos, spots, RADIUS).counts
    order = np.lexsort((np.arange(len(spots)), -gain))
    return [
        Wanted(
            east=float(at[row, 0]),
            north=float(at[row, 1]),
            zone=int(zones[row]),
            photos=len(taken[row]),
            have=int(near[row]),
            gain=round(100 * float(gain[row]) / len(SIDES), 1),
            sides=tuple(list(SIDES)[side] for side in taken[row]),
            between=bool(row >= len(places)),
        )
        for row in order.tolist()
        if row in taken
    ]


def weigh_views(
    photos: Photos, spots: Photos, heading: float | NDArray[np.floating], beyond: float = -1.0
) -> Doubles:
    """What photos weigh for views of spots in some direction; one without a heading a quarter.

    heading: degrees, one for all spots or (W,).  beyond: metres within which none counts.
    -> (W,).
    """
    near = find_nearby(photos, spots, RADIUS)
    wanted = np.broadcast_to(heading, len(spots))[near.query]
    away = np.linalg.norm(photos.positions[near.rows] - spots.positions[near.query], axis=1)
    angle = turn(photos.heading[near.rows], wanted)
    facing = np.where(np.isnan(angle), 0.25, np.maximum(0, 1 - angle / 90))
    weight = (1 - away / RADIUS) * facing * (away > beyond)
    return np.bincount(near.query, weight, len(spots)).astype(np.float64)


def _openness(curve: Curve, held: HeldOut, places: int) -> Doubles:
    """How much of what the curve leaves open is open at each place: (C,)."""
    wrong = np.bincount(held.places, ~held.right, places)
    expected = np.bincount(held.places, 1 - curve(held.near), places)
    return np.asarray((wrong + STRENGTH) / (expected + STRENGTH))


def find_gaps(places: Places) -> Doubles:
    """Spots between two photographed places 30 to 60 m apart that nobody photographed.

    East, north and zone: (G, 3).  The street network of the photos themselves: where a street is
    photographed before and after, it goes on between.
    """
    centres = Photos.at(places.centres, places.zones)
    near = find_nearby(centres, centres, 60.0)
    here = near.query
    pairs = (near.rows > here) & (
        np.linalg.norm(places.centres[near.rows] - places.centres[here], axis=1) >= 30.0
    )
    middle = (places.centres[near.rows[pairs]] + places.centres[here[pairs]]) / 2
    if not len(middle):
        return np.empty((0, 3))
    cells = np.unique(np.column_stack([np.round(middle / 20.0), places.zones[here[pairs]]]), axis=0)
    spots = np.column_stack([cells[:, :2] * 20.0, cells[:, 2]])
    asked = Photos.at(spots, spots[:, 2].astype(np.int8))
    free: Doubles = spots[find_nearby(centres, asked, 14.0).counts == 0]
    return free


def _give_out(
    curve: Curve, have: Doubles, leave: Doubles, spots: Photos, most: int
) -> tuple[dict[int, list[int]], Doubles]:
    """The sides to photograph of each spot, and what they are worth together: (W,)."""
    near = find_nearby(spots, spots, RADIUS)
    away = np.linalg.norm(spots.positions[near.rows] - spots.positions[near.query], axis=1)
    weight = 1 - away / RADIUS
    have, gain = have.copy(), np.zeros(len(spots))
    taken: dict[int, list[int]] = {}
    worth = np.column_stack(
        [_worth(curve, have[:, side], leave, near, weight) for side in range(len(SIDES))]
    )
    for _ in range(most if len(spots) else 0):
        best, side = np.unravel_index(int(np.argmax(worth)), worth.shape)
        gain[best] += worth[best, side]
        taken.setdefault(int(best), []).append(int(side))
        have[near.of(int(best)), side] += weight[near.starts[best] : near.starts[best + 1]]
        worth[:, side] = _worth(curve, have[:, side], leave, near, weight)
    return taken, gain


def _worth(curve: Curve, have: Doubles, leave: Doubles, near: Nearby, weight: Doubles) -> Doubles:
    """What one photo more at each spot is worth to all spots around it, of one side: (W,)."""
    rows = near.rows
    gains = leave[rows] * (curve(have[rows] + weight) - curve(have[rows]))
    return np.bincount(near.query, gains, len(have)).astype(np.float64)
