"""The town's plan: a bent grid of avenues, streets and lanes, and what stands along them.

Positions are metres east and north of the town's south-west corner region; `survey` moves them
to UTM.  Nothing here knows of cameras or colours of the day.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Doubles
from evenplace.city.buildings import Building, fill_edge, monument

LINES = 7  # streets each way
MARGIN = 30.0  # metres round the streets, for the outermost houses
WIDTHS = {"avenue": 21.0, "street": 13.5, "lane": 8.0, "edge": 0.0}
PAVEMENTS = {"avenue": 4.2, "street": 2.6, "lane": 1.3}


@dataclass(frozen=True)
class Street:
    """One straight stretch between two crossings, from `start` to `end`."""

    kind: str
    line: int
    start: Doubles
    end: Doubles

    @property
    def width(self) -> float:
        """From facade to facade."""
        return WIDTHS[self.kind]

    @property
    def pavement(self) -> float:
        """The width of each pavement."""
        return PAVEMENTS[self.kind]

    @property
    def length(self) -> float:
        """Between the two crossings' centres."""
        return float(np.hypot(*(self.end - self.start)))

    @property
    def along(self) -> Doubles:
        """The unit vector from start to end."""
        return (self.end - self.start) / self.length

    @property
    def left(self) -> Doubles:
        """The unit vector to the left of `along`."""
        along = self.along
        return np.array([-along[1], along[0]])

    def spot(self, place: float, aside: float) -> Doubles:
        """The position `place` metres from the start and `aside` metres left of the middle."""
        return self.start + place * self.along + aside * self.left


@dataclass(frozen=True)
class Block:
    """A piece of ground between streets, counter-clockwise; `use` is built, square or park."""

    corners: Doubles
    use: str


@dataclass(frozen=True)
class Town:
    """Everything that stays where it is from one day to the next."""

    seed: int
    streets: tuple[Street, ...]
    blocks: tuple[Block, ...]
    buildings: tuple[Building, ...]
    trees: Doubles  # (T, 4) east, north, height, variety in [0, 1)
    lamps: Doubles  # (L, 2)
    kerbs: Doubles  # (K, 4) parking slots: east, north, direction east, direction north
    extent: float


@lru_cache(maxsize=4)
def plan_town(seed: int) -> Town:
    """Lay out the town of a seed: the same seed is the same town."""
    rng = np.random.default_rng([seed, 1])
    across, upward = _kinds(rng), _kinds(rng)
    crossings = _crossings(rng)
    streets = _streets(crossings, across, upward)
    uses = _uses(rng)
    blocks, buildings = [], []
    for i in range(LINES + 1):
        for j in range(LINES + 1):
            kinds = (upward[j], across[i + 1], upward[j + 1], across[i])
            around = crossings[[i, i + 1, i + 1, i], [j, j, j + 1, j + 1]]  # (4, 2)
            corners = _inset(around, [WIDTHS[kind] / 2 for kind in kinds])
            blocks.append(Block(corners, uses[i, j]))
            buildings += _build(rng, corners, kinds, uses[i, j])
    buildings += _ring(rng, crossings)
    return Town(
        seed=seed,
        streets=streets,
        blocks=tuple(blocks),
        buildings=tuple(buildings),
        trees=_plant(rng, streets, blocks),
        lamps=_lamps(streets),
        kerbs=_kerbs(streets),
        extent=float(crossings.max()) + MARGIN,
    )


def _kinds(rng: np.random.Generator) -> list[str]:
    middle = ["avenue", "lane", "street", "lane", "street", "avenue", "lane"]
    shift = int(rng.integers(LINES))
    return ["edge", *middle[shift:], *middle[:shift], "edge"]


def _crossings(rng: np.random.Generator) -> Doubles:
    """The grid's nodes (LINES + 2, LINES + 2, 2), shaken and turned a little."""
    east = np.concatenate([[0.0], np.cumsum(rng.uniform(50, 74, LINES + 1))])
    north = np.concatenate([[0.0], np.cumsum(rng.uniform(50, 74, LINES + 1))])
    nodes = np.stack(np.meshgrid(east, north, indexing="ij"), axis=-1)
    nodes += rng.uniform(-5, 5, nodes.shape)
    turn = rng.uniform(0.08, 0.3)
    rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    turned = nodes @ rotation.T
    placed: Doubles = turned - turned.min(axis=(0, 1)) + MARGIN
    return placed


def _streets(nodes: Doubles, across: list[str], upward: list[str]) -> tuple[Street, ...]:
    """`across[i]` names the line of constant i (running north), `upward[j]` of constant j."""
    found = []
    for line in range(1, LINES + 1):
        for step in range(LINES + 1):
            found.append(Street(across[line], line, nodes[line, step], nodes[line, step + 1]))
            found.append(
                Street(upward[line], LINES + line, nodes[step, line], nodes[step + 1, line])
            )
    return tuple(found)


def _uses(rng: np.random.Generator) -> NDArray[np.str_]:
    uses = np.full((LINES + 1, LINES + 1), "built", dtype="<U6")
    inner = [(i, j) for i in range(2, LINES - 1) for j in range(2, LINES - 1)]
    square, park, green = rng.permutation(len(inner))[:3]
    uses[inner[square]] = "square"
    uses[inner[park]] = uses[inner[green]] = "park"
    return uses


def _inset(quad: Doubles, margins: list[float]) -> Doubles:
    """Move each edge of a counter-clockwise quad inwards by its margin."""
    lines = []
    for index, margin in enumerate(margins):
        start, end = quad[index], quad[(index + 1) % 4]
        along = (end - start) / np.hypot(*(end - start))
        inward = np.array([-along[1], along[0]])
        lines.append((start + margin * inward, along))
    corners = []
    for index in range(4):
        (p, u), (q, v) = lines[index - 1], lines[index]
        step = np.linalg.solve(np.stack([u, -v], axis=1), q - p)[0]
        corners.append(p + step * u)
    return np.stack(corners)


def _build(
    rng: np.random.Generator, corners: Doubles, kinds: tuple[str, ...], use: str
) -> list[Building]:
    if use == "square":
        return monument(rng, corners.mean(axis=0))
    if use == "park":
        return []
    found: list[Building] = []
    for edge, kind in enumerate(kinds):
        if kind != "edge":
            found += fill_edge(rng, corners, edge, kind)
    return found


def _ring(rng: np.random.Generator, nodes: Doubles) -> list[Building]:
    """Houses round the town that face it, so that streets end in a facade and not in a field."""
    last = LINES + 1
    rim = [nodes[i, 0] for i in range(last)] + [nodes[last, j] for j in range(last)]
    rim += [nodes[i, last] for i in range(last, 0, -1)] + [nodes[0, j] for j in range(last, 0, -1)]
    corners = np.stack(rim)
    middles = 0.5 * (corners + np.roll(corners, -1, axis=0))
    found: list[Building] = []
    for start, end in zip(middles, np.roll(middles, -1, axis=0), strict=True):
        along = (end - start) / np.hypot(*(end - start))
        outward = np.array([along[1], -along[0]])
        quad = np.stack([end, start, start + 40 * outward, end + 40 * outward]) + 9 * outward
        found += fill_edge(rng, quad, 0, "street")
    return found


def _plant(rng: np.random.Generator, streets: tuple[Street, ...], blocks: list[Block]) -> Doubles:
    rows = []
    for street in streets:
        if street.kind == "lane" or (street.kind == "street" and rng.random() < 0.55):
            continue
        spacing = rng.uniform(8, 14)
        for place in np.arange(14, street.length - 14, spacing):
            for side in (-1, 1):
                if rng.random() < 0.72:
                    offset = side * (street.width / 2 - street.pavement + 0.8)
                    rows.append([*street.spot(place, offset), rng.uniform(5, 8.5), rng.random()])
    for block in blocks:
        count = {"park": 34, "square": 12, "built": 2}[block.use]
        weights = rng.dirichlet(np.ones(4) * 1.2, count)
        centre = block.corners.mean(axis=0)
        for spot in weights @ block.corners:
            if block.use == "square" and np.hypot(*(spot - centre)) < 7:
                continue
            inner = spot if block.use != "built" else centre + 0.2 * (spot - centre)
            rows.append([*inner, rng.uniform(6, 11), rng.random()])
    return np.array(rows)


def _lamps(streets: tuple[Street, ...]) -> Doubles:
    rows = []
    for street in streets:
        for number, place in enumerate(np.arange(12, street.length - 8, 22.0)):
            side = 1 if number % 2 else -1
            offset = side * (street.width / 2 - street.pavement + 0.35)
            rows.append(street.spot(place, offset))
    return np.array(rows)


def _kerbs(streets: tuple[Street, ...]) -> Doubles:
    rows = []
    for street in streets:
        sides = (1,) if street.kind == "lane" else (-1, 1)
        for side in sides:
            offset = side * (street.width / 2 - street.pavement - 1.15)
            for place in np.arange(15, street.length - 15, 6.2):
                rows.append([*street.spot(place, offset), *(street.along * -side)])
    return np.array(rows)
