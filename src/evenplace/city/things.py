"""What stands in the street: parked cars, vans, people, lamp posts and trees.

Things are painted from far to near on a layer of their own, an `Easel`; the renderer keeps the
pixels nearer than the wall behind them.
"""

import numpy as np

from evenplace.arrays import Bytes, Doubles, Floats
from evenplace.city.buildings import COLOURS, Colour
from evenplace.city.camera import Camera
from evenplace.city.canvas import SHADOW, Easel, shade
from evenplace.city.light import Day
from evenplace.city.plan import Town
from evenplace.city.sprites import VARIETIES, draw_car, tree_sprites

# nearest and farthest depth at which a thing is painted, and half its width, in metres
BOUNDS = {
    "car": (3.6, 60.0, 2.4),
    "tree": (4.5, 70.0, 2.6),
    "lamp": (1.3, 45.0, 0.3),
    "person": (2.5, 45.0, 0.4),
}
COATS, SKINS = COLOURS["coats"], COLOURS["skins"]


class Things:
    """The things of one town on one day; what is parked where differs from day to day."""

    def __init__(self, town: Town, day: Day) -> None:
        rng = np.random.default_rng([town.seed, 4, day.number])
        self.day = day
        self.light = np.array(day.ambient) + 0.55 * np.array(day.sun) + 0.3 * day.lamps
        parked = rng.random(len(town.kerbs)) < rng.uniform(0.35, 0.6)
        self.cars = town.kerbs[parked]
        self.makes = rng.integers(2**31, size=len(self.cars))
        self.trees, self.lamps = town.trees, town.lamps
        snow, (red, green, blue) = day.ground == "snow", self.light.tolist()
        self.sprites = [
            tree_sprites(variety, day.season, snow, (red, green, blue))
            for variety in range(VARIETIES)
        ]
        self.people = _walkers(rng, town)
        self.coats = rng.integers(2**31, size=len(self.people))

    def paint(self, camera: Camera, size: int, hidden: Floats) -> tuple[Bytes, Floats]:
        """Paint all things in view: colours and numbers (size, size, 4), and each thing's depth.

        `hidden`, (size,), is the depth at which each column ends in a wall.
        """
        easel = Easel(camera, size)
        depths = np.full(256, np.inf, np.float32)
        order = self._in_view(camera, hidden)[-(SHADOW - 1) :]
        for number, (depth, kind, index, right) in enumerate(order, start=1):
            depths[number] = depths[SHADOW + number] = depth
            easel.stand(number, right, depth)
            self._draw(easel, kind, index)
        return np.asarray(easel.layer), depths

    def _in_view(self, camera: Camera, hidden: Floats) -> list[tuple[float, str, int, float]]:
        """What is ahead and not behind walls, farthest first: (depth, kind, index, right)."""
        found = []
        size = len(hidden)
        focal = camera.focal(size)
        edge = size / 2 / focal
        for kind, places in (
            ("car", self.cars), ("tree", self.trees), ("lamp", self.lamps), ("person", self.people)
        ):  # fmt: skip
            seen = camera.see(places[:, :2])
            near, reach, half = BOUNDS[kind]
            aside = np.abs(seen[:, 0]) < edge * seen[:, 1] + half
            for index in np.flatnonzero((seen[:, 1] > near) & (seen[:, 1] < reach) & aside):
                right, depth = seen[index].tolist()
                left_column = int(max(0, size / 2 + focal * (right - half) / depth))
                right_column = int(min(size, size / 2 + focal * (right + half) / depth + 1))
                behind = hidden[left_column:right_column]
                if len(behind) and float(behind.max()) > depth:
                    found.append((depth, kind, int(index), right))
        return sorted(found, key=lambda thing: (-thing[0], thing[1], thing[2]))

    def _draw(self, easel: Easel, kind: str, index: int) -> None:
        if kind == "car":
            snow = self.day.ground == "snow"
            draw_car(easel, self.cars[index], int(self.makes[index]), self.light, snow=snow)
        elif kind == "tree":
            easel.shadow(1.4)
            _, _, tall, variety = self.trees[index].tolist()
            easel.paste(self.sprites[int(variety * VARIETIES)], tall)
        elif kind == "lamp":
            self._lamp(easel)
        else:
            self._person(easel, int(self.coats[index]))

    def _lamp(self, easel: Easel) -> None:
        metal = _tone((62, 66, 68), self.light)
        glow = (255, 226, 168) if self.day.lamps > 0 else _tone((206, 206, 198), self.light)
        easel.limb((0, 0, 0.22), (0, 0.7, 0.14), metal)
        easel.limb((0, 0.7, 0.11), (0, 4.6, 0.09), metal)
        easel.limb((0, 4.55, 0.3), (0, 5.0, 0.44), glow)
        easel.limb((0, 5.0, 0.54), (0, 5.14, 0.3), metal)

    def _person(self, easel: Easel, seed: int) -> None:
        coat = _tone(COATS[seed % len(COATS)], self.light)
        legs = _tone(COATS[seed // 7 % len(COATS)], self.light * 0.7)
        skin = _tone(SKINS[seed // 49 % len(SKINS)], self.light)
        tall = 1.6 + 0.25 * (seed % 97) / 97
        stride = 0.06 + 0.14 * (seed % 13) / 13
        easel.shadow(0.35)
        for side in (-1, 1):
            easel.limb((side * stride, 0, 0.1), (side * 0.04, 0.52 * tall, 0.2), legs)
        easel.limb((0, 0.44 * tall, 0.4), (0, 0.87 * tall, 0.34), coat)
        for side in (-1, 1):
            sleeve = (side * 0.24, 0.46 * tall, 0.1), (side * 0.18, 0.85 * tall, 0.13)
            easel.limb(*sleeve, shade(coat, 0.85))
        easel.disc(0.94 * tall, 0.12, skin)
        easel.disc(0.965 * tall, 0.11, shade(legs, 0.8))


def _tone(colour: Colour, light: Doubles) -> Colour:
    red, green, blue = (min(255, int(c * gain)) for c, gain in zip(colour, light, strict=True))
    return red, green, blue


def _walkers(rng: np.random.Generator, town: Town) -> Doubles:
    """People on the pavements; avenues are busier than lanes."""
    rows = []
    for street in town.streets:
        busy = {"avenue": 9, "street": 4, "lane": 1}[street.kind]
        for _ in range(int(rng.poisson(busy))):
            offset = (street.width / 2 - rng.uniform(0.5, street.pavement)) * rng.choice([-1, 1])
            place = rng.uniform(6, street.length - 6)
            rows.append(street.spot(place, offset))
    return np.array(rows)
