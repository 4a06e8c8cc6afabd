"""What one building looks like, before anything is drawn: materials, openings, roof, shop.

Knows nothing of streets or pixels; every length is in metres.
"""

import tomllib
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import Any

import numpy as np

Colour = tuple[int, int, int]

_FILE = resources.files("evenplace") / "city" / "colours.toml"
COLOURS = tomllib.loads(_FILE.read_text(encoding="utf-8"))


def palette(colours: list[list[int]]) -> list[Colour]:
    """Colours of the file as they are drawn with."""
    return [(red, green, blue) for red, green, blue in colours]


WALLS = {material: palette(colours) for material, colours in COLOURS["walls"].items()}
TRIMS, FRAMES, DOORS, ROOFS, SHOPS = (
    palette(COLOURS[part]) for part in ("trims", "frames", "doors", "roofs", "shops")
)


@dataclass(frozen=True)
class Style:
    """One building's looks; hashable, so that look-alikes share their textures."""

    seed: int
    material: str
    wall: Colour
    trim: Colour
    frame: Colour
    door: Colour
    roof: Colour
    shop: Colour
    storeys: int
    storey: float
    ground: float
    bay: float
    window: str
    window_width: float
    window_height: float
    lintel: str
    shutters: bool
    balconies: str
    courses: bool
    quoins: bool
    base: str
    sign: str
    awning: bool
    roof_kind: str
    roof_rise: float

    @property
    def height(self) -> float:
        """The wall's height up to the eaves."""
        return self.ground + self.storey * (self.storeys - 1)


STOREYS = {"avenue": (4, 8), "street": (2, 6), "lane": (2, 4)}
SHOP_SHARE = {"avenue": 0.75, "street": 0.4, "lane": 0.2}


def draw_style(rng: np.random.Generator, kind: str) -> Style:
    """Draw a building for an `avenue`, a `street` or a `lane`: only height and shops differ."""
    pick = partial(_pick, rng)
    material = pick(["plaster", "brick", "stone", "panel"], [0.46, 0.28, 0.14, 0.12])
    modern = material == "panel"
    storey = float(rng.uniform(2.8, 3.6))
    windows = ["wide", "strip"] if modern else ["sash", "casement", "arched", "french"]
    window = pick(windows)
    wide = {"wide": 0.72, "strip": 0.94}.get(window, float(rng.uniform(0.34, 0.5)))
    bay = float(rng.uniform(3.0, 4.6)) if modern else float(rng.uniform(2.1, 3.4))
    tall = 0.78 if window == "french" else float(rng.uniform(0.48, 0.62))
    storeys = int(rng.integers(*STOREYS[kind]))
    roof = pick(["flat", "eaves", "gable", "mansard"], [0.3, 0.34, 0.2, 0.16])
    roof = "flat" if modern else roof
    base = _ground_floor(rng, SHOP_SHARE[kind])
    return Style(
        seed=int(rng.integers(2**31)),
        material=material,
        wall=_vary(rng, pick(WALLS[material]), 10),
        trim=pick(TRIMS),
        frame=pick(FRAMES, [0.44, 0.16, 0.14, 0.14, 0.12]),
        door=pick(DOORS),
        roof=_vary(rng, pick(ROOFS), 8),
        shop=pick(SHOPS),
        storeys=storeys,
        storey=storey,
        ground=storey + (float(rng.uniform(0.5, 1.2)) if base == "shop" else 0.3),
        bay=bay,
        window=window,
        window_width=bay * wide,
        window_height=storey * tall,
        lintel=pick(["none", "flat", "keystone", "hood"]) if not modern else "none",
        shutters=not modern and window != "arched" and bool(rng.random() < 0.25),
        balconies=pick(["none", "some", "all"], [0.66, 0.22, 0.12]),
        courses=bool(rng.random() < 0.45),
        quoins=not modern and bool(rng.random() < 0.3),
        base=base,
        sign=_sign(rng),
        awning=bool(rng.random() < 0.4),
        roof_kind=roof,
        roof_rise={"flat": 0.0, "mansard": 2.6}.get(roof, float(rng.uniform(2.0, 3.6))),
    )


def _pick(rng: np.random.Generator, options: list[Any], weights: list[float] | None = None) -> Any:
    return options[int(rng.choice(len(options), p=weights))]


def _ground_floor(rng: np.random.Generator, shops: float) -> str:
    base: str = _pick(rng, ["shop", "house"], [shops, 1 - shops])
    return "garage" if base == "house" and rng.random() < 0.15 else base


def _vary(rng: np.random.Generator, colour: Colour, spread: int) -> Colour:
    shift = int(rng.integers(-spread, spread + 1))
    red, green, blue = (int(np.clip(c + shift + rng.integers(-4, 5), 20, 245)) for c in colour)
    return red, green, blue


def _sign(rng: np.random.Generator) -> str:
    start, end, trade = (
        COLOURS[words][int(rng.integers(len(COLOURS[words])))]
        for words in ("starts", "ends", "trades")
    )
    name = start + end
    return [f"{trade} {name}", name, f"{name} {trade}", trade][int(rng.integers(4))]
