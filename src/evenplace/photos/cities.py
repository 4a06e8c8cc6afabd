"""Which city each photo was taken in, where a data set has no names for its cities.

A city is a UTM zone and, within a zone, a cluster of photos more than 20 km from every other.  It
is called after its zone, 31N, and further clusters of the zone 31N-2, 31N-3 …, the largest first.

# N photos · K cells
"""

import re
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Bools, Doubles, Ints, starts_of

APART = 20_000.0  # metres between cities of one zone
_CELL = APART / 4
_BEYOND = 1e9  # cells from the origin: off any map, and safe to multiply
_FINE = 100.0  # metres to which the distance of two clusters is told
_MADE_UP = re.compile(r"(local|\d{1,2}[NS])(-\d+)?")


def zone_name(zone: int) -> str:
    """What a zone is called: 31N, 56S, local."""
    return f"{abs(zone)}{'N' if zone > 0 else 'S'}" if zone else "local"


def is_made_up(name: str) -> bool:
    """Whether a city's name is one of ours rather than the data set's."""
    return _MADE_UP.fullmatch(name) is not None


def find_cities(east: Doubles, north: Doubles, zone: NDArray[np.int8]) -> tuple[list[str], Ints]:
    """The names of the cities, and the number of each photo's.  -> names, (N,)."""
    names: list[str] = []
    numbers = np.zeros(len(east), np.int64)
    alone = not len(zone) or zone.min() == zone.max()
    for one in np.unique(zone[:1] if alone else zone).tolist():
        here = slice(None) if alone else zone == one
        found = find_clusters(east[here], north[here])
        numbers[here] = found + len(names)
        name = zone_name(one)
        count = int(found.max(initial=0)) + 1
        names += [name, *(f"{name}-{number}" for number in range(2, count + 1))]
    return names, numbers


def find_clusters(east: Doubles, north: Doubles, apart: float = APART) -> Ints:
    """Number the clusters that lie more than `apart` metres from each other, the largest first.

    Photos are counted into cells of a quarter of that; cells whose photos are surely nearer are
    joined, and where the cells leave it open the photos decide, to 100 m.  (N,) -> (N,).
    """
    if not len(east) or np.hypot(np.ptp(east), np.ptp(north)) <= apart:
        return np.zeros(len(east), np.int64)
    column, row = (
        np.clip(np.floor(axis / _CELL), -_BEYOND, _BEYOND).astype(np.int64)
        for axis in (east, north)
    )
    column, row = column - column.min(), row - row.min()
    height = int(row.max()) + 12  # so that no neighbour wraps into the next column
    cells, cell = _numbered(column * height + row)
    root = np.arange(len(cells))
    first, second, sure = _neighbours(cells, height, apart)
    root = _joined(root, first[sure], second[sure])
    open_ = ~sure & (root[first] != root[second])
    if open_.any():
        spots = _spots(east, north, cell)
        pairs = zip(first[open_].tolist(), second[open_].tolist(), strict=True)
        near = [_gap(spots(one), spots(other)) <= apart for one, other in pairs]
        root = _joined(root, root[first[open_][near]], root[second[open_][near]])
    _, cluster = np.unique(root, return_inverse=True)  # (K,)
    sizes = np.bincount(cluster, np.bincount(cell))
    rank = np.empty(len(sizes), np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return rank[cluster][cell]


def _neighbours(cells: Ints, height: int, apart: float) -> tuple[Ints, Ints, Bools]:
    """Pairs of cells that may hold photos within the distance, and whether they surely do."""
    reach = int(apart // _CELL) + 1
    parts: list[tuple[Ints, Ints, Bools]] = []
    for right in range(reach + 1):
        for up in range(-reach if right else 1, reach + 1):
            least = _CELL * np.hypot(max(right - 1, 0), max(abs(up) - 1, 0))
            if least > apart:
                continue
            wanted = cells + right * height + up
            at = np.minimum(np.searchsorted(cells, wanted), len(cells) - 1)
            found = np.flatnonzero(cells[at] == wanted)
            sure = _CELL * np.hypot(right + 1, abs(up) + 1) <= apart
            parts.append((found, at[found], np.full(len(found), sure)))
    first, second, sures = (np.concatenate(part) for part in zip(*parts, strict=True))
    return first, second, sures


def _joined(root: Ints, first: Ints, second: Ints) -> Ints:
    """Connected components: a cell takes the lowest number around it, until all agree."""
    while True:
        lowest = root.copy()
        np.minimum.at(lowest, first, root[second])
        np.minimum.at(lowest, second, root[first])
        lowest = lowest[lowest]
        if (lowest == root).all():
            return root
        root = lowest


def _numbered(keys: Ints) -> tuple[Ints, Ints]:
    """The different keys, ascending, and where each row's stands among them."""
    if keys.max() > 8 * len(keys):
        found, number = np.unique(keys, return_inverse=True)
        return found, number
    found = np.flatnonzero(np.bincount(keys))
    table = np.empty(int(found[-1]) + 1, np.int64)
    table[found] = np.arange(len(found))
    return found, table[keys]


def _spots(east: Doubles, north: Doubles, cell: Ints) -> Callable[[int], Doubles]:
    """A function from a cell to where its photos are, to 100 m: (…, 2)."""
    order, starts = np.argsort(cell, kind="stable"), starts_of(np.bincount(cell))

    @cache
    def of(number: int) -> Doubles:
        rows = order[starts[number] : starts[number + 1]]
        return np.unique(np.stack([east[rows], north[rows]], axis=1) // _FINE, axis=0) * _FINE

    return of


def _gap(one: Doubles, other: Doubles) -> float:
    """Metres between the nearest of two sets of spots."""
    return min(float(np.hypot(*(other - spot).T).min()) for spot in one)
