"""Where photos are taken: an uneven survey of the streets, and queries of another day.

The survey's counts fall along a shifted power law from the busiest cell to the quietest.
Queries are spread over places, not over photos: every surveyed cell gets its turn, so that the
tail is asked about as often as the head.  Two in three repeat a photo of the survey, the
others stand and look as they please: there a quiet place, seen from few sides, is hard to know.
"""

# R surveyed cells · S standpoints along the streets

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import utm

from evenplace.arrays import Doubles, Ints, evenly
from evenplace.city.camera import Camera
from evenplace.city.light import Day, query_days, survey_days
from evenplace.city.plan import Street, Town, plan_town

CELL = 20.0
ORIGIN = (500_000.0, 55_000.0)  # zone 31 N: open sea, on the central meridian
RATIO = 300.0
FREE = 0.35  # share of the queries that repeat no photo of the survey
STEP = 0.5  # metres between standpoints
BUSY = {"avenue": 2.3, "street": 0.9, "lane": 0.0}  # log of how much busier than a lane


@dataclass(frozen=True)
class Shot:
    """One photo to take."""

    camera: Camera
    day: Day
    name: str  # unique within the town

    @property
    def cell(self) -> tuple[int, int]:
        """The 20 m cell of the map it is taken in."""
        return cell_of(self.camera.east, self.camera.north)


def cell_of(east: float, north: float) -> tuple[int, int]:
    """The 20 m cell of a position of the town."""
    return int((east + ORIGIN[0]) // CELL), int((north + ORIGIN[1]) // CELL)


def rank_counts(photos: int, cells: int) -> Ints:
    """Photos per cell, busiest first: n_r ~ ((1 + q) / (r + q))^b, at least 1, in all `photos`.

    b gives the wanted ratio between the first cell and the last, q the sum.  The ratio is
    RATIO from 6000 photos on; below that the busiest cell keeps a twentieth of the photos and
    the quietest keeps one.  (R,)
    """
    cells = min(cells, photos)
    ratio = float(np.clip(photos / 20, 1.5, RATIO))
    least = max(1.0, photos / (20 * RATIO))
    ranks = np.arange(1, cells + 1)
    low, high = 1e-3, 1e4
    for _ in range(60):
        shift = np.sqrt(low * high)
        power = np.log(ratio) / np.log((cells + shift) / (1 + shift)) if cells > 1 else 1.0
        curve = least * ratio * ((1 + shift) / (ranks + shift)) ** power
        low, high = (shift, high) if curve.sum() < photos else (low, shift)
    return _whole(curve, photos)


def _whole(curve: Doubles, photos: int) -> Ints:
    """Round a falling curve to integers >= 1 that sum to `photos` and still fall."""
    spare = photos - len(curve)
    shares = np.maximum(curve - 1, 0)
    wanted = shares * spare / max(shares.sum(), 1e-9)
    counts = np.floor(wanted).astype(np.int64)
    left = spare - int(counts.sum())
    counts[np.argsort(-(wanted - counts), kind="stable")[:left]] += 1
    return np.sort(counts)[::-1] + 1


def plan_survey(town: Town, photos: int, seed: int) -> list[Shot]:
    """Choose the database's photos, cell by cell from the busiest to the quietest."""
    rng = np.random.default_rng([seed, 10])
    stands = _standpoints(town, rng)
    cells = _rank_cells(rng, stands, round(0.72 * photos**0.7))
    counts = rank_counts(photos, len(cells))
    days = survey_days()
    shots: list[Shot] = []
    for cell, count in zip(cells, counts, strict=False):
        passes = rng.permutation(len(days))[: max(1, min(len(days), int(count) // 3))]
        for _ in range(int(count)):
            day = days[int(passes[rng.integers(len(passes))])]
            camera = _aim(rng, stands, cell)
            shots.append(Shot(camera, day, f"s{seed}d{day.number}n{len(shots):06d}"))
    return shots


def plan_queries(town: Town, survey: list[Shot], queries: int, seed: int) -> list[Shot]:
    """Choose the queries, every cell in turn: near one of its photos, or anywhere in it."""
    rng = np.random.default_rng([seed, 11])
    stands = _standpoints(town, rng)
    cells: dict[tuple[int, int], list[Shot]] = {}
    for shot in survey:
        cells.setdefault(shot.cell, []).append(shot)
    days = query_days()
    odds = np.array([1.0 if day.note == "day" else 0.6 for day in days])
    odds /= odds.sum()
    taken = np.array([[shot.camera.east, shot.camera.north] for shot in survey])
    order: list[tuple[int, int]] = []
    names = list(cells)
    while len(order) < queries:
        order += [names[index] for index in rng.permutation(len(names))]
    shots: list[Shot] = []
    for cell in order[:queries]:
        near = cells[cell][int(rng.integers(len(cells[cell])))].camera
        if rng.random() < FREE:
            near = _aim(rng, stands, cell)
        day = days[int(rng.choice(len(days), p=odds))]
        camera = _again(rng, town, near, taken)
        shots.append(Shot(camera, day, f"s{seed}q{day.number}n{len(shots):06d}"))
    return shots


@dataclass(frozen=True)
class _Stands:
    """Points along the middle of the streets, (S,) each, and the points of each cell."""

    streets: list[Street]
    street: Ints
    place: Doubles
    busy: Doubles
    cells: dict[tuple[int, int], Ints]


def _standpoints(town: Town, rng: np.random.Generator) -> _Stands:
    street, place, busy = [], [], []
    lines = rng.normal(0, 0.35, 64)
    for number, stretch in enumerate(town.streets):
        points = np.arange(4.0, stretch.length - 4.0, STEP)
        middle = stretch.start + 0.5 * stretch.length * stretch.along
        centre = 1 - np.hypot(*(middle / town.extent - 0.5)) * 1.6
        level = BUSY[stretch.kind] + lines[stretch.line] + centre + rng.normal(0, 0.2)
        street.append(np.full(len(points), number))
        place.append(points)
        busy.append(np.full(len(points), level))
    joined = np.concatenate(street), np.concatenate(place), np.concatenate(busy)
    cells: dict[tuple[int, int], list[int]] = {}
    for index, (number, at) in enumerate(zip(joined[0], joined[1], strict=True)):
        spot = town.streets[number].start + at * town.streets[number].along
        cells.setdefault(cell_of(*spot), []).append(index)
    kept = {cell: np.array(found) for cell, found in cells.items() if len(found) * STEP >= 5}
    return _Stands(list(town.streets), joined[0], joined[1], joined[2], kept)


def _rank_cells(rng: np.random.Generator, stands: _Stands, wanted: int) -> list[tuple[int, int]]:
    """The cells to survey, busiest first; a small survey takes every so many-th of them."""
    cells = list(stands.cells)
    busy = np.array([stands.busy[stands.cells[cell]].mean() for cell in cells])
    busy += rng.normal(0, 0.25, len(cells))
    order = np.argsort(-busy, kind="stable")
    chosen = evenly(len(order), max(1, wanted))
    return [cells[order[index]] for index in chosen]


def _aim(rng: np.random.Generator, stands: _Stands, cell: tuple[int, int]) -> Camera:
    """Stand somewhere on the street inside the cell; look along it or across it."""
    for _ in range(200):
        index = int(stands.cells[cell][rng.integers(len(stands.cells[cell]))])
        street = stands.streets[stands.street[index]]
        look = 90.0 * int(rng.integers(4)) + float(rng.normal(0, 14))
        room = street.width / 2 - 1.2
        side = np.sin(np.radians(look))  # looking right (positive), stand to the left
        aside = float(np.clip(side * 0.8 * room + rng.uniform(-0.3, 0.3) * room, -room, room))
        spot = street.spot(stands.place[index], aside)
        if cell_of(*np.round(spot, 2)) == cell:
            break
    else:
        middle = stands.cells[cell][len(stands.cells[cell]) // 2]
        street = stands.streets[stands.street[middle]]
        spot = street.start + stands.place[middle] * street.along
    heading = np.degrees(np.arctan2(*street.along)) + look
    return _camera(rng, spot, heading, field=75.0, shake=1.0)


def _camera(
    rng: np.random.Generator, spot: Doubles, heading: float, *, field: float, shake: float
) -> Camera:
    """Round to what a file name can say, so that name and picture agree."""
    return Camera(
        east=round(float(spot[0]), 2),
        north=round(float(spot[1]), 2),
        heading=float(round(heading) % 360),
        height=round(float(rng.uniform(1.6, 2.4)), 1),
        field=field,
        pitch=float(round(rng.uniform(8, 8 + 5 * shake))),
        exposure=round(float(rng.uniform(1 - 0.14 * shake, 1 + 0.14 * shake)), 2),
    )


def _again(rng: np.random.Generator, town: Town, near: Camera, taken: Doubles) -> Camera:
    """A camera near another one, on a street, and within 25 m of some photo of the survey."""
    heading = near.heading + float(rng.normal(0, 10))
    here = np.array([near.east, near.north])
    for _ in range(60):
        spot = here + rng.normal(0, 2.4, 2)
        close = np.hypot(*(taken - spot).T).min() < 24
        if close and _clear_view(town, spot, heading) > 5.5:
            break
    else:
        spot = taken[np.hypot(*(taken - here).T).argmin()]
    return _camera(rng, spot, heading, field=float(rng.uniform(68, 78)), shake=1.3)


def _clear_view(town: Town, spot: Doubles, heading: float) -> float:
    """Metres ahead of a spot before the houses of its street; 0 off the streets."""
    start, along, length, half = _lanes(town.seed)
    away = spot - start
    ahead = (away * along).sum(axis=1)
    aside = away[:, 0] * along[:, 1] - away[:, 1] * along[:, 0]  # to the right of the middle
    on = (ahead >= 0) & (ahead <= length) & (np.abs(aside) < half - 1.0)
    look = np.array([np.sin(np.radians(heading)), np.cos(np.radians(heading))])
    drift = look[0] * along[:, 1] - look[1] * along[:, 0]
    room = half - aside * np.sign(drift)
    return float(np.where(on, room / np.maximum(np.abs(drift), 1e-3), 0).max())


@lru_cache(maxsize=4)
def _lanes(seed: int) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """Start, direction, length and half width of every street of a town."""
    streets = plan_town(seed).streets
    return (
        np.array([street.start for street in streets]),
        np.array([street.along for street in streets]),
        np.array([street.length for street in streets]),
        np.array([street.width / 2 for street in streets]),
    )


ZONE, LETTER = 31, "N"


def photo_name(shot: Shot) -> str:
    """Name a photo by where, when and how it was taken.

    `@east@north@zone@letter@lat@lon@id@tile@heading@pitch@roll@height@date@note@.jpg`

    Position, heading, pitch, height and date are the picture's own; roll is always 0.
    """
    camera = shot.camera
    east, north = camera.east + ORIGIN[0], camera.north + ORIGIN[1]
    latitude, longitude = utm.to_latlon(east, north, ZONE, LETTER)
    return (
        f"@{east:010.2f}@{north:010.2f}@{ZONE:02d}@{LETTER}@{latitude:09.5f}@{longitude:010.5f}"
        f"@{shot.name}@00@{round(camera.heading) % 360:03d}@{round(camera.pitch):03d}@000"
        f"@{camera.height:.1f}@{shot.day.date}@{shot.day.note}@.jpg"
    )
