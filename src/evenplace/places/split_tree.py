"""A tree of splits on a lattice: which leaf a position falls in, and the box of each leaf.

Node 1 is the whole map; the halves of node n are 2n (west or south) and 2n + 1.

# N photos · C leaves · S splits
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Doubles, Ints, blocks

EAST, NORTH = 0, 1
STEPS = 23  # bits of a lattice coordinate: 2 mm across a city
MASK = (1 << STEPS) - 1
BLOCK = 1 << 14  # rows at a time for a walk down the tree
_ROW, _SHIFT = 24, 57  # bits where a step keeps the row of its first half, and how far to shift


@dataclass(frozen=True)
class Lattice:
    """Lines at multiples of a power of two, exact in floats: no photo is on two sides of one."""

    low: tuple[int, int]
    step: float

    @classmethod
    def over(cls, root: tuple[float, float, float, float]) -> "Lattice":
        """The finest lattice whose numbers over a box have STEPS bits."""
        longest = max(root[2] - root[0], root[3] - root[1])
        step = 2.0 ** float(np.ceil(np.log2(max(longest, 1.0) / (MASK - 1))))  # of UTM: 47 bits
        return cls((int(np.floor(root[0] / step)), int(np.floor(root[1] / step))), step)

    def codes(self, east: Doubles, north: Doubles) -> Ints:
        """The lattice lines at or below positions, both in one integer: (N,) -> (N,)."""
        code = np.floor(east / self.step).astype(np.int64)
        code -= self.low[0]
        code <<= STEPS
        line = np.floor(north / self.step).astype(np.int64)
        line -= self.low[1]
        code |= line
        return code

    def metres(self, lines: Ints, axes: NDArray[np.int8]) -> Doubles:
        """The coordinate of lattice lines."""
        at: Doubles = (lines + np.array(self.low)[axes]) * self.step
        return at


@dataclass(frozen=True, eq=False)
class Cuts:
    """Where each inner node splits: positions below the line `at` go to the first half."""

    root: tuple[float, float, float, float]  # west, south, east, north of all photos
    nodes: Ints  # (S,) ascending
    axes: NDArray[np.int8]  # (S,)
    at: Ints  # (S,) lattice lines

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cuts) and self.to_plain() == other.to_plain()

    def __hash__(self) -> int:
        return hash((self.root, self.nodes.tobytes(), self.at.tobytes()))

    def to_plain(self) -> dict[str, Any]:
        """Lists and numbers, for JSON."""
        plain = {name: getattr(self, name).tolist() for name in ("nodes", "axes", "at")}
        return {"root": list(self.root), **plain}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> "Cuts":
        """What `to_plain` gave, as cuts again."""
        west, south, east, north = plain["root"]
        return cls(
            (west, south, east, north),
            np.array(plain["nodes"], np.int64),
            np.array(plain["axes"], np.int8),
            np.array(plain["at"], np.int64),
        )

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice the lines are of; the root decides it."""
        return Lattice.over(self.root)

    @cached_property
    def everything(self) -> Ints:
        """All nodes, splits and leaves, ascending: both halves of a split lie side by side."""
        return np.sort(np.append(np.concatenate([2 * self.nodes, 2 * self.nodes + 1]), 1))

    @cached_property
    def leaves(self) -> Ints:
        """All leaves, ascending: (C,)."""
        return np.setdiff1d(self.everything, self.nodes, assume_unique=True)

    @cached_property
    def leaf_of(self) -> Ints:
        """The number of each row of `everything` among the leaves, -1 of a split."""
        numbered = np.full(len(self.everything), -1, np.int64)
        numbered[self.rows_of(self.leaves)] = np.arange(len(self.leaves))
        return numbered

    @cached_property
    def _steps(self) -> Ints:
        """A step down from each row of `everything` in one integer: shift, first half's row, line.

        A leaf leads to itself, over a line that nothing reaches: a walk needs no branches.
        """
        row = np.arange(len(self.everything))
        line = np.full(len(row), MASK + 1)
        shift = np.zeros(len(row), np.int64)
        split = self.rows_of(self.nodes)
        row[split] = self.rows_of(2 * self.nodes)
        line[split], shift[split] = self.at, np.where(self.axes == EAST, STEPS, 0)
        steps: Ints = (shift << _SHIFT) | (row << _ROW) | line
        return steps

    def rows_of(self, nodes: Ints) -> Ints:
        """Where nodes stand among `everything`, to start a walk from."""
        return np.searchsorted(self.everything, nodes)

    def walk(self, codes: Ints, rows: Ints) -> Ints:
        """Walk lattice positions down from the rows given to rows of leaves: (N,) -> (N,)."""
        while True:
            step = self._steps[rows]
            past = ((codes >> (step >> _SHIFT)) & MASK) >= (step & (2 * MASK + 1))
            below = ((step >> _ROW) & ((1 << (_SHIFT - _ROW)) - 1)) + past
            moved = below != rows
            moving = np.count_nonzero(moved)
            rows = below
            if moving == 0:
                return rows
            if moving < len(rows) // 2:
                few = np.flatnonzero(moved)
                rows[few] = self.walk(codes[few], rows[few])
                return rows

    def find(self, positions: Doubles) -> Ints:
        """The number of the leaf each position falls in, -1 off the map: (N, 2) -> (N,)."""
        west, south, east, north = self.root
        found = np.empty(len(positions), np.int64)
        for part in blocks(len(positions), BLOCK):
            x, y = positions[part].T
            on = (x >= west) & (x <= east) & (y >= south) & (y <= north)
            codes = self.lattice.codes(np.where(on, x, west), np.where(on, y, south))
            rows = self.walk(codes, np.zeros(len(codes), np.int64))
            found[part] = np.where(on, self.leaf_of[rows], -1)
        return found

    def boxes(self, leaves: Ints) -> Doubles:
        """West, south, east and north of each leaf: (C,) -> (C, 4)."""
        boxes = np.tile(np.array(self.root), (len(leaves), 1))
        metres = self.lattice.metres(self.at, self.axes)
        depth = np.array([int(leaf).bit_length() - 1 for leaf in leaves], np.int64)
        for level in range(int(depth.max(initial=0))):
            below = np.flatnonzero(depth > level)
            above = depth[below] - level
            row = np.searchsorted(self.nodes, leaves[below] >> above)
            upper = (leaves[below] >> (above - 1)) & 1
            boxes[below, self.axes[row] + 2 * (1 - upper)] = metres[row]  # the side cut off
        return boxes
