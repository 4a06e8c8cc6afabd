"""A day's light on walls, roofs, panes of glass and wet ground."""

# P pixels of one kind · keys number a layer and a column

import numpy as np
from numpy.typing import NDArray

from evenplace.city.canvas import SHOP_GLASS
from evenplace.city.light import Day
from evenplace.city.sky import Shadows
from evenplace.city.view import View
from evenplace.city.walls import Layers, Walls

Float = NDArray[np.float32]
Int = NDArray[np.int32]


class Light:
    """A day's light on the columns of a view."""

    def __init__(
        self, day: Day, walls: Walls, layers: Layers, view: View, shadows: Shadows
    ) -> None:
        self.day = day
        outward = walls.outward[layers.wall]
        flat = float(np.cos(np.radians(day.sun_height)))
        towards = np.array(day.sun_direction) * flat
        self.facing = np.maximum((outward @ towards), 0).ravel().astype(np.float32)
        right, ahead = view.camera.axes()
        depth = np.minimum(layers.depth, 1e4)
        east = (
            view.camera.east + depth * (ahead[0] + view.across * right[0]) + 1.8 * outward[..., 0]
        )
        north = (
            view.camera.north + depth * (ahead[1] + view.across * right[1]) + 1.8 * outward[..., 1]
        )
        self.shade = shadows.reach(east, north).ravel()
        self.fade = np.exp(-depth.ravel() / day.haze).astype(np.float32)
        side = np.sqrt(1 + (outward @ np.array([0.6, 0.8])) * 0.16)
        self.side = side.ravel().astype(np.float32)
        self.glow = _window_glow(day)

    def on_walls(self, texels: NDArray[np.uint32], key: Int, z: Float) -> Float:
        """Light wall texels (P,) at heights z: sky light, sun where no shadow reaches, lamps."""
        day = self.day
        parts = texels.view(np.uint8).reshape(-1, 4)
        fade = self.fade[key]
        sky = fade * self.side[key] * (1 / 255)
        sun = np.clip((z - self.shade[key]) * 1.6 + 0.5, 0, 1) * self.facing[key]
        sun *= fade * (1 / 255)
        lamps = fade * (day.lamps / 255) * np.exp(-(((z - 3.5) / 4.5) ** 2)) if day.lamps else None
        out = np.empty((len(key), 3), np.float32)
        for channel in range(3):
            light = sky * day.ambient[channel] + sun * day.sun[channel]
            if lamps is not None:
                light += lamps * (1.0, 0.8, 0.5)[channel]
            out[:, channel] = parts[:, channel] * light + day.skyline[channel] * (1 - fade)
        glass = np.flatnonzero(parts[:, 3])
        out[glass] += self.glow[parts[glass, 3]] * fade[glass, None]
        return out

    def on_roofs(self, texels: NDArray[np.uint32], key: Int) -> Float:
        """Light roof texels: more sky than a wall, snow when it lies."""
        day = self.day
        colours = texels.view(np.uint8).reshape(-1, 4)[:, :3].astype(np.float32) / 255
        if day.ground == "snow":
            colours = 0.25 * colours + 0.66
        up = float(np.sin(np.radians(day.sun_height)))
        sun = (0.7 * self.facing + 0.6 * up)[key, None]
        light = np.array(day.ambient, np.float32) * 1.05 + np.array(day.sun, np.float32) * sun
        fade = self.fade[key, None]
        lit: Float = colours * light * fade + np.array(day.skyline, np.float32) * (1 - fade)
        return lit


def _window_glow(day: Day) -> Float:
    """What each pane adds: the sky it mirrors, or the lamp behind it; (256, 3)."""
    rng = np.random.default_rng([day.number, 7])
    mirrored = 0.10 * (np.array(day.zenith) + np.array(day.skyline))
    glow = np.ones((256, 3)) * mirrored * rng.uniform(0.5, 1.6, (256, 1))
    share = np.full(256, day.lit_windows)
    share[SHOP_GLASS:] = min(1.0, 2.2 * day.lit_windows)
    lit = rng.random(256) < share
    warm = np.array([0.78, 0.6, 0.34]) * rng.uniform(0.55, 1.0, (256, 1))
    glow[lit] = warm[lit] * (1.0 if day.note != "day" else 0.45)
    glow[0] = 0
    return glow.astype(np.float32)


def mirror(colours: Float, frame: Float, codes: NDArray[np.uint8], view: View, first: int) -> None:
    """Let a wet ground mirror what stands above the horizon, more so the farther it is."""
    horizon = view.camera.horizon(view.wide)
    rows = np.clip(2 * horizon - np.arange(first, view.wide), 0, horizon - 1).astype(int)
    slope = -view.upward[first:]
    share = (0.12 + 0.4 * np.exp(-slope / 0.12))[:, None, None]
    blurred = 0.5 * (frame[rows] + frame[np.clip(rows - 9, 0, None)])
    colours *= 1 - share
    colours += share * blurred
