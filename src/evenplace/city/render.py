"""Takes one photo: sky, walls and roofs from the atlas, ground, things, lens."""

# W columns and rows (more than the photo's, for smooth edges)

from functools import lru_cache

import numpy as np
from PIL import Image, ImageChops

from evenplace.city.camera import Camera
from evenplace.city.canvas import SHADOW, Texels
from evenplace.city.facade import TEXELS_PER_METRE, Atlas
from evenplace.city.ground import lay_ground, paint_codes
from evenplace.city.light import ABOVE, AROUND, TOP, Day, Shadows, draw_sky
from evenplace.city.plan import plan_town
from evenplace.city.shading import GroundLight, Light, mirror, pack
from evenplace.city.things import Things
from evenplace.city.walls import (
    GROUND,
    Keys,
    Layers,
    View,
    cast,
    gather_walls,
    read_roofs,
    read_walls,
    resolve,
    used_looks,
)

SMOOTHING = 1.4  # drawn this much larger, then shrunk
TILE = 256
NOISE = {"day": 1.4, "dusk": 2.5, "night": 4.0}  # standard deviation in steps of 255


class Renderer:
    """Photographs the town of a seed, `size` pixels square; keeps what it has drawn."""

    def __init__(self, seed: int, size: int) -> None:
        self.town = plan_town(seed)
        self.size = size
        density = TEXELS_PER_METRE * float(np.clip(size / 224, 0.5, 3))
        self.atlas = Atlas(self.town.buildings, density)
        self.walls = gather_walls(self.town.buildings)
        self.ground = lay_ground(self.town)
        self.ground_light = GroundLight(seed)
        self._sights = lru_cache(maxsize=16)(self._sight)

    def _sight(self, day: Day) -> tuple[Texels, Shadows, Things]:
        town = self.town
        shadows = Shadows(town.buildings, town.extent, day)
        return pack(draw_sky(day, town.seed)), shadows, Things(town, day)

    def take(self, camera: Camera, day: Day) -> Image.Image:
        """Take one photo."""
        wide = round(self.size * SMOOTHING / 2) * 2
        sky, shadows, things = self._sights(day)
        view = View(camera, wide)
        layers = cast(self.walls, camera, wide)
        keys = resolve(self.walls, view, layers)
        frame = _sky(view, sky)
        self._surfaces(frame, keys, view, layers, Light(day, self.walls, layers, view, shadows))
        self._ground(frame, keys, view, day, shadows)
        _things(frame, keys, layers, view, things)
        return develop(frame, self.size, camera, day)

    def _surfaces(
        self, frame: Texels, keys: Keys, view: View, layers: Layers, light: Light
    ) -> None:
        """Look every wall and roof pixel up in the atlas and light it."""
        self.atlas.need(used_looks(keys, layers, self.atlas))
        flat, colours = keys.ravel(), frame.ravel()
        limit = layers.wall.size
        at = np.flatnonzero((flat >= 0) & (flat < limit))
        key, upward = flat[at], view.upward_flat[at]
        texels = read_walls(key, upward, self.walls, layers, view, self.atlas)
        colours[at] = light.on_walls(texels, key, upward)
        at = np.flatnonzero(flat >= limit)
        key, upward = flat[at] - limit, view.upward_flat[at]
        texels = read_roofs(key, upward, self.walls, layers, view, self.atlas)
        colours[at] = light.on_roofs(texels, key)

    def _ground(self, frame: Texels, keys: Keys, view: View, day: Day, shadows: Shadows) -> None:
        first = min(view.wide - 2, int(np.ceil(view.camera.horizon(view.wide))))
        codes = paint_codes(self.ground, view.camera, view.wide)[first:]
        colours = self.ground_light.colour(codes, view, day, shadows, first)
        if day.ground == "wet":
            mirror(colours, frame, view, first)
        np.copyto(frame[first:], pack(colours), where=keys[first:] == GROUND)


def _sky(view: View, sky: Texels) -> Texels:
    """A frame with the sky in it, down to the horizon."""
    azimuth = view.camera.heading + np.degrees(np.arctan(view.across))
    columns = (azimuth / 360 * AROUND).astype(int) % AROUND
    rows = np.clip((1 - view.upward / TOP) * (ABOVE - 1), 0, ABOVE - 1).astype(int)
    above = int(np.ceil(view.camera.horizon(view.wide)))
    frame = np.zeros((view.wide, view.wide), np.uint32)
    frame[:above] = sky[rows[:above, None], columns[None, :]]
    return frame


def _things(frame: Texels, keys: Keys, layers: Layers, view: View, things: Things) -> None:
    """Copy the things that are nearer than the wall behind them; darken where their shadow is."""
    layer, depths = things.paint(view.camera, view.wide, layers.depth[0])
    paint = layer.reshape(-1, 4)
    at = np.flatnonzero(paint[:, 3])
    paint, key = paint[at], keys.ravel()[at]
    behind = np.append(layers.depth.ravel(), np.float32(np.inf))
    shown = depths[paint[:, 3]] < behind[np.where(key >= 0, key % layers.depth.size, -1)]
    at, paint = at[shown], paint[shown]
    solid = paint[:, 3] < SHADOW
    colours = frame.ravel()
    colours[at[solid]] = paint[solid].view(np.uint32)[:, 0]
    dark = colours[at[~solid]].view(np.uint8).reshape(-1, 4) * np.float32(0.62)
    colours[at[~solid]] = pack(dark)


def develop(frame: Texels, size: int, camera: Camera, day: Day) -> Image.Image:
    """Make the photo of a frame of packed colours; noise differs from spot to spot."""
    wide = len(frame)
    picture = Image.frombuffer("RGBX", (wide, wide), frame, "raw", "RGBX", 0, 1)
    picture = picture.resize((size, size), Image.Resampling.BOX).convert("RGB")
    exposed = picture.point(_curve(round(camera.exposure, 2)) * 3)
    left, top = int(camera.east * 100) % TILE, int(camera.north * 100) % TILE
    noise = _noise(NOISE[day.note], size).crop((left, top, left + size, top + size))
    return ImageChops.add(exposed, noise, scale=1, offset=-128)


@lru_cache(maxsize=128)
def _curve(exposure: float) -> list[int]:
    """Brightness to brightness: linear up to 0.8, then a soft shoulder."""
    value = np.arange(256) / 255 * exposure
    shoulder = 0.8 + 0.2 * (1 - np.exp(-np.maximum(value - 0.8, 0) / 0.2))
    return [int(step) for step in np.round(255 * np.where(value < 0.8, value, shoulder))]


@lru_cache(maxsize=4)
def _noise(strength: float, size: int) -> Image.Image:
    """Grey noise around 128, large enough to cut a photo from anywhere in its first TILE pixels."""
    side = TILE + size
    tile = np.random.default_rng(8).normal(128, strength, (side, side))
    return Image.fromarray(np.clip(np.round(tile), 0, 255).astype(np.uint8)).convert("RGB")
