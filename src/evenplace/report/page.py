"""The shell of every page we write: one HTML file, no network, light and dark, phone and desk.

Knows nothing of photos or scores: it takes sections of ready HTML.  Text is escaped by Jinja
unless it is `Markup`, which is HTML already.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from evenplace.photos.files import shipped_text

# Okabe and Ito's vermilion, orange and bluish green, darkened apart: told apart without red-green
# vision, and in print.  page.css has them as --head, --middle, --tail, lighter in the dark.
TIER_COLOURS = {"head": "#c2352b", "middle": "#e69f00", "tail": "#009e73"}


@dataclass(frozen=True)
class Section:
    """A part of a page: a heading, its HTML, and what to see in it."""

    title: str
    html: Markup
    caption: str = ""


@dataclass(frozen=True)
class Figure:
    """A number worth reading across a room, and what it counts."""

    value: str
    label: str
    note: str = ""


def page(title: str, sections: Sequence[Section], *, lead: str = "", foot: str = "") -> str:
    """Put sections into one file that opens from disk; a map's code comes only with a map."""
    body = "".join(section.html for section in sections)
    style, scripts = asset("page.css") + asset("report.css"), []
    if 'class="ep-map"' in body:
        style = leaflet_file("leaflet.css") + style
        scripts += [leaflet_file("leaflet.js"), asset("map.js")]
    if 'class="tiers switch"' in body:  # after the maps, which listen to it
        scripts.append(asset("report.js"))
    template = templates().get_template("page.html")
    return template.render(
        title=title, sections=sections, lead=lead, foot=foot, style=Markup(style),
        scripts=[Markup(code) for code in scripts],
    )  # fmt: skip


def part(name: str, *values: Any, **named: Any) -> Markup:
    """A piece of a page: a macro of assets/parts.html."""
    return _macro("parts.html", name)(*values, **named)


def say(name: str, *values: Any, **named: Any) -> Markup:
    """What to see in a section, in words: a macro of assets/captions.html."""
    return _macro("captions.html", name)(*values, **named)


def table_html(
    columns: Sequence[str], rows: Sequence[Sequence[str]], texts: Sequence[int] = ()
) -> Markup:
    """A table; the first cell of a row is its heading.

    texts: columns of words, which start at the left; the others are numbers.
    """
    return part("table", columns, rows, texts)


def slim_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], texts: Sequence[int] = ()
) -> Markup:
    """A table whose intervals, counts and slow ones stand small below their number."""
    return table_html(columns, [[row[0], *map(_stacked, row[1:])] for row in rows], texts)


def _stacked(cell: str) -> Markup:
    number, found, interval = cell.partition(" [")
    if found:
        gain, counted, rest = interval.removesuffix(")").partition(" (")
        small = escape(gain) + (Markup("<br>") + rest if counted else "")
        return Markup("{}<br><small>[{}</small>").format(number, small)
    median, of_both, slow = cell.partition(" / ")
    both = of_both and " / " not in slow  # three are the paper's R@1, R@5 and R@10
    return Markup("{}<br><small>p95 {}</small>").format(median, slow) if both else escape(cell)


def asset(name: str) -> str:
    """The text of a file in report/assets."""
    return shipped_text(f"report/assets/{name}")


def _macro(file: str, name: str) -> Callable[..., Markup]:
    macro: Callable[..., Markup] = getattr(templates().get_template(file).module, name)
    return macro


@cache
def templates() -> Environment:
    """What is in assets; every value is escaped."""
    loader = PackageLoader("evenplace.report", "assets")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined)


def leaflet_file(name: str) -> str:
    """Leaflet as the package ships it, without what would make a browser ask for other files."""
    import xstatic.pkg.leaflet as leaflet  # only pages with maps need it

    text = (Path(leaflet.BASE_DIR) / name).read_text(encoding="utf-8")
    text = re.sub(r"//# sourceMappingURL=\S+", "", text)
    return re.sub(r"url\(images/[^)]*\)", "none", text)
