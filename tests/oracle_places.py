"""Eq. 1 and the field's class and group formulas as plain loops over tuples and dictionaries."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

Id = tuple[int, ...]


def cosplace_class(east: float, north: float, heading: float, M: int, alpha: int) -> Id:
    """CosPlace's class: position rounded down to M metres, heading to alpha degrees."""
    return int(east // M * M), int(north // M * M), int(heading // alpha * alpha)


def cosplace_group(class_id: Id, M: int, alpha: int, N: int, L: int) -> Id:
    """CosPlace's group: where the class lies in a pattern of N × N cells and L headings."""
    east, north, heading = class_id
    return east % (M * N) // M, north % (M * N) // M, heading % (alpha * L) // alpha


def dc_class(east: float, north: float, M: int) -> Id:
    """Divide&Classify's class: no heading."""
    return int(east // M * M), int(north // M * M)


def dc_group(class_id: Id, M: int, N: int) -> Id:
    return class_id[0] % (M * N) // M, class_id[1] % (M * N) // M


def grid(positions: Iterable[tuple[float, float]], M: float, least: int) -> dict[Id, list[int]]:
    """Eq. 1: the photos of each cell with enough of them, by cell."""
    cells: dict[Id, list[int]] = defaultdict(list)
    for row, (east, north) in enumerate(positions):
        cells[int(east // M), int(north // M)].append(row)
    return {cell: rows for cell, rows in sorted(cells.items()) if len(rows) >= least}


def tiers(counts: Sequence[int]) -> list[int]:
    """Rank by count, ties by place; three tenths head, three tenths tail."""
    ranked = sorted(range(len(counts)), key=lambda place: (-counts[place], place))
    edge = len(counts) * 3 // 10
    found = [1] * len(counts)
    for place in ranked[:edge]:
        found[place] = 0
    for place in ranked[len(counts) - edge :]:
        found[place] = 2
    return found


def gini(counts: Sequence[int]) -> float:
    """Half the mean difference between any two places, over the mean."""
    apart = sum(abs(one - other) for one in counts for other in counts)
    return apart / (2 * len(counts) * sum(counts))


def quadtree(
    positions: Sequence[tuple[float, float]], finest: float, levels: int, most: int
) -> dict[Id, list[int]]:
    """Quarter a cell while it has more than `most` photos and is not the smallest."""

    def split(rows: list[int], level: int) -> dict[Id, list[int]]:
        side = finest * 2 ** (levels - 1 - level)
        cells: dict[Id, list[int]] = defaultdict(list)
        for row in rows:
            east, north = positions[row]
            cells[level, int(east // side), int(north // side)].append(row)
        found: dict[Id, list[int]] = {}
        for cell, inside in cells.items():
            done = len(inside) <= most or level == levels - 1
            found |= {cell: inside} if done else split(inside, level + 1)
        return found

    return dict(sorted(split(list(range(len(positions))), 0).items()))


def kd_tree(positions: Sequence[tuple[int, int]], step: float, most: int) -> dict[int, list[int]]:
    """Split the longer side, at first east, at the line nearest the middle photo, by node.

    A line is a coordinate that photos have; those on it go to the second half, and both halves
    have photos.  Where no line parts them on the longer side the other one is tried.  All are on
    a lattice, whose box is 2^23 - 1 steps a side.
    """
    low = [min(one[axis] for one in positions) for axis in (0, 1)]
    edge = ((1 << 23) - 1) * step

    def split(node: int, rows: list[int], box: list[float]) -> dict[int, list[int]]:
        longer = 0 if box[2] - box[0] >= box[3] - box[1] else 1
        for axis in (longer, 1 - longer) if len(rows) > most else ():
            along = {row: positions[row][axis] - low[axis] for row in rows}
            before = {line: sum(at < line for at in along.values()) for line in along.values()}
            lines = [line for line in before if before[line]]
            if lines:
                middle = len(rows) // 2
                line = min(lines, key=lambda one: (abs(before[one] - middle), before[one]))
                below, above = list(box), list(box)
                below[axis + 2] = above[axis] = line
                first, second = (
                    [row for row in rows if (along[row] < line) == kept] for kept in (True, False)
                )
                return split(2 * node, first, below) | split(2 * node + 1, second, above)
        return {node: rows}

    return dict(sorted(split(1, list(range(len(positions))), [0, 0, edge, edge]).items()))
