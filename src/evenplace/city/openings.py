"""Windows, balconies, doors and shop fronts, drawn onto a wall."""

import numpy as np

from evenplace.city.buildings import COLOURS, Colour, Style
from evenplace.city.canvas import SHOP_GLASS, Canvas, shade

GLASS: Colour = (62, 74, 88)
CURTAINS = COLOURS["curtains"]


def draw_windows(rng: np.random.Generator, canvas: Canvas, style: Style, *, plain: bool) -> None:
    """A window in every bay of every upper storey, one more in the tip of a gable."""
    bays = max(1, round(canvas.width / style.bay))
    pitch = canvas.width / bays
    wide = min(style.window_width, 0.86 * pitch) if style.window != "strip" else 0.96 * pitch
    french = style.window == "french"
    for storey in range(style.storeys - 1):
        floor = style.ground + storey * style.storey
        sill = floor + (0.12 if french else (style.storey - style.window_height) * 0.55)
        balcony = _has_balcony(style, storey) and not plain
        for bay in range(bays):
            x = (bay + 0.5) * pitch - wide / 2
            _window(rng, canvas, style, x, sill, wide, plain=plain)
            if balcony and style.balconies == "all":
                _balcony(canvas, style, x - 0.3, floor, wide + 0.6)
        if balcony and style.balconies == "some":
            _balcony(canvas, style, 0.12 * canvas.width, floor, 0.76 * canvas.width)
    if canvas.height - style.height > 1.6 and canvas.width > 4:
        x = canvas.width / 2 - 0.4
        canvas.rect(x - 0.1, style.height + 0.2, 1.0, 1.0, style.frame)
        canvas.glass(x, style.height + 0.3, 0.8, 0.8, GLASS, pane(rng))


def _has_balcony(style: Style, storey: int) -> bool:
    if style.balconies == "all":
        return storey % 2 == style.seed % 2
    return style.balconies == "some" and storey == (style.seed // 7) % max(1, style.storeys - 1)


def pane(rng: np.random.Generator) -> int:
    """The code of a pane of glass that is no shop's."""
    return int(rng.integers(1, SHOP_GLASS))


def _window(
    rng: np.random.Generator,
    canvas: Canvas,
    style: Style,
    x: float,
    z: float,
    wide: float,
    *,
    plain: bool,
) -> None:
    """One window: reveal, frame, panes, curtain, glazing bars, lintel, sill, shutters."""
    tall, code = style.window_height, pane(rng)
    if style.shutters and not plain:
        half = min(0.42 * wide, 0.5)
        for side in (x - half - 0.04, x + wide + 0.04):
            canvas.rect(side, z, half, tall, style.door)
            for rung in np.arange(z + 0.1, z + tall - 0.1, 0.24):
                canvas.rect(side + 0.05, float(rung), half - 0.1, 0.07, shade(style.door, 0.78))
    if style.window == "arched":
        canvas.arch(x - 0.12, z + tall - 0.06, wide + 0.24, style.trim, 0)
        canvas.arch(x, z + tall - 0.06, wide, GLASS, code)
    elif style.lintel != "none" and not plain:
        _lintel(canvas, style, x, z + tall, wide)
    canvas.rect(x - 0.08, z - 0.04, wide + 0.16, tall + 0.1, style.frame)
    canvas.glass(x, z, wide, tall, GLASS, code)
    _curtain(rng, canvas, x, z, wide, tall)
    _bars(canvas, style, x, z, wide)
    canvas.tint(x, z + tall - 0.12, wide, 0.12, shade(GLASS, 0.55))
    canvas.rect(x - 0.16, z - 0.16, wide + 0.32, 0.13, shade(style.trim, 0.96))
    canvas.rect(x - 0.12, z - 0.26, wide + 0.24, 0.1, shade(style.wall, 0.7))


def _lintel(canvas: Canvas, style: Style, x: float, z: float, wide: float) -> None:
    canvas.rect(x - 0.16, z + 0.04, wide + 0.32, 0.24, style.trim)
    if style.lintel == "keystone":
        canvas.rect(x + wide / 2 - 0.14, z + 0.02, 0.28, 0.4, shade(style.trim, 0.88))
    if style.lintel == "hood":
        canvas.rect(x - 0.26, z + 0.28, wide + 0.52, 0.12, shade(style.trim, 1.04))
        canvas.rect(x - 0.22, z + 0.2, wide + 0.44, 0.08, shade(style.trim, 0.66))


def _curtain(
    rng: np.random.Generator, canvas: Canvas, x: float, z: float, wide: float, tall: float
) -> None:
    kind = rng.random()
    colour = shade(CURTAINS[int(rng.integers(len(CURTAINS)))], 0.72)
    if kind < 0.3:
        canvas.tint(x, z + tall * 0.1, wide * 0.24, tall * 0.9, colour)
        canvas.tint(x + wide * 0.76, z + tall * 0.1, wide * 0.24, tall * 0.9, colour)
    elif kind < 0.5:
        drop = tall * rng.uniform(0.2, 0.7)
        canvas.tint(x, z + tall - drop, wide, drop, colour)


def _bars(canvas: Canvas, style: Style, x: float, z: float, wide: float) -> None:
    """Glazing bars tell the window styles apart."""
    tall, bar = style.window_height, 0.07
    if style.window in ("wide", "strip"):
        parts = max(2, round(wide / 1.2))
        for part in range(1, parts):
            canvas.rect(x + part * wide / parts - bar / 2, z, bar, tall, style.frame)
        return
    if style.window == "sash":
        canvas.rect(x, z + tall / 2 - 0.05, wide, 0.1, style.frame)
        canvas.rect(x + wide / 2 - bar / 2, z + tall / 2, bar, tall / 2, style.frame)
        return
    canvas.rect(x + wide / 2 - 0.05, z, 0.1, tall, style.frame)
    canvas.rect(x, z + tall * 0.66, wide, bar, style.frame)


def _balcony(canvas: Canvas, style: Style, x: float, floor: float, wide: float) -> None:
    """A slab with its shadow and a railing; rails are spaced so that the window shows through."""
    iron = (46, 46, 50)
    canvas.rect(x - 0.05, floor - 0.1, wide + 0.1, 0.2, style.trim)
    canvas.rect(x, floor - 0.4, wide, 0.3, shade(style.wall, 0.62))
    for rail in np.arange(x, x + wide, 0.26):
        canvas.rect(float(rail), floor + 0.1, 0.07, 0.9, iron)
    canvas.rect(x, floor + 0.95, wide, 0.08, iron)


def draw_ground_floor(rng: np.random.Generator, canvas: Canvas, style: Style, look: str) -> None:
    """The ground floor: a shop with its sign, a house door, a garage; the back has windows."""
    if look == "back":
        return
    if style.base == "shop" and (look == "facade" or style.seed % 3):
        _shop(rng, canvas, style)
        return
    canvas.rect(0, 0, canvas.width, 0.5, shade(style.trim, 0.7))
    bays = max(1, round(canvas.width / style.bay))
    pitch = canvas.width / bays
    entrance = int(rng.integers(bays)) if look == "facade" else -1
    garage = (entrance + 1) % bays if style.base == "garage" and bays > 2 else -2
    for bay in range(bays):
        middle = (bay + 0.5) * pitch
        if bay == entrance:
            _door(canvas, style, middle - 0.55)
        elif bay == garage:
            _garage(canvas, style, middle - 0.45 * pitch, 0.9 * pitch)
        else:
            wide = min(style.window_width, 0.8 * pitch)
            _window(rng, canvas, style, middle - wide / 2, 0.95, wide, plain=False)


def _door(canvas: Canvas, style: Style, x: float) -> None:
    canvas.rect(x - 0.2, 0, 1.5, 2.75, style.trim)
    canvas.rect(x - 0.3, 2.75, 1.7, 0.2, shade(style.trim, 0.9))
    canvas.rect(x, 0.2, 1.1, 2.1, style.door)
    for z in (0.4, 1.35):
        for side in (0.12, 0.62):
            canvas.rect(x + side, z, 0.36, 0.75, shade(style.door, 0.78))
    canvas.glass(x, 2.35, 1.1, 0.34, GLASS, 1 + style.seed % (SHOP_GLASS - 1))
    canvas.rect(x - 0.3, 0, 1.7, 0.2, (150, 146, 140))


def _garage(canvas: Canvas, style: Style, x: float, wide: float) -> None:
    canvas.rect(x - 0.1, 0, wide + 0.2, 2.6, shade(style.trim, 0.85))
    canvas.rect(x, 0, wide, 2.45, shade(style.door, 1.2))
    for z in np.arange(0.3, 2.4, 0.35):
        canvas.rect(x, float(z), wide, 0.06, shade(style.door, 0.9))


def _shop(rng: np.random.Generator, canvas: Canvas, style: Style) -> None:
    """Panes between posts, a door, a fascia with letters, sometimes an awning."""
    tall = style.ground
    canvas.rect(0, 0, canvas.width, tall - 0.35, style.shop)
    canvas.rect(0, 0, canvas.width, 0.45, shade(style.shop, 0.7))
    posts = max(2, round(canvas.width / 2.6))
    pitch = canvas.width / posts
    entrance = int(rng.integers(posts))
    for index in range(posts):
        x, wide = index * pitch + 0.16, pitch - 0.32
        if index == entrance:
            _shop_door(rng, canvas, style, x, wide)
            continue
        code = int(rng.integers(SHOP_GLASS, 256))
        canvas.glass(x, 0.5, wide, tall - 1.7, (74, 82, 90), code)
        for shelf in range(int(rng.integers(2, 6))):
            goods = shade(style.shop if shelf % 2 else style.trim, rng.uniform(0.5, 1.1))
            left = x + rng.uniform(0, 0.7) * wide
            canvas.tint(left, 0.55, 0.25 * wide, rng.uniform(0.3, 1.2), goods)
    letters = style.trim if sum(style.shop) < 420 else (52, 46, 44)
    canvas.rect(0, tall - 1.1, canvas.width, 0.85, shade(style.shop, 0.9))
    canvas.rect(0, tall - 0.27, canvas.width, 0.2, style.trim)
    canvas.write(0.3, tall - 1.05, canvas.width - 0.6, 0.75, style.sign, letters)
    if style.awning:
        for index, x in enumerate(np.arange(0.1, canvas.width - 0.3, 0.5)):
            stripe = style.trim if index % 2 else shade(style.shop, 1.1)
            canvas.rect(float(x), tall - 1.8, 0.5, 0.7, stripe)
        canvas.rect(0.1, tall - 1.95, canvas.width - 0.2, 0.15, shade(style.shop, 0.5))


def _shop_door(
    rng: np.random.Generator, canvas: Canvas, style: Style, x: float, wide: float
) -> None:
    wide = min(wide, 1.3)
    canvas.rect(x, 0, wide, 2.4, shade(style.shop, 0.75))
    code = int(rng.integers(SHOP_GLASS, 256))
    canvas.glass(x + 0.15, 0.4, wide - 0.3, 1.9, (56, 62, 70), code)
