"""An audit's pictures: the map with four zooms, tails of several sets, headings and years.

C places · V corners · W windows · Y years · H heading bins
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from evenplace.arrays import Bools, Doubles, Ints
from evenplace.places.table import Places
from evenplace.places.tiers import TIERS
from evenplace.report.figures import INK, STYLE, SYSTEM_COLOURS, blank, save_figure, thin
from evenplace.report.page import TIER_COLOURS

_COLOURS = np.array([TIER_COLOURS[tier] for tier in TIERS])
_ZOOMS = ("dense", "dense", "mixed", "mixed")
_ACROSS = 8  # a window is this part of the map's longer side
_FEWEST = 4  # places that make a window mixed
_TRIED = 2_000  # windows at most, so that a map of 110,000 places takes seconds
_MANY = 5_000  # places that are drawn as pixels: an SVG of as many paths is no picture
_LEGIBLE = 60  # places of a window whose photos can be written into them


def write_figures(sets: Mapping[str, Places], folder: Path) -> list[Path]:
    """Draw the map of the first set and the tails of all, each as SVG, PNG and CSV."""
    counts = {name: places.counts for name, places in sets.items()}
    drawn = {"map": map_figure(next(iter(sets.values()))), "distribution": tails_figure(counts)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in drawn.items():
        save_figure(figure, folder / name)
    return [folder / f"{name}.svg" for name in drawn]


@mpl.rc_context(STYLE)
def tails_figure(sets: Mapping[str, Ints], *, log_rank: bool = False) -> Figure:
    """Photos of each place, the most photographed first, a line a set (supplement A).

    Sets of any size lie over each other: ranks are shares of the places, unless log_rank asks for
    the ranks themselves on a logarithmic axis.
    """
    figure, axes = blank(7.2, 3.4)
    lines: Any = axes
    for number, (name, unsorted) in enumerate(sets.items()):
        counts = np.sort(unsorted)[::-1]
        rank = np.arange(len(counts)) + 0.5
        share = rank + 0.5 if log_rank else 100 * rank / len(counts)
        kept = thin(len(counts))
        label = f"{name}: {len(counts):,} places, {counts[0]:,} to {counts[-1]:,} photos"
        colour = INK if len(sets) == 1 else SYSTEM_COLOURS[number % len(SYSTEM_COLOURS)]
        style = ("-", "--", ":")[number // len(SYSTEM_COLOURS) % 3]
        lines.step(
            share[kept], counts[kept], where="mid", color=colour, ls=style, lw=2, label=label
        )
    axes.set(yscale="log", ylabel="photos of a place",
             xlabel=f"places, most photographed first{'' if log_rank else ', %'}",
             **({"xscale": "log"} if log_rank else {"xlim": (0, 100)}))  # fmt: skip
    axes.legend(loc="upper right", fontsize=8)
    return figure


@mpl.rc_context(STYLE)
def map_figure(places: Places) -> Figure:
    """The places in the colours of their tiers, and four windows of them enlarged.

    Of several cities the one with most places is drawn.
    """
    home = int(np.bincount(places.home).argmax())
    mine = places.home == home
    corners, tiers, counts = places.outlines[mine], places.tiers[mine], places.counts[mine]
    centres = places.centres[mine]
    side, windows = choose_windows(centres, tiers, counts)
    figure = Figure(figsize=(9.6, 4.4), layout="constrained")
    grid = figure.add_gridspec(2, 4)
    whole = figure.add_subplot(grid[:, :2])
    _draw(whole, corners, tiers, frame=False)
    whole.set_title(places.maps[home].city, fontsize=9)
    for number, (middle, kind) in enumerate(zip(windows, _ZOOMS, strict=False)):
        corner, letter = middle - side / 2, "abcd"[number]
        whole.add_patch(Rectangle(tuple(corner), side, side, fill=False, ec=INK, lw=1.2))
        x, y = corner[0] + side / 20, corner[1] + side * 0.95
        whole.text(x, y, letter, fontweight="bold", ha="left", va="top")
        zoom = figure.add_subplot(grid[number // 2, 2 + number % 2])
        _draw(zoom, corners, tiers, frame=True)
        zoom.set(xlim=(corner[0], corner[0] + side), ylim=(corner[1], corner[1] + side))
        zoom.set_title(f"{letter}: {kind}, {side:.0f} m", fontsize=9)
        inside = _inside(centres, middle, side)
        zoom.plot(*centres[inside].T, ls="", marker="", label="places")  # what the CSV lists
        if inside.sum() <= _LEGIBLE:
            rows = zip(centres[inside].tolist(), counts[inside], tiers[inside], strict=True)
            for (x, y), count, tier in rows:
                ink = "black" if tier else "white"  # white is lost on orange and green
                zoom.text(x, y, str(count), color=ink, fontsize=7, ha="center", va="center")
    whole.autoscale_view()  # windows at the edge reach beyond the places
    keys = [Patch(color=colour, label=tier) for tier, colour in TIER_COLOURS.items()]
    figure.legend(handles=keys, loc="outside lower left", ncols=3, fontsize=9)
    return figure


def choose_windows(centres: Doubles, tiers: Ints, counts: Ints) -> tuple[float, Doubles]:
    """The side of a window and where four of them are: two dense, two mixed, none overlapping.

    Dense: the most photos.  Mixed: the tiers of its places as even as can be (entropy).  Windows
    are centred on places; where they are too small to mix tiers they are doubled, twice at most.
    A small map may have room for fewer.  -> metres, (W, 2).
    """
    for across in (_ACROSS, _ACROSS // 2, _ACROSS // 4):
        side = max(float(np.ptp(centres, axis=0).max()) / across, 1.0)
        windows = _windows(centres, tiers, counts, side)
        if len(windows) == len(_ZOOMS):
            break
    return side, windows


def _windows(centres: Doubles, tiers: Ints, counts: Ints, side: float) -> Doubles:
    """The windows of one size that are what they are called."""
    middles = centres[:: -(-len(centres) // _TRIED)]
    worths = np.empty((2, len(middles)))
    for number, middle in enumerate(middles):
        inside = _inside(centres, middle, side)
        worths[:, number] = counts[inside].sum(), _entropy(tiers[inside])
    taken: list[Doubles] = []
    for kind in _ZOOMS:
        worth = worths[0 if kind == "dense" else 1].copy()
        for other in taken:
            worth[np.abs(middles - other).max(axis=1) < side] = 0
        if not worth.any():
            break
        taken.append(middles[int(worth.argmax())])
    return np.array(taken)


def _inside(centres: Doubles, middle: Doubles, side: float) -> Bools:
    found: Bools = np.abs(centres - middle).max(axis=1) <= side / 2
    return found


def _entropy(tiers: Ints) -> float:
    if len(tiers) < _FEWEST:
        return 0.0
    share = np.bincount(tiers, minlength=len(TIERS)) / len(tiers)
    return float(-(share * np.log(np.maximum(share, 1e-12))).sum())


def _draw(axes: Any, corners: Doubles, tiers: Ints, *, frame: bool) -> None:
    cells = PolyCollection(list(corners), facecolors=_COLOURS[tiers], lw=0)
    cells.set_rasterized(len(corners) > _MANY)
    axes.add_collection(cells)
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(frame)


@mpl.rc_context(STYLE)
def year_figure(years: Ints, by_year: Ints) -> Figure:
    """Photos of each year, stacked by tier: (Y,), (3, Y)."""
    figure, axes = blank(5.6, 3.4)
    base = np.zeros(len(years))
    for tier, photos in zip(TIERS, by_year, strict=True):
        axes.bar(years, photos, 0.76, bottom=base, color=TIER_COLOURS[tier], label=tier)
        base += photos
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.set_ylabel("photos")
    axes.legend(fontsize=8)
    return figure


@mpl.rc_context(STYLE)
def heading_figure(headings: Ints) -> Figure:
    """Which way the photos of each tier look, as shares of the tier: (3, H)."""
    figure = Figure(figsize=(4.0, 4.0), layout="constrained")
    axes: Any = figure.add_subplot(projection="polar")
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    step = 2 * np.pi / headings.shape[1]
    shares = 100 * headings / np.maximum(headings.sum(axis=1, keepdims=True), 1)
    for number, (tier, share) in enumerate(zip(TIERS, shares, strict=True)):
        at = (np.arange(len(share)) + 0.5) * step + (number - 1) * step / 3.6
        axes.bar(at, share, step / 4.2, color=TIER_COLOURS[tier], label=tier)
    axes.set_xticks(np.arange(4) * np.pi / 2, list("NESW"))
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_formatter("{x:g} %")
    axes.tick_params(axis="y", labelsize=7)
    axes.grid(alpha=0.3)
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8
    )
    return figure
