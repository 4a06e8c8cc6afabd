"""What is drawn on, in metres: a wall, and the layer of what stands in the street.

A wall is a colour picture and, beside it, a code for every pane of glass: which pane a texel
belongs to (0: not glass; from `SHOP_GLASS` on: a shop's), so that a night can light some windows
and a day can mirror the sky in all of them.  The layer keeps, instead of opacity, the number of the
thing at each pixel; numbers from `SHADOW` on are the shadow of thing (number - SHADOW).
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from evenplace.arrays import Floats
from evenplace.city.buildings import Colour
from evenplace.city.camera import Camera

SHOP_GLASS = 200
SHADOW = 128
Cut = tuple[float, float, float]  # of a limb: aside, z, thickness
Texels = NDArray[np.uint32]  # red, green, blue and a pane's code in one word each


class Canvas:
    """A wall of `width` by `height` metres, `density` texels a metre; z is up from the ground."""

    def __init__(self, width: float, height: float, density: float, colour: Colour) -> None:
        self.width, self.height, self.density = width, height, density
        self.size = (max(2, round(width * density)), max(2, round(height * density)))
        self.picture = Image.new("RGB", self.size, colour)
        self.codes = Image.new("L", self.size, 0)
        self._brush = ImageDraw.Draw(self.picture)
        self._glass = ImageDraw.Draw(self.codes)

    def box(self, x: float, z: float, width: float, height: float) -> tuple[int, int, int, int]:
        """The texels of a rectangle given by its lower left corner; at least one texel."""
        left, right = round(x * self.density), round((x + width) * self.density) - 1
        top = round((self.height - z - height) * self.density)
        bottom = round((self.height - z) * self.density) - 1
        return left, top, max(left, right), max(top, bottom)

    def rect(self, x: float, z: float, width: float, height: float, colour: Colour) -> None:
        """Fill a rectangle; it hides any glass under it."""
        box = self.box(x, z, width, height)
        self._brush.rectangle(box, fill=colour)
        self._glass.rectangle(box, fill=0)

    def glass(
        self, x: float, z: float, width: float, height: float, colour: Colour, code: int
    ) -> None:
        """Fill a pane: dark below, a little lighter towards its top."""
        left, top, right, bottom = self.box(x, z, width, height)
        self._brush.rectangle((left, top, right, bottom), fill=shade(colour, 0.85))
        for part, gain in ((0.66, 1.0), (0.33, 1.15)):
            lower = top + int((bottom - top) * part)
            self._brush.rectangle((left, top, right, lower), fill=shade(colour, gain))
        self._glass.rectangle((left, top, right, bottom), fill=code)

    def tint(self, x: float, z: float, width: float, height: float, colour: Colour) -> None:
        """Fill a rectangle that keeps the glass around it: a curtain, a blind, goods on show."""
        self._brush.rectangle(self.box(x, z, width, height), fill=colour)

    def arch(self, x: float, z: float, width: float, colour: Colour, code: int) -> None:
        """A half disc standing on z."""
        left, _, right, bottom = self.box(x, z, width, width / 2)
        reach = (right - left) // 2
        disc = (left, bottom - reach, right, bottom + reach)
        self._brush.pieslice(disc, 180, 360, fill=colour)
        self._glass.pieslice(disc, 180, 360, fill=code)

    def write(
        self, x: float, z: float, width: float, height: float, text: str, colour: Colour
    ) -> None:
        """Letters as large as the rectangle allows, centred in it."""
        left, top, right, bottom = self.box(x, z, width, height)
        size = max(5, bottom - top)
        font = ImageFont.load_default(size)
        span = font.getlength(text)
        if span > 0.92 * (right - left):
            font = ImageFont.load_default(max(5, size * 0.92 * (right - left) / span))
        middle = ((left + right) / 2, (top + bottom) / 2)
        self._brush.text(middle, text, font=font, fill=colour, anchor="mm")

    def multiply(self, gain: Floats) -> None:
        """Darken or lighten what is drawn so far, texel by texel; gain: (rows, columns)."""
        steps = (np.clip(gain, 0, 3.9) * 64).astype(np.uint16)  # 255 * 3.9 * 64 fits 16 bits
        grown = np.asarray(self.picture).astype(np.uint16) * steps[:, :, None]
        self.picture = Image.fromarray(np.minimum(grown >> 6, 255).astype(np.uint8))
        self._brush = ImageDraw.Draw(self.picture)

    def texels(self) -> Texels:
        """Red, green, blue and the pane's code packed into one word each; (rows, columns)."""
        colours = np.asarray(self.picture, np.uint32)
        codes = np.asarray(self.codes, np.uint32)
        packed = colours[:, :, 0] | colours[:, :, 1] << 8 | colours[:, :, 2] << 16 | codes << 24
        return packed.astype(np.uint32)


class Easel:
    """Paints things by their numbers, in metres around the spot each stands on."""

    def __init__(self, camera: Camera, size: int) -> None:
        self.camera, self.size = camera, size
        self.layer = Image.new("RGBA", (size, size), (0, 0, 0, 0))
        self._brush = ImageDraw.Draw(self.layer)
        self._focal, self._horizon = camera.focal(size), camera.horizon(size)
        self.stand(0, 0.0, 1.0)

    def stand(self, number: int, right: float, depth: float) -> None:
        """Go on with the next thing, standing `right` and `depth` metres from the camera."""
        self._number = number
        self._scale = self._focal / depth  # pixels a metre
        self._column = self.size / 2 + right * self._scale
        self._row = self._horizon + self.camera.height * self._scale

    def polygon(self, outline: list[float], colour: Colour, *, shadow: bool = False) -> None:
        """Fill a polygon given in pixels."""
        number = self._number + SHADOW if shadow else self._number
        self._brush.polygon(outline, fill=(*colour, number))

    def limb(self, low: Cut, high: Cut, colour: Colour) -> None:
        """A tapered bar that faces the camera, between two cuts (aside, z, thickness)."""
        column, row, scale = self._column, self._row, self._scale
        a, b = column + (low[0] - low[2] / 2) * scale, column + (low[0] + low[2] / 2) * scale
        c, d = column + (high[0] + high[2] / 2) * scale, column + (high[0] - high[2] / 2) * scale
        bottom, top = row - low[1] * scale, row - high[1] * scale
        self.polygon([a, bottom, b, bottom, c, top, d, top], colour)

    def disc(self, z: float, radius: float, colour: Colour) -> None:
        """A round thing that faces the camera."""
        x, y, r = self._column, self._row - z * self._scale, radius * self._scale
        self._brush.ellipse((x - r, y - r, x + r, y + r), fill=(*colour, self._number))

    def shadow(self, radius: float) -> None:
        """A dark patch on the ground under a thing."""
        wide = radius * self._scale
        flat = wide * min(0.6, self.camera.height * self._scale / self._focal)
        box = (self._column - wide, self._row - flat, self._column + wide, self._row + flat)
        self._brush.ellipse(box, fill=(18, 18, 24, self._number + SHADOW))

    def paste(self, sprites: list[Image.Image], tall: float) -> None:
        """A picture that stands on the ground facing the camera, cut to what is in view.

        Of the same picture in several sizes, largest first, the one that fits best is taken.
        """
        high = tall * self._scale
        sprite = next((one for one in sprites if one.height < 1.5 * high), sprites[-1])
        ratio = sprite.height / high
        west, north = self._column - sprite.width / ratio / 2, self._row - high
        left, top = max(0, int(west)), max(0, int(north))
        right = min(self.size, int(self._column + sprite.width / ratio / 2))
        bottom = min(self.size, int(self._row))
        if right <= left or bottom <= top:
            return
        window = (
            max(0.0, (left - west) * ratio),
            max(0.0, (top - north) * ratio),
            min(float(sprite.width), (right - west) * ratio),
            min(float(sprite.height), (bottom - north) * ratio),
        )
        cut = sprite.resize((right - left, bottom - top), Image.Resampling.NEAREST, window)
        mask = cut.getchannel("A")
        cut.putalpha(self._number)
        self.layer.paste(cut, (left, top), mask)


def shade(colour: Colour, gain: float) -> Colour:
    """The colour times a gain, within 0..255."""
    red, green, blue = (min(255, max(0, int(c * gain))) for c in colour)
    return red, green, blue


def smooth_noise(rng: np.random.Generator, size: tuple[int, int], cells: tuple[int, int]) -> Floats:
    """Cloudy noise in -1..1 with about `cells` bumps; size and cells: (columns, rows)."""
    seeds = rng.uniform(-1, 1, (max(2, cells[1]), max(2, cells[0]))).astype(np.float32)
    return np.array(Image.fromarray(seeds).resize(size, Image.Resampling.BICUBIC), np.float32)
