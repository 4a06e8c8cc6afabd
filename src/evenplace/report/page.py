"""The shell of every page we write: one HTML file, no network, light and dark, phone and desk.

Knows nothing of photos or scores: it takes sections of ready HTML.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from evenplace.errors import EvenPlaceError, RunError
from evenplace.photos.files import whole_file

# Okabe and Ito's vermilion, orange and bluish green, darkened apart: told apart without red-green
# vision, and in print.  page.css has them as --head, --middle, --tail, lighter in the dark.
TIER_COLOURS = {"head": "#c2352b", "middle": "#e69f00", "tail": "#009e73"}


@dataclass(frozen=True)
class Section:
    """A part of a page: a heading, its HTML, and what to see in it."""

    title: str
    html: str
    caption: str = ""


@dataclass(frozen=True)
class Figure:
    """A number worth reading across a room, and what it counts."""

    value: str
    label: str
    note: str = ""


def page(title: str, sections: Sequence[Section], *, lead: str = "", foot: str = "") -> str:
    """Put sections into one file that opens from disk; a map's code comes only with a map."""
    body = "\n".join(_section(number, section) for number, section in enumerate(sections))
    links = "".join(
        f'<a href="#s{number}">{html.escape(section.title)}</a>'
        for number, section in enumerate(sections)
        if section.title
    )
    style, script = asset("page.css"), ""
    if 'class="ep-map"' in body:
        style = _leaflet("leaflet.css") + style
        script = f"<script>{_leaflet('leaflet.js')}</script><script>{asset('map.js')}</script>"
    if 'class="tiers switch"' in body:  # after the maps, which listen to it
        script += f"<script>{asset('report.js')}</script>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{html.escape(title)}</title>'
        f"<style>{style}</style></head><body>"
        f"<header><h1>{html.escape(title)}</h1>{_paragraph(lead, 'lead')}"
        f"<nav>{links}</nav></header>"
        f"<main>{body}</main><footer>{foot}</footer>{script}</body></html>\n"
    )


def write_page(text: str, path: str | Path, error: type[EvenPlaceError] = RunError) -> Path:
    """Write a page whole, or say why it could not be."""
    with whole_file(path, error) as draft:
        draft.write_text(text, encoding="utf-8")
    return Path(path)


def figures_html(figures: Sequence[Figure]) -> str:
    """A row of large numbers."""
    tiles = "".join(
        f'<div class="tile"><b>{html.escape(one.value)}</b><span>{html.escape(one.label)}</span>'
        f"<small>{html.escape(one.note)}</small></div>"
        for one in figures
    )
    return f'<div class="tiles">{tiles}</div>'


def table_html(
    columns: Sequence[str], rows: Sequence[Sequence[str]], texts: Sequence[int] = ()
) -> str:
    """A table; the first cell of a row is its heading, cells are HTML already.

    texts: columns of words, which start at the left; the others are numbers.
    """
    kinds = [' class="text"' if number in texts else "" for number in range(len(columns))]
    head = "".join(
        f'<th scope="col"{kind}>{column}</th>' for column, kind in zip(columns, kinds, strict=True)
    )
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>'
        + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row[1:], kinds[1:], strict=True))
        + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def tier_mark(tier: str) -> str:
    """A tier's name beside its colour."""
    return f'<span class="mark {tier}"></span>{tier}'


def asset(name: str) -> str:
    """The text of a file in report/assets."""
    return (resources.files("evenplace.report") / "assets" / name).read_text(encoding="utf-8")


def _section(number: int, section: Section) -> str:
    heading = f"<h2>{html.escape(section.title)}</h2>" if section.title else ""
    caption = _paragraph(section.caption, "caption")
    return f'<section id="s{number}">{heading}{caption}{section.html}</section>'


def _paragraph(text: str, kind: str) -> str:
    return f'<p class="{kind}">{text}</p>' if text else ""


def _leaflet(name: str) -> str:
    """Leaflet as the package ships it, without what would make a browser ask for other files."""
    import xstatic.pkg.leaflet as leaflet  # only pages with maps need it

    text = (Path(leaflet.BASE_DIR) / name).read_text(encoding="utf-8")
    text = re.sub(r"//# sourceMappingURL=\S+", "", text)
    return re.sub(r"url\(images/[^)]*\)", "none", text)
