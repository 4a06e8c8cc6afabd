"""A day's light on walls, roofs, panes of glass and the ground.

Colours leave here packed: red, green, blue and a spare byte in one word a pixel.
"""

# P pixels of one kind · keys number a layer and a column

from functools import lru_cache

import numpy as np

from evenplace.arrays import Bytes, Floats
from evenplace.city.camera import Camera
from evenplace.city.canvas import SHOP_GLASS, Texels, smooth_noise
from evenplace.city.ground import ground_palette
from evenplace.city.light import Day, Shadows
from evenplace.city.walls import Keys, Layers, View, Walls

LAMP = (1.0, 0.8, 0.5)  # colour of street lamps


class Light:
    """A day's light on the columns of a view."""

    def __init__(
        self, day: Day, walls: Walls, layers: Layers, view: View, shadows: Shadows
    ) -> None:
        self.day, self._glow = day, window_glow(day)
        outward = walls.outward[layers.wall]
        towards = np.array(day.sun_direction) * float(np.cos(np.radians(day.sun_height)))
        facing = np.maximum(outward @ towards, 0).ravel()
        right, ahead = view.camera.axes()
        depth = np.minimum(layers.depth, 1e4)
        spot = [
            start + depth * (ahead[axis] + view.across * right[axis]) + 1.8 * outward[..., axis]
            for axis, start in enumerate((view.camera.east, view.camera.north))
        ]
        shade = shadows.reach(spot[0], spot[1]).ravel()
        self._depth = depth.ravel().astype(np.float32)
        self._height = view.camera.height
        self.fade = np.exp(-depth.ravel() / day.haze).astype(np.float32)
        side = np.sqrt(1 + (outward @ np.array([0.6, 0.8])) * 0.16).ravel()
        self._sky = (self.fade * side).astype(np.float32)
        self._facing = facing.astype(np.float32)
        self._sun = (self.fade * facing).astype(np.float32)
        # share of the sun at slope m: clip(low + 1.6 depth m, 0, 1), half a metre of penumbra
        self._low = ((self._height - shade) * 1.6 + 0.5).astype(np.float32)

    def on_walls(self, texels: Texels, key: Keys, upward: Floats) -> Texels:
        """Light wall texels (P,): sky light, sun where no shadow reaches, lamps at night."""
        day = self.day
        parts = texels.view(np.uint8).reshape(-1, 4)
        fade, sky = self.fade.take(key), self._sky.take(key)
        sun = self._low.take(key) + 1.6 * self._depth.take(key) * upward
        np.clip(sun, 0, 1, out=sun)
        sun *= self._sun.take(key)
        haze = (1 - fade) * 255
        lamps = self._lamps(key, upward) * fade if day.lamps else None
        glass = np.flatnonzero(parts[:, 3])
        out = np.empty_like(parts)
        for channel in range(3):
            light = sky * np.float32(day.ambient[channel])
            light += sun * np.float32(day.sun[channel])
            if lamps is not None:
                light += lamps * np.float32(LAMP[channel])
            light *= parts[:, channel]
            light += haze * np.float32(day.skyline[channel])
            light[glass] += self._glow[parts[glass, 3], channel] * fade[glass]
            out[:, channel] = np.minimum(light, 255)
        return out.view(np.uint32)[:, 0]

    def _lamps(self, key: Keys, upward: Floats) -> Floats:
        """Lamps light a wall best a little under their own height."""
        z = self._height + upward * self._depth.take(key)
        near: Floats = np.float32(self.day.lamps) * np.exp(-(((z - 3.5) / 4.5) ** 2))
        return near

    def on_roofs(self, texels: Texels, key: Keys) -> Texels:
        """Light roof texels: more sky than a wall, snow when it lies."""
        day = self.day
        colours = texels.view(np.uint8).reshape(-1, 4).astype(np.float32)
        if day.ground == "snow":
            colours = 0.25 * colours + 168
        up = float(np.sin(np.radians(day.sun_height)))
        sun = (0.7 * self._facing[key] + 0.6 * up)[:, None]
        light = tone(day.ambient) * 1.05 + tone(day.sun) * sun
        fade = self.fade[key, None]
        return pack(colours * light * fade + tone(day.skyline) * 255 * (1 - fade))


def tone(colour: tuple[float, float, float]) -> Floats:
    """A colour with its spare byte, (4,)."""
    return np.array([*colour, 0], np.float32)


def pack(colours: Floats) -> Texels:
    """Colours (..., 4) in 0..255 as one word each, (...)."""
    limited = np.clip(colours, 0, 255).astype(np.uint8)
    return limited.view(np.uint32)[..., 0]


@lru_cache(maxsize=16)
def window_glow(day: Day) -> Floats:
    """What each pane adds: the sky it mirrors, or the lamp behind it; (256, 3) in 0..255."""
    rng = np.random.default_rng([day.number, 7])
    mirrored = 0.10 * (np.array(day.zenith) + np.array(day.skyline))
    glow = np.ones((256, 3)) * mirrored * rng.uniform(0.5, 1.6, (256, 1))
    share = np.full(256, day.lit_windows)
    share[SHOP_GLASS:] = min(1.0, 2.2 * day.lit_windows)
    lit = rng.random(256) < share
    warm = np.array([0.78, 0.6, 0.34]) * rng.uniform(0.55, 1.0, (256, 1))
    glow[lit] = warm[lit] * (1.0 if day.note != "day" else 0.45)
    glow[0] = 0
    scaled: Floats = (255 * glow).astype(np.float32)
    return scaled


class GroundLight:
    """A day's light on the ground of a town; the stone's grain is the same on every day."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 6])
        fine = smooth_noise(rng, (256, 256), (128, 128))
        patches = smooth_noise(rng, (256, 256), (20, 20))
        self._grain = (0.06 * fine).ravel().astype(np.float32)
        self._patches = (0.07 * patches).ravel().astype(np.float32)

    def colour(self, codes: Bytes, view: View, day: Day, shadows: Shadows, first: int) -> Floats:
        """Colours (rows, W, 4) of the ground from row `first` on.

        Sun and grain vary slowly and are computed for every other pixel.
        """
        camera = view.camera
        depth = camera.height / -view.upward[first:]
        sun, grain = self._gains(camera, view, depth[::2], shadows)
        sun *= np.float32(np.sin(np.radians(day.sun_height)) * 1.15)
        sun = sun.repeat(2, axis=0).repeat(2, axis=1)[: len(codes)]
        grain = grain.repeat(2, axis=0).repeat(2, axis=1)[: len(codes)]
        fade = np.exp(-depth / day.haze).astype(np.float32)[:, None]
        grain *= fade
        palette = ground_palette(day) * np.float32(255)
        out = np.zeros((*codes.shape, 4), np.float32)
        for channel in range(3):
            steady = np.float32(day.ambient[channel] + 0.9 * day.lamps * LAMP[channel])
            light = sun * np.float32(day.sun[channel]) + steady
            light *= grain
            light *= palette[:, channel].take(codes)
            light += (1 - fade) * np.float32(255 * day.skyline[channel])
            out[:, :, channel] = light
        return out

    def _gains(
        self, camera: Camera, view: View, depth: Floats, shadows: Shadows
    ) -> tuple[Floats, Floats]:
        right, ahead = camera.axes()
        away, across = depth[:, None], view.across[None, ::2]
        east = (camera.east + away * (ahead[0] + across * right[0])).astype(np.float32)
        north = (camera.north + away * (ahead[1] + across * right[1])).astype(np.float32)
        near = np.exp(-away / 14).astype(np.float32)
        spots = (east * 14).astype(np.int32) & 255, (north * 14).astype(np.int32) & 255
        wider = (east * 4).astype(np.int32) & 255, (north * 4).astype(np.int32) & 255
        grain = 1 + self._grain.take(spots[0] * 256 + spots[1]) * near
        grain += self._patches.take(wider[0] * 256 + wider[1]) * np.sqrt(near)
        return shadows.sunlight(east, north), grain.astype(np.float32)


def mirror(colours: Floats, frame: Texels, view: View, first: int) -> None:
    """Let a wet ground mirror what stands above the horizon, more so the farther it is."""
    horizon = view.camera.horizon(view.wide)
    rows = np.clip(2 * horizon - np.arange(first, view.wide), 0, horizon - 1).astype(int)
    share = (0.12 + 0.4 * np.exp(view.upward[first:] / 0.12)).astype(np.float32)[:, None, None]
    above = frame.view(np.uint8).reshape(view.wide, view.wide, 4)
    blurred = above[rows].astype(np.float32) + above[np.clip(rows - 9, 0, None)]
    colours *= 1 - share
    colours += (0.5 * share) * blurred
