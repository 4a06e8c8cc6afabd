"""Median splits: cells of even counts and uneven areas (the paper's adaptive partition).

Evening the counts moves the imbalance into the areas: a leaf on the avenue is a doorstep, one on
the edge of town a whole quarter.

The tree is grown over tens of millions of photos.  They lie on a lattice of 2^23 steps a side (2 mm
across a city), so that a position is one integer and sorting sorts both axes.  Large cells are
split on a table of counts in square bins, all cells of a level at once, at the bin edge nearest the
median; cells within a few splits of a leaf, and those with no bin edge near the median, at the
median photo itself.  Only the last splits decide how even the leaves are, so they are as even as
exact medians make them.

# N photos · C leaves · S splits · L cells of one level
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Bools, Doubles, Floats, Ints, blocks
from evenplace.errors import SettingError
from evenplace.places.cities import CutByCity
from evenplace.places.keys import tally
from evenplace.places.maps import Sheet
from evenplace.places.split_tree import BLOCK as SMALL
from evenplace.places.split_tree import EAST, MASK, NORTH, STEPS, Cuts, Lattice
from evenplace.places.table import Places, box_outlines

Splits = tuple[Ints, NDArray[np.int8], Ints]  # nodes, axes, where on the lattice
BINS = 12  # most bits of a bin: 4096 a side
MANY = 1 << 17  # photos below which a table of counts costs more than it saves
CELLS = 1 << 16  # cells of the trunk: what is left of 63 bits beside two coordinates
NEAR = 0.3  # share of the smaller part that a split on the table must have, and
FINE = 2  # so many leaves' photos: what is left is split exactly, at least once more
DEEP = 1 << 60  # node numbers beyond this would overflow; only strange data gets there


@dataclass(frozen=True)
class KdTree(CutByCity):
    """Split the longer side of a cell at its median photo until it has at most `max_photos`.

    Counts then differ by a factor of two at most, as long as photos have positions of their own;
    photos taken on one spot cannot be parted.  The id of a leaf is its number in the tree: the
    root is 1, the halves of node n are 2n (west or south) and 2n + 1.
    """

    max_photos: int = 320
    min_photos: int = 1
    cuts: Cuts | None = field(default=None, repr=False)  # where a partition split, once it has

    name = "kd-tree"

    def __post_init__(self) -> None:
        if self.max_photos < 1 or self.min_photos < 1:
            raise SettingError(
                f"max_photos is {self.max_photos} and min_photos {self.min_photos}; give at least 1"
            )
        if isinstance(self.cuts, dict):
            object.__setattr__(self, "cuts", Cuts.from_plain(self.cuts))

    def _cut(self, sheet: Sheet) -> Places:
        cuts, labels = grow(sheet.photos.east, sheet.photos.north, self.max_photos)
        found = tally(labels, len(cuts.leaves), self.min_photos)
        return Places.build(
            replace(self, cuts=cuts),
            sheet,
            labels=found.labels,
            ids=cuts.leaves[found.keys][:, None],
            counts=found.counts,
        )

    def find(self, ids: Ints, positions: Doubles, heading: Floats) -> Ints:
        """Which leaf each position lies in, -1 off the map of the photos: (N, 2) -> (N,)."""
        leaves = self._grown.leaves
        place = np.full(len(leaves) + 1, -1, np.int64)  # the last is for off the map
        place[np.searchsorted(leaves, ids[:, 0])] = np.arange(len(ids))
        return place[self._grown.find(positions)]

    def outlines(self, ids: Ints) -> Doubles:
        """The box of each leaf: (C, 1) -> (C, 4, 2)."""
        return box_outlines(self._grown.boxes(ids[:, 0]))

    def settings(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"max_photos": self.max_photos, "min_photos": self.min_photos}
        return plain | {"cuts": None if self.cuts is None else self.cuts.to_plain()}

    @property
    def _grown(self) -> Cuts:
        if self.cuts is None:
            raise SettingError("this kd-tree has cut no map yet; call partition(photos)")
        return self.cuts


@dataclass(frozen=True)
class Trunk:
    """The upper part of the tree: its splits, the cells they end in, and the cell of each bin."""

    splits: list[Splits]
    nodes: Ints  # (L,)
    boxes: Ints  # (L, 4) in steps
    cell_of_bin: NDArray[np.int32]  # (bins * bins,)
    bits: int  # of a bin, along one axis


def grow(east: Doubles, north: Doubles, most: int) -> tuple[Cuts, Ints]:
    """Grow the tree: where it splits, and the number of each photo's leaf."""
    root = (float(east.min()), float(north.min()), float(east.max()), float(north.max()))
    lattice = Lattice.over(root)
    codes = np.empty(len(east), np.int64)
    for rows in blocks(len(codes)):
        codes[rows] = lattice.codes(east[rows], north[rows])
    trunk = _grow_trunk(codes, most) if len(codes) > MANY else _bare_trunk()
    twigs = _grow_twigs(_sorted_photos(codes, trunk), trunk, most)
    nodes, axes, at = (np.concatenate(part) for part in zip(*trunk.splits, twigs, strict=True))
    order = np.argsort(nodes)
    cuts = Cuts(root, nodes[order], axes[order], at[order])
    return cuts, _label(cuts, trunk, codes)


def _label(cuts: Cuts, trunk: Trunk, codes: Ints) -> Ints:
    """The number of each photo's leaf, walking down from its cell of the trunk."""
    start_of_bin = cuts.rows_of(trunk.nodes).astype(np.int32)[trunk.cell_of_bin]
    labels = np.empty(len(codes), np.int64)
    for block_rows in blocks(len(labels), SMALL):
        block = codes[block_rows]
        # Crops of one panorama lie side by side and share a position: walk once for each run.
        runs = np.append(0, np.flatnonzero(block[1:] != block[:-1]) + 1)
        spots = block[runs]
        rows = start_of_bin[_bins(spots, trunk.bits)].astype(np.int64)
        found = cuts.leaf_of[cuts.walk(spots, rows)]
        labels[block_rows] = np.repeat(found, np.diff(runs, append=len(block)))
    return labels


def _bins(codes: Ints, bits: int) -> Ints:
    return ((codes >> (2 * STEPS - bits)) << bits) | ((codes & MASK) >> (STEPS - bits))


def _bare_trunk() -> Trunk:
    none = (np.empty(0, np.int64), np.empty(0, np.int8), np.empty(0, np.int64))
    whole = np.array([[0, 0, MASK, MASK]])
    return Trunk([none], np.array([1]), whole, np.zeros(1, np.int32), 0)


def _grow_trunk(codes: Ints, most: int) -> Trunk:
    bits = min(len(codes).bit_length() // 2, BINS)  # about a photo or more to a bin
    side = 1 << bits
    keys = np.empty(len(codes), np.int64)
    for rows in blocks(len(keys)):
        keys[rows] = _bins(codes[rows], bits)
    counted = np.bincount(keys, minlength=side * side).reshape(side, side)
    del keys
    sums = np.zeros((side + 1, side + 1), np.int64)
    np.cumsum(counted, axis=1, out=sums[1:, 1:])
    for row in range(1, side + 1):  # along the memory: many times faster than cumsum(axis=0)
        sums[row] += sums[row - 1]
    splits, nodes, bins = _split_levels(sums, most)
    cell_of_bin = np.zeros((side, side), np.int32)
    for cell, (i0, j0, i1, j1) in enumerate(bins.tolist()):
        cell_of_bin[i0:i1, j0:j1] = cell
    fine = STEPS - bits
    steps = [(node, axis, at << fine) for node, axis, at in splits]
    return Trunk(steps, nodes, bins << fine, cell_of_bin.ravel(), bits)


def _split_levels(sums: Ints, most: int) -> tuple[list[Splits], Ints, Ints]:
    """Split on the table, a level at a time: splits, end nodes and their boxes, all in bins."""
    nodes = np.array([1])
    bins = np.array([[0, 0, sums.shape[0] - 1, sums.shape[1] - 1]])  # (L, 4)
    splits: list[Splits] = []
    ends: list[Ints] = []
    boxes: list[Ints] = []
    while len(nodes):
        axis, at, good = _near_medians(sums, bins, most)
        if 2 * len(nodes) + sum(len(end) for end in ends) > CELLS:
            good[:] = False
        ends.append(nodes[~good])
        boxes.append(bins[~good])
        nodes, bins, axis, at = nodes[good], bins[good], axis[good], at[good]
        splits.append((nodes, axis.astype(np.int8), at))
        lower, upper, each = bins.copy(), bins.copy(), np.arange(len(nodes))
        lower[each, axis + 2] = at
        upper[each, axis] = at
        nodes, bins = np.concatenate([2 * nodes, 2 * nodes + 1]), np.concatenate([lower, upper])
    return splits, np.concatenate(ends), np.concatenate(boxes)


def _near_medians(sums: Ints, bins: Ints, most: int) -> tuple[Ints, Ints, Bools]:
    """The bin edge nearest each cell's median along its longer side, and whether it is near."""
    axis = np.where(bins[:, 2] - bins[:, 0] >= bins[:, 3] - bins[:, 1], EAST, NORTH)
    each = np.arange(len(bins))
    total = _count(sums, bins)
    low, high = bins[each, axis], bins[each, axis + 2]
    while np.any(high - low > 1):  # the last edge with at most half the photos before it
        middle = (low + high) // 2
        few = 2 * _count(sums, _until(bins, axis, middle)) <= total
        low, high = np.where(few, middle, low), np.where(few, high, middle)
    before, after = (_count(sums, _until(bins, axis, edge)) for edge in (low, high))
    nearer = total - 2 * before <= 2 * after - total
    at, first = np.where(nearer, low, high), np.where(nearer, before, after)
    smaller = np.minimum(first, total - first)
    return axis, at, (smaller > FINE * most) & (smaller >= NEAR * total)


def _until(bins: Ints, axis: Ints, edge: Ints) -> Ints:
    part = bins.copy()
    part[np.arange(len(bins)), axis + 2] = edge
    return part


def _count(sums: Ints, bins: Ints) -> Ints:
    i0, j0, i1, j1 = bins.T
    count: Ints = sums[i1, j1] - sums[i0, j1] - sums[i1, j0] + sums[i0, j0]
    return count


def _sorted_photos(codes: Ints, trunk: Trunk) -> Ints:
    """Each photo as cell, east and north in one integer, sorted; 41 million sort in a second."""
    keys = np.empty(len(codes), np.int64)
    for rows in blocks(len(keys)):
        cells = trunk.cell_of_bin[_bins(codes[rows], trunk.bits)].astype(np.int64)
        keys[rows] = (cells << (2 * STEPS)) | codes[rows]
    keys.sort()
    return keys


def _grow_twigs(photos: Ints, trunk: Trunk, most: int) -> Splits:
    """Split every cell of the trunk down to its leaves at the median photo."""
    cells = np.arange(len(trunk.nodes) + 1, dtype=np.int64)
    ends = np.searchsorted(photos, cells << (2 * STEPS)).tolist()
    nodes: list[int] = []
    axes: list[int] = []
    ats: list[int] = []
    for cell, (root, box) in enumerate(
        zip(trunk.nodes.tolist(), trunk.boxes.tolist(), strict=True)
    ):
        keys = photos[ends[cell] : ends[cell + 1]] & ((1 << (2 * STEPS)) - 1)
        stack = [(root, box, EAST, keys)]
        while stack:
            node, box, major, keys = stack.pop()
            cut = _median(keys, box, major) if len(keys) > most and node < DEEP else None
            if cut is None:
                continue
            axis, at, first, keys = cut
            nodes.append(node)
            axes.append(axis)
            ats.append(at)
            lower, upper = box.copy(), box.copy()
            lower[axis + 2] = upper[axis] = at
            stack.append((2 * node, lower, axis, keys[:first]))
            stack.append((2 * node + 1, upper, axis, keys[first:]))
    return np.array(nodes, np.int64), np.array(axes, np.int8), np.array(ats, np.int64)


def _median(keys: Ints, box: list[int], major: int) -> tuple[int, int, int, Ints] | None:
    """Split photos, sorted by the axis `major`, at the median of the cell's longer side.

    Returns the axis, the lattice line, how many photos lie before it, and the photos sorted by
    that axis; None when all lie on one spot.
    """
    longer = EAST if box[2] - box[0] >= box[3] - box[1] else NORTH
    for axis in (longer, 1 - longer):
        if axis != major:
            keys, major = np.sort(((keys & MASK) << STEPS) | (keys >> STEPS)), axis
        half = len(keys) // 2
        at = int(keys[half]) >> STEPS
        before = int(keys.searchsorted(at << STEPS))
        if before == half:
            return axis, at, before, keys
        after = int(keys.searchsorted((at + 1) << STEPS))  # photos on one line: its nearer side
        if after < len(keys) and (before == 0 or after - half < half - before):
            return axis, int(keys[after]) >> STEPS, after, keys
        if before:
            return axis, at, before, keys
    return None
