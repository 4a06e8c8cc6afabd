"""The audit's drawings as SVG that takes the page's colours, light or dark.

# C places · Y years · H heading bins
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenplace.places.tiers import TIERS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
WIDTH, HEIGHT = 560.0, 340.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 52.0, 22.0, 46.0
DRAWN = 400  # points of a curve: more than a screen shows


@dataclass(frozen=True)
class Axis:
    """Numbers to pixels, linear or by powers of ten."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float | Floats) -> Floats:
        low, high, values = self.low, self.high, np.asarray(value, np.float64)
        if self.log:
            low, high, values = np.log10(low), np.log10(high), np.log10(values)
        along: Floats = self.start + (values - low) / max(high - low, 1e-9) * (
            self.end - self.start
        )
        return along

    def ticks(self) -> list[float]:
        if self.log:
            powers = range(int(np.ceil(np.log10(self.low))), int(np.log10(self.high) + 1e-9) + 1)
            return [10.0**power for power in powers]
        step = 10.0 ** np.floor(np.log10(max(self.high - self.low, 1e-9) / 3))
        step *= next(size for size in (1, 2, 5, 10) if (self.high - self.low) / (step * size) <= 5)
        return [float(one) for one in np.arange(np.ceil(self.low / step) * step, self.high, step)]


@dataclass(frozen=True)
class Band:
    """Values along the ranks (0 to 1 on the right axis) with a spread around them."""

    name: str
    low: Floats
    middle: Floats
    high: Floats


def rank_plot(
    curves: Sequence[tuple[str, Ints]],
    edges: tuple[int, int] | None = None,
    *,
    log_rank: bool = False,
    bands: Sequence[Band] = (),
) -> str:
    """Photos of each place against its rank (Figure 1): the first curve solid, others dashed.

    `edges` are the ranks where the middle and the tail begin; `bands` are over equal shares of
    the ranks and read on the right axis.
    """
    longest = max(len(counts) for _, counts in curves)
    most = max(int(counts.max()) for _, counts in curves)
    x = Axis(1, max(longest, 2), LEFT, WIDTH - RIGHT, log_rank)
    y = Axis(1, max(most, 2) * 1.15, HEIGHT - BOTTOM, TOP, True)
    parts = [_tier_bands(x, edges, longest)] if edges else []
    parts += [_grid(x, y, "places, from the most to the least photographed", "photos in a place")]
    parts += [_band(x, longest, band) for band in bands]
    for number, (name, counts) in enumerate(curves):
        ranked = np.sort(counts)[::-1]
        rank = np.unique(_spread(len(ranked), log_rank))
        points = zip(x.at(rank), y.at(ranked[rank.astype(int) - 1].astype(float)), strict=True)
        kind = "curve" if number == 0 else "curve other"
        parts.append(f'<polyline class="{kind}" points="{_points(points)}"/>')
        parts.append(f"<title>{html.escape(name)}</title>" if number == 0 else "")
    return _svg(parts)


def year_plot(years: Ints, by_year: Ints) -> str:
    """Photos of each year, stacked by tier: (Y,), (3, Y)."""
    first, last = int(years.min()), int(years.max())
    most = int(by_year.sum(axis=0).max())
    x = Axis(first - 0.5, last + 0.5, LEFT, WIDTH - RIGHT)
    y = Axis(0, most * 1.05, HEIGHT - BOTTOM, TOP)
    parts = [_lines_across(y)]
    wide = (x.end - x.start) / (last - first + 1)
    for at, year in enumerate(years):
        base = 0
        for tier, name in enumerate(TIERS):
            low, high = float(y.at(base)), float(y.at(base + by_year[tier, at]))
            left = float(x.at(float(year))) - wide * 0.38
            parts.append(
                f'<rect class="{name}" x="{left:.1f}" y="{high:.1f}" width="{wide * 0.76:.1f}" '
                f'height="{low - high:.1f}">'
                f"<title>{year}, {name}: {by_year[tier, at]:,}</title></rect>"
            )
            base += int(by_year[tier, at])
    every = max(1, round((last - first + 1) / 8))
    for year in range(first, last + 1, every):
        parts.append(_text(float(x.at(float(year))), HEIGHT - BOTTOM + 18, str(year)))
    return _svg(parts)


def heading_rose(headings: Ints) -> str:
    """Which way the photos of each tier look, as shares of the tier: (3, H)."""
    size, centre = 300.0, 150.0
    shares = headings / np.maximum(headings.sum(axis=1, keepdims=True), 1)
    most = max(float(shares.max()), 1e-9)
    parts = [
        f'<circle class="grid" cx="{centre}" cy="{centre}" r="{radius}" fill="none"/>'
        for radius in (40, 80, 120)
    ]
    step = 2 * np.pi / headings.shape[1]
    for tier, name in enumerate(TIERS):
        for at, share in enumerate(shares[tier]):
            wide = step / 3.6
            middle = (at + 0.5) * step + (tier - 1) * wide
            reach = 120 * float(share) / most
            parts.append(_petal(centre, middle, wide * 0.86, reach, name, at * 30, float(share)))
    for label, angle in zip("NESW", np.arange(4) * np.pi / 2, strict=True):
        x, y = centre + 136 * np.sin(angle), centre - 136 * np.cos(angle) + 4
        parts.append(_text(x, y, label, "strong"))
    return (
        f'<svg class="plot" viewBox="0 0 {size:g} {size:g}" role="img" '
        f'style="max-width:340px;margin:auto">{"".join(parts)}</svg>'
    )


def _petal(
    centre: float, angle: float, wide: float, reach: float, name: str, degrees: int, share: float
) -> str:
    ends = [
        (centre + reach * np.sin(side), centre - reach * np.cos(side))
        for side in (angle - wide / 2, angle + wide / 2)
    ]
    told = f"{name}, {degrees}° to {degrees + 30}°: {share:.0%}"
    return (
        f'<path class="{name}" d="M{centre:g},{centre:g}L{ends[0][0]:.1f},{ends[0][1]:.1f}'
        f'A{reach:.1f},{reach:.1f} 0 0 1 {ends[1][0]:.1f},{ends[1][1]:.1f}Z">'
        f"<title>{told}</title></path>"
    )


def _spread(count: int, log: bool) -> Floats:
    if log:
        return np.round(np.geomspace(1, count, DRAWN))
    return np.round(np.linspace(1, count, min(DRAWN, count)))


def _tier_bands(x: Axis, edges: tuple[int, int], longest: int) -> str:
    ends = [1, max(edges[0], 1), max(edges[1], 1), longest]
    parts = []
    for tier, name in enumerate(TIERS):
        left, right = float(x.at(float(ends[tier]))), float(x.at(float(ends[tier + 1])))
        parts.append(
            f'<rect class="band {name}" x="{left:.1f}" y="{TOP}" '
            f'width="{max(right - left, 0):.1f}" height="{HEIGHT - TOP - BOTTOM}"/>'
        )
        if right - left > 34:
            parts.append(_text((left + right) / 2, TOP - 7, name, "strong"))
    return "".join(parts)


def _band(x: Axis, longest: int, band: Band) -> str:
    y = Axis(0, 1, HEIGHT - BOTTOM, TOP)
    good = np.isfinite(band.middle)
    share = (np.flatnonzero(good) + 0.5) / len(band.middle)
    across = x.at(np.maximum(share * longest, 1))
    low, middle, high = (y.at(line[good]) for line in (band.low, band.middle, band.high))
    area = [*zip(across, high, strict=True), *zip(across[::-1], low[::-1], strict=True)]
    ticks = "".join(
        _text(WIDTH - RIGHT + 8, float(y.at(t)) + 4, f"{t:g}", start=True) for t in (0, 0.5, 1)
    )
    label = (
        f'<text transform="translate({WIDTH - 8},{HEIGHT / 2}) rotate(90)" text-anchor="middle">'
        f"{html.escape(band.name)}</text>"
    )
    return (
        f'<polygon class="spread" points="{_points(area)}"/>'
        f'<polyline class="dotted" points="{_points(zip(across, middle, strict=True))}"/>'
        f"{ticks}{label}"
    )


def _grid(x: Axis, y: Axis, below: str, beside: str) -> str:
    parts = [_lines_across(y)]
    for tick in x.ticks():
        at = float(x.at(tick))
        parts.append(_text(at, HEIGHT - BOTTOM + 18, _short(tick)))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, below))
    parts.append(
        f'<text transform="translate(13,{HEIGHT / 2 - 10}) rotate(-90)" '
        f'text-anchor="middle">{beside}</text>'
    )
    return "".join(parts)


def _lines_across(y: Axis) -> str:
    return "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{float(y.at(tick)):.1f}" '
        f'y2="{float(y.at(tick)):.1f}"/>'
        f'<text x="{LEFT - 8}" y="{float(y.at(tick)) + 4:.1f}" text-anchor="end">'
        f"{_short(tick)}</text>"
        for tick in y.ticks()
    )


def _short(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:.3g}k" if value >= 1e4 else f"{round(value):,}"


def _text(x: float, y: float, text: str, kind: str = "", start: bool = False) -> str:
    anchor = "start" if start else "middle"
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{html.escape(text)}</text>'


def _points(pairs: object) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)  # type: ignore[attr-defined]


def _svg(parts: Sequence[str]) -> str:
    return f'<svg class="plot" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img">{"".join(parts)}</svg>'
