"""Answers to the photos of a walk, a drive or a film, each with its neighbours heard.

Each photo has candidates with shares p (what its own search thinks) and a share for being
elsewhere.  Neighbours in time fit together when they are as near as the speed allows:

    g(i, j) = max(floor, exp(-max(0, |x_i - x_j| - speed · dt - 25 m) / 25 m))

and whatever is elsewhere fits to anything, neither well nor badly.  The marginals, forward and
backward along the chain, are

    q_t(i) ∝ p_t(i) · forward_t(i) · backward_t(i)

As g never falls below the floor, one neighbour multiplies odds by at most 1 / floor: a wrong one
cannot drag a sure answer away.

    T photos · K candidates of one
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evenplace.arrays import Doubles
from evenplace.errors import SettingError
from evenplace.photos.geodesy import to_degrees
from evenplace.photos.table import ZONE_GAP
from evenplace.retrieval.candidates import SCALE
from evenplace.retrieval.positions import CHI2, STEP
from evenplace.run.locate_many import ABSTAINED, ANSWERED, Located, Match, Spot

SLACK = 25.0  # metres that two right answers may be off
FLOOR, ELSEWHERE = 0.05, 0.1
CANDIDATES = 20  # of a photo of a walk
_AHEAD = 5.0  # times the share of a photo's own answer: what moves it


def put_in_order(lines: Sequence[Located], order: str = "auto") -> tuple[list[int], str]:
    """The walk's order, and a sentence where clocks and names disagree, or some have no clock.

    order: time, name, or auto: time where every photo has one.
    """
    if order not in ("auto", "time", "name"):
        raise SettingError(f"--order {order} is no order of a walk; use time or name")
    clock = np.array([line.clock for line in lines])
    unknown = int(np.isnan(clock).sum())
    if order == "time" and unknown:
        raise SettingError(f"{unknown} photos have no time in their EXIF; use --order name")
    names = sorted(range(len(lines)), key=lambda row: (lines[row].photo, lines[row].second or 0))
    if order == "name" or unknown == len(lines):
        return names, ""
    if unknown:
        return names, (
            f"{unknown} of {len(lines)} photos have no time in their EXIF; ordered by name, so "
            "--speed is metres from a photo to the next"
        )
    times = sorted(range(len(lines)), key=lambda row: (clock[row], lines[row].photo))
    back = [row for row in range(1, len(names)) if clock[names[row]] < clock[names[row - 1]]]
    if not back:
        return times, ""
    here, before = (lines[names[back[0] - step]].photo for step in (0, 1))
    return times, (
        f"the clock jumps back {len(back)} times in the order of names, first from {before} to "
        f"{here}; ordered by time, use --order name if the names are right"
    )


def follow(
    lines: Sequence[Located], speed: float = 15.0, order: str = "auto", least: float = -np.inf
) -> tuple[list[Located], str]:
    """Answer again with the neighbours heard.

    What the walk leaves where it was keeps its own confidence, calibrated or not.  What it moves
    gets the chain's share, which is too sure: of the town's at 0.95 or more 86 % were right.  So
    where a precision is asked for (`least` above 0), moved answers are not given.
    speed: metres a second; where times are unknown, metres from a photo to the next.  A photo
    that could not be read, or is of elsewhere by its own GPS, is no part of the walk.
    """
    if not speed > 0:
        raise SettingError(f"--speed {speed:g} goes nowhere; use metres a second above 0")
    part = [row for row, line in enumerate(lines) if line.matches and not line.reason]
    rows, warning = put_in_order([lines[row] for row in part], order)
    walk = [part[row] for row in rows]
    spots = [_spots(lines[row]) for row in walk]
    shares = [_shares(lines[row], at) for row, at in zip(walk, spots, strict=True)]
    clock = np.array([lines[row].clock for row in walk])
    timed = order != "name" and not np.isnan(clock).any()
    pause = np.diff(clock) if timed else np.ones(max(len(walk) - 1, 0))
    found = smooth(spots, shares, speed * np.abs(pause))
    answers = list(lines)
    for row, at, share in zip(walk, spots, found, strict=True):
        answers[row] = _answer(lines[row], at, share[:-1], least)
    return answers, warning


def _spots(line: Located) -> Doubles:
    """East, north and what keeps zones apart of the candidates: (K, 3)."""
    return np.array([(one.east, one.north, one.zone * ZONE_GAP) for one in line.matches])


def _shares(line: Located, spots: Doubles) -> Doubles:
    """Its confidence for the answer, the rest for the other candidates and for elsewhere.

    No other surroundings get more than the answer's: alone, a photo says what it says.
    """
    near = np.linalg.norm(spots[:, None] - spots[None], axis=2) <= SLACK  # (K, K)
    here = near[0]
    alike = np.exp(SCALE * (np.array([one.similarity for one in line.matches]) - 1))
    sure = float(np.clip(line.confidence, 0.01, 0.99))
    shares = np.zeros(len(spots) + 1)
    shares[:-1][here] = sure * alike[here] / alike[here].sum()
    if not here.all():
        others = (1 - sure) / 2 * alike[~here] / alike[~here].sum()
        most = float((near[np.ix_(~here, ~here)] @ others).max())
        shares[:-1][~here] = others * min(1.0, 0.9 * sure / most)
    shares[-1] = 1 - shares[:-1].sum()
    return shares


def _answer(line: Located, spots: Doubles, shares: Doubles, least: float) -> Located:
    """The likeliest surroundings where they are far ahead, else the photo's own answer.

    Candidates of photos that are all wrong fit together by chance often enough.
    """
    near = np.linalg.norm(spots[:, None] - spots[None], axis=2) <= SLACK  # (K, K)
    mass = near @ shares
    best = int(np.argmax(mass))
    if near[0, best] or mass[best] < _AHEAD * mass[0]:
        short = "" if line.confidence >= least else f"{line.confidence:.2f} sure, {least:.2f} asked"
        return replace(line, reason=short, status=ABSTAINED if short else ANSWERED)
    asked = "its walk has it elsewhere, and how often that is right is not known"
    changed = replace(line, confidence=round(float(mass[best]), 4), calibrated=False,
                      reason=asked if least > 0 else "",
                      status=ABSTAINED if least > 0 else ANSWERED)  # fmt: skip
    mine = near[best]
    first = int(np.argmax(np.where(mine, shares, -1)))
    matches = (line.matches[first], *(one for one in line.matches if one != line.matches[first]))
    return replace(changed, matches=matches, spot=_spot(line, spots[mine], shares[mine], first))


def _spot(line: Located, spots: Doubles, shares: Doubles, first: int) -> Spot:
    """Where the candidates of one answer lie, and how far they are spread."""
    weight = shares / shares.sum()
    east, north, _ = weight @ spots
    spread = float(weight @ np.sum((spots[:, :2] - (east, north)) ** 2, axis=1)) / 2
    match, radius = line.matches[first], float(np.sqrt(CHI2 * (spread + STEP**2)))
    latitude, longitude = _degrees(match, float(east), float(north))
    return Spot(float(east), float(north), match.zone, latitude, longitude, radius, radius, 0.0)


def _degrees(match: Match, east: float, north: float) -> tuple[float | None, float | None]:
    if match.latitude is None:
        return None, None
    latitude, longitude = to_degrees(east, north, match.zone)
    return round(float(latitude), 7), round(float(longitude), 7)


def smooth(spots: Sequence[Doubles], shares: Sequence[Doubles], reach: Doubles) -> list[Doubles]:
    """The share of every candidate after its neighbours were heard.

    spots: T times (K, 2) metres, or (K, 3) with what keeps zones apart.  shares: T times
    (K + 1,), the last for elsewhere; each sums to 1.  reach: (T - 1,) metres from a photo to the
    next at most.  -> T times (K + 1,).
    """
    fits = [_agreement(spots[t], spots[t + 1], reach[t]) for t in range(len(spots) - 1)]
    forward = _hear(shares, fits)
    backward = _hear(shares[::-1], [fit.T for fit in fits[::-1]])[::-1]
    return [_share(p * f * b) for p, f, b in zip(shares, forward, backward, strict=True)]


def _hear(shares: Sequence[Doubles], fits: Sequence[Doubles]) -> list[Doubles]:
    """What the photos before each one think of its candidates; the first hears nobody."""
    heard = [np.ones(len(shares[0]))] if len(shares) else []
    for share, fit in zip(shares, fits, strict=False):
        heard.append(_share((share * heard[-1]) @ fit))
    return heard


def _agreement(here: Doubles, there: Doubles, reach: float) -> Doubles:
    """(K, 3), (K', 3) -> (K + 1, K' + 1)."""
    away = np.linalg.norm(here[:, None] - there[None], axis=2)
    fit = np.full((len(here) + 1, len(there) + 1), ELSEWHERE)
    near = np.exp(-np.maximum(0, away - reach - SLACK) / SLACK)
    fit[:-1, :-1] = np.maximum(FLOOR, near)
    return fit


def _share(values: Doubles) -> Doubles:
    return values / max(float(values.sum()), 1e-300)
