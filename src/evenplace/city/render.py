"""Takes one photo: walls and roofs from the atlas, ground, sky, things, light, lens."""

# H rows · W columns (more than the photo's, for smooth edges) · K layers · P pixels of one kind

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evenplace.city.atlas import TEXELS_PER_METRE, Atlas
from evenplace.city.camera import Camera
from evenplace.city.canvas import smooth_noise
from evenplace.city.ground import ground_palette, lay_ground, paint_codes
from evenplace.city.light import Day
from evenplace.city.plan import plan_town
from evenplace.city.shading import Light, mirror
from evenplace.city.sky import ABOVE, AROUND, TOP, Shadows, draw_sky
from evenplace.city.things import SHADOW, Things
from evenplace.city.view import View
from evenplace.city.walls import LAYERS, Layers, cast, gather_walls

Float = NDArray[np.float32]
Int = NDArray[np.int32]

SKY, GROUND = -1, -2
SMOOTHING = 1.5  # drawn this much larger, then shrunk


class Renderer:
    """Photographs the town of a seed, `size` pixels square; keeps what it has drawn."""

    def __init__(self, seed: int, size: int) -> None:
        self.town = plan_town(seed)
        self.size = size
        density = TEXELS_PER_METRE * float(np.clip(size / 224, 0.5, 3))
        self.atlas = Atlas(self.town.buildings, density)
        self.walls = gather_walls(self.town.buildings)
        self.ground = lay_ground(self.town)
        self.sight = lru_cache(maxsize=16)(self._sight)
        grain = smooth_noise(np.random.default_rng([seed, 6]), (256, 256), (128, 128))
        self.grain = (1 + 0.07 * grain).ravel()

    def _sight(self, day: Day) -> tuple[Float, Shadows, Things]:
        town = self.town
        shadows = Shadows(town.buildings, town.extent, day)
        return draw_sky(day, town.seed), shadows, Things(town, day)

    def take(self, camera: Camera, day: Day) -> Image.Image:
        """Take one photo."""
        wide = round(self.size * SMOOTHING / 2) * 2
        sky, shadows, things = self.sight(day)
        view = View(camera, wide)
        layers = cast(self.walls, camera, wide)
        keys = self._resolve(view, layers)
        frame = np.empty((wide, wide, 3), np.float32)
        self._sky(frame, view, sky)
        self._surfaces(frame, keys, view, layers, day, shadows)
        self._ground(frame, keys, view, day, shadows)
        self._things(frame, keys, layers, things, view)
        return self._develop(frame, day)

    def _resolve(self, view: View, layers: Layers) -> Int:
        """Number each pixel's surface: k W + column for walls, (K + k) W + column for roofs."""
        walls, camera, wide = self.walls, view.camera, view.wide
        keys = np.full((wide, wide), SKY, np.int32)
        columns = np.arange(wide, dtype=np.int32)
        tip = np.abs(2 * layers.place / walls.width[layers.wall] - 1)
        high = walls.height[layers.wall] + walls.gable[layers.wall] * (1 - tip)
        eaves = view.row(high, layers.depth)
        ridge = view.row(walls.height[layers.wall] + layers.far_rise, layers.far)
        for layer in reversed(range(LAYERS)):
            here = np.isfinite(layers.depth[layer])
            if not here.any():
                continue
            if (layers.far_rise[layer][here] > 0).any():
                top = np.where(here & (layers.far_rise[layer] > 0), ridge[layer], np.inf)
                number = (LAYERS + layer) * wide + columns
                np.copyto(keys, number, where=view.rows >= top)
            top = np.where(here, eaves[layer], np.inf)
            np.copyto(keys, layer * wide + columns, where=view.rows >= top)
        foot = np.maximum(view.row(np.float32(0.0), layers.depth[0]), camera.horizon(wide))
        np.copyto(keys, GROUND, where=view.rows >= foot)
        return keys

    def _sky(self, frame: Float, view: View, sky: Float) -> None:
        camera = view.camera
        azimuth = camera.heading + np.degrees(np.arctan(view.across))
        columns = (azimuth / 360 * AROUND).astype(int) % AROUND
        rows = np.clip((1 - view.upward / TOP) * (ABOVE - 1), 0, ABOVE - 1).astype(int)
        above = min(view.wide, int(np.ceil(camera.horizon(view.wide))) // 2 * 2 + 2)
        small = sky[rows[:above:2, None], columns[None, ::2]]
        frame[:above] = small.repeat(2, axis=0).repeat(2, axis=1)

    def _surfaces(
        self, frame: Float, keys: Int, view: View, layers: Layers, day: Day, shadows: Shadows
    ) -> None:
        """Look every wall and roof pixel up in the atlas and light it."""
        flat = keys.ravel()
        limit = LAYERS * view.wide
        seen = np.zeros(2 * limit, bool)
        seen[flat[flat >= 0]] = True
        shown = np.flatnonzero(seen)
        number = layers.wall.ravel()
        on_wall = shown[shown < limit]
        on_roof = shown[shown >= limit] - limit
        looks = self.atlas.wall_looks[number[on_wall]], self.atlas.roof_looks[number[on_roof]]
        self.atlas.need(np.concatenate(looks))
        lamp = Light(day, self.walls, layers, view, shadows)
        colours = frame.reshape(-1, 3)
        at = np.flatnonzero((flat >= 0) & (flat < limit))
        texels, z = self._read_walls(flat[at], view.upward_flat[at], layers, view)
        colours[at] = lamp.on_walls(texels, flat[at], z)
        at = np.flatnonzero(flat >= limit)
        if len(at):
            key = flat[at] - limit
            texels = self._read_roofs(key, view.upward_flat[at], layers, view)
            colours[at] = lamp.on_roofs(texels, key)

    def _read_walls(
        self, key: Int, upward: Float, layers: Layers, view: View
    ) -> tuple[NDArray[np.uint32], Float]:
        """Texels and heights of wall pixels; per column everything but the row is fixed."""
        depth = layers.depth.ravel()
        wall = layers.wall.ravel()
        look = self.atlas.wall_looks[wall]
        level = view.level(depth, self.atlas.density, view.slant(self.walls, layers))
        rows, columns = self.atlas.rows[look, level], self.atlas.columns[look, level]
        share = np.clip(layers.place.ravel() / self.walls.width[wall], 0, 0.9999)
        start = self.atlas.starts[look, level] + (share * columns).astype(np.int64) * rows
        high = self.walls.height[wall] + self.walls.gable[wall]
        per_metre = (rows / high).astype(np.float32)
        z = view.camera.height + upward * depth[key]
        row = ((high[key] - z) * per_metre[key]).astype(np.int32)
        np.clip(row, 0, rows.astype(np.int32)[key] - 1, out=row)
        return self.atlas.texels[start[key] + row], z

    def _read_roofs(
        self, key: Int, upward: Float, layers: Layers, view: View
    ) -> NDArray[np.uint32]:
        """Texels of roof pixels: where the ray of the pixel meets the slope."""
        wall = layers.wall.ravel()
        depth, far = layers.depth.ravel(), layers.far.ravel()
        look = self.atlas.roof_looks[wall]
        level = view.level(depth, self.atlas.density, np.full_like(depth, 0.5))
        rows, columns = self.atlas.rows[look, level][key], self.atlas.columns[look, level][key]
        run = np.maximum(far[key] - depth[key], 1e-3)
        climb = layers.far_rise.ravel()[key] / run
        eaves = self.walls.height[wall][key] - view.camera.height
        met = (eaves - climb * depth[key]) / np.minimum(upward - climb, -1e-4)
        share = np.clip((met - depth[key]) / run, 0, 1)
        whole = self.walls.roof_rise[wall][key]
        up = np.clip(share * layers.far_rise.ravel()[key] / np.maximum(whole, 0.1), 0, 0.9999)
        drift = (layers.far_place - layers.place).ravel()
        along = (layers.place.ravel()[key] + share * drift[key]) / self.walls.width[wall][key]
        column = (np.clip(along, 0, 0.9999) * columns).astype(np.int64)
        row = ((1 - up) * (rows - 1)).astype(np.int64)
        texels: NDArray[np.uint32] = self.atlas.texels[
            self.atlas.starts[look, level][key] + column * rows + row
        ]
        return texels

    def _ground(self, frame: Float, keys: Int, view: View, day: Day, shadows: Shadows) -> None:
        """Colour the ground; multipliers vary slowly and are computed at the photo's own size."""
        camera, wide = view.camera, view.wide
        first = min(wide - 2, (int(camera.horizon(wide)) + 2) // 2 * 2)
        codes = paint_codes(self.ground, camera, wide)[first:]
        right, ahead = camera.axes()
        depth = (camera.height / -view.upward[first::2])[:, None]  # (rows / 2, 1)
        across = view.across[None, ::2]
        east = (camera.east + depth * (ahead[0] + across * right[0])).astype(np.float32)
        north = (camera.north + depth * (ahead[1] + across * right[1])).astype(np.float32)
        sun = shadows.sunlight(east, north) * np.sin(np.radians(day.sun_height)) * 1.15
        grain = self.grain[
            (np.floor(east * 14).astype(np.int64) % 256) * 256
            + np.floor(north * 14).astype(np.int64) % 256
        ]
        grain = 1 + (grain - 1) * np.exp(-depth / 14)
        glow = day.lamps * 0.9
        light = np.stack(
            [
                (day.ambient[c] + glow * (1, 0.8, 0.5)[c] + day.sun[c] * sun) * grain
                for c in range(3)
            ],
            axis=-1,
        ).astype(np.float32)
        light = light.repeat(2, axis=0).repeat(2, axis=1)[: wide - first]
        colours = ground_palette(day)[codes] * light
        if day.ground == "wet":
            mirror(colours, frame, codes, view, first)
        fade = np.exp(-(camera.height / -view.upward[first:]) / day.haze)[:, None, None]
        colours = colours * fade + np.array(day.skyline, np.float32) * (1 - fade)
        np.copyto(frame[first:], colours, where=(keys[first:] == GROUND)[:, :, None])
        thin = keys[first - 2 : first] == GROUND
        np.copyto(frame[first - 2 : first], colours[:1], where=thin[:, :, None])

    def _things(self, frame: Float, keys: Int, layers: Layers, things: Things, view: View) -> None:
        layer, depths = things.paint(view.camera, view.wide, layers.depth[0])
        paint = layer.reshape(-1, 4)
        at = np.flatnonzero(paint[:, 3])
        paint, key = paint[at], keys.ravel()[at]
        behind = np.append(layers.depth.ravel(), np.float32(np.inf))[
            np.where(key >= 0, key % (LAYERS * view.wide), -1)
        ]
        shown = depths[paint[:, 3]] < behind
        at, paint = at[shown], paint[shown]
        colours = frame.reshape(-1, 3)
        solid = paint[:, 3] < SHADOW
        colours[at[solid]] = paint[solid, :3] * np.float32(1 / 255)
        colours[at[~solid]] *= np.float32(0.62)

    def _develop(self, frame: Float, day: Day) -> Image.Image:
        """Shrink to the photo's size and apply the day's exposure with a soft shoulder."""
        bytes_ = np.clip(frame * (255 * day.exposure), 0, 255).astype(np.uint8)
        photo = Image.fromarray(bytes_)
        return photo.resize((self.size, self.size), Image.Resampling.HAMMING)
