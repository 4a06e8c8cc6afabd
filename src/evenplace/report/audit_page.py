"""The audit as a page: numbers, curve, map, comparison, coverage, and where to go next.

# C places · P points
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from markupsafe import Markup, escape

from evenplace.arrays import Array, Ints
from evenplace.photos.files import write_text
from evenplace.photos.geodesy import degrees
from evenplace.places.table import Places
from evenplace.places.tiers import TIERS, gini, imbalance_ratio
from evenplace.report.audit import Audit, uneven
from evenplace.report.audit_figures import heading_figure, tails_figure, year_figure
from evenplace.report.figures import inline_svg, rank_count
from evenplace.report.map import (
    Cells,
    Points,
    draw_places,
    lay_out,
    map_html,
    say_cities,
    tiles_under,
)
from evenplace.report.page import Figure, Section, page, part, say, table_html
from evenplace.report.pictures import Pictures, sample_pictures

DOTS = 20_000
LISTED = 200  # of the photos left out


def write_audit(
    audit: Audit,
    path: str | Path,
    title: str = "Audit",
    pictures: int = 300,
    tiles: str | None = None,
) -> Path:
    """Write the page: one file, with up to `pictures` small photos inside.

    tiles: the address of a base map, which the page then asks of the network.
    """
    copies = Pictures(Path(path).parent, pictures)
    sections = [
        _numbers(audit),
        _cities(audit),
        _curve(audit),
        _map(audit, copies, tiles),
        _recall(audit) if audit.recall else None,
        None if audit.against is None else _comparison(audit, audit.against),
        _coverage(audit),
        _needs(audit),
        _left_out(audit, copies),
    ]
    shown, rule = [section for section in sections if section is not None], audit.places.rule
    settings = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in rule.settings().items()
        if not isinstance(value, dict | list | tuple) and value is not None
    )
    foot = f"Written by evenplace audit. Places: {rule.name}, {settings}."
    return write_text(path, page(title, shown, lead=audit.sentence(), foot=foot))


def _numbers(audit: Audit) -> Section:
    places, tail = audit.places, audit.tiers[-1]
    count, imbalance, even, half, _ = uneven(places.counts)
    figures = [
        Figure(f"{len(audit.photos):,}", "photos", f"{places.outside:,} outside every place"),
        Figure(count, "places", f"{places.areas.sum() / 1e6:.2f} km² seen"),
        Figure(imbalance, "imbalance",
               f"{places.counts.max():,} to {places.counts.min():,} photos"),
        Figure(even, "Gini", "0 even, 1 all in one place"),
        Figure(half, "of the places", "hold half of the photos"),
        Figure(f"≤ {tail.most:,}", "photos in a tail place", f"{tail.places:,} places"),
    ]  # fmt: skip
    columns, rows = audit.table()
    marked = [[part("tier_mark", row[0]), *row[1:]] for row in rows]
    return Section(
        "How uneven",
        part("tiles", figures)
        + Markup("<h3>Head, middle and tail</h3>")
        + table_html(columns, marked),
        say("how_uneven"),
    )


def _cities(audit: Audit) -> Section | None:
    """A row a city, each with tiers of its own, and all of them together."""
    columns, rows = audit.city_table()
    if not rows:
        return None
    places = audit.places
    counts = {name: places.counts[places.city == at] for at, name in enumerate(places.cities)}
    drawn = tails_figure({name: mine for name, mine in counts.items() if len(mine)})
    return Section(
        "City by city",
        table_html(columns, rows)
        + part("across", inline_svg(drawn, "photos by rank of the place")),
        say("city_by_city"),
    )


def _curve(audit: Audit) -> Section:
    cuts = {cut.rule.name: cut.counts for cut in (audit.places, audit.against) if cut is not None}
    drawn = (rank_count(audit.places, (), audit.diversity), tails_figure(cuts, log_rank=True))
    curves = [("", inline_svg(one, "photos by rank of the place")) for one in drawn]
    note = say("rank_and_count", audit.diversity is not None)
    return Section("Rank and count", part("pair", curves), note)


def _map(audit: Audit, copies: Pictures, tiles: str | None) -> Section:
    places = audit.places
    facts: dict[str, Array | Sequence[str]] = {
        "east": np.round(places.centres[:, 0]),
        "north": np.round(places.centres[:, 1]),
    }
    if audit.coverage.headings.size:
        facts["sides seen, of 12"] = audit.coverage.sides
    if audit.diversity is not None:
        facts["similarity within"] = np.round(np.nan_to_num(audit.diversity.mean, nan=-1), 3)
    sheets, cells = draw_places(places, facts, sample_pictures(audit.photos, places, copies))
    some = audit.photos[:: max(1, -(-len(audit.photos) // DOTS))]
    dots = Points(sheets.points(some.positions, some.zone))
    return Section(
        "Where",
        map_html(cells, dots, tiles=tiles_under(tiles, places)),
        say("audit_map", say_cities(places)),
    )


def _recall(audit: Audit) -> Section:
    assert audit.answers is not None
    rows = [
        [part("tier_mark", name) if name in TIERS else name, f"{count:,}", f"{found.mean:.1f}",
         f"{found.low:.1f} to {found.high:.1f}"]
        for name, count, found in audit.recall
    ]  # fmt: skip
    answers = audit.answers
    sheets, cells = draw_places(audit.places)
    points = Points(
        sheets.points(answers.positions, answers.zones), np.where(answers.right, 0, 1),
        texts=[escape(Path(name).name) for name in answers.names], radius=5,
    )  # fmt: skip
    return Section(
        "Recall by tier",
        table_html(["tier", "queries", "recall@1, %", "95 % interval"], rows)
        + map_html(cells, points, label="map of the queries"),
        say("audit_recall"),
    )


def _comparison(audit: Audit, other: Places) -> Section:
    origin = audit.places.centres.min(axis=0)
    maps, rows, sheets = [], [], lay_out(audit.places)
    for places in (audit.places, other):
        facts = {"photos": places.counts, "m²": np.round(places.areas)}
        outlines = replace(sheets, home=places.home).outlines(places.outlines)
        cells = Cells(outlines, _kinds(audit, places), facts=facts)
        name = places.rule.name
        maps.append((name, map_html(cells, link="pair", origin=origin, label=name)))
        rows.append(
            [name, f"{len(places):,}", f"{imbalance_ratio(places.counts):,.1f} : 1",
             f"{gini(places.counts):.2f}", f"{imbalance_ratio(places.areas):,.0f} : 1",
             f"{np.median(places.areas):,.0f} m²", f"{places.outside:,}"]
        )  # fmt: skip
    columns = ["partition", "places", "imbalance of counts", "Gini", "imbalance of areas",
               "median area", "photos outside"]  # fmt: skip
    return Section(
        f"{audit.places.rule.name} beside {other.rule.name}",
        table_html(columns, rows) + part("pair", maps),
        say("comparison", audit.places.rule.name),
    )


def _kinds(audit: Audit, places: Places) -> Ints:
    """Head, middle or tail by the thresholds of the audited places, so that colours compare."""
    head, tail = audit.tiers[0].least, audit.tiers[2].most
    return np.where(places.counts <= tail, 2, np.where(places.counts >= max(head, 1), 0, 1))


def _coverage(audit: Audit) -> Section | None:
    cover, drawn, missing = audit.coverage, [], []
    if cover.headings.size:
        drawn.append(("Which way photos look", heading_figure(cover.headings)))
    else:
        missing.append("headings")
    if len(cover.years):
        drawn.append(("When they were taken", year_figure(cover.years, cover.by_year)))
    else:
        missing.append("years")
    figures = [(title, inline_svg(one, title)) for title, one in drawn]
    note = say("coverage", missing, bool(drawn))
    return Section("Headings and years", part("pair", figures), note)


def _needs(audit: Audit) -> Section:
    rows = []
    for number, need in enumerate(audit.needs, 1):
        where: str = f"{need.centre[0]:,.0f} E, {need.centre[1]:,.0f} N"
        if need.zone:
            lat, lon = degrees(np.array(need.centre), need.zone)
            where = part("street", f"{lat:.5f}", f"{lon:.5f}")
        if len(audit.places.cities) > 1:
            where = Markup("{}: {}").format(need.city, where)
        rows.append([f"{number}", where, f"{need.below} of {need.places}", f"{need.photos:,}"])
    target = int(np.median(audit.places.counts)) if len(audit.places) else 0
    columns = ["", "block of 200 m", "places below the median", "photos to the median"]
    return Section(
        "Where new photos would help most",
        table_html(columns, rows) if rows else Markup("<p>No place lies below the median.</p>"),
        say("needs", target),
    )


def _left_out(audit: Audit, copies: Pictures) -> Section | None:
    skipped = [(one.path, one.reason) for one in audit.photos.skipped]
    skipped += [(path, "it cannot be decoded") for path in copies.unreadable]
    if not skipped:
        return None
    rows = [[Path(path).name, why] for path, why in skipped[:LISTED]]
    counts = len(audit.photos.skipped), len(copies.unreadable), len(skipped)
    return Section(
        "Left out", table_html(["file", "reason"], rows), say("left_out", *counts, LISTED)
    )
