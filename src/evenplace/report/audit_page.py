"""The audit as a page: numbers, curve, map, comparison, coverage, and where to go next.

# C places · P points
"""

import html
from dataclasses import replace
from pathlib import Path

import numpy as np

from evenplace.photos.geodesy import to_degrees
from evenplace.places.table import Places
from evenplace.places.tiers import TIERS, gini, imbalance_ratio
from evenplace.report.audit import Audit
from evenplace.report.audit_pictures import Samples, sample_pictures
from evenplace.report.audit_plots import Band, heading_rose, rank_plot, year_plot
from evenplace.report.map import Cells, Points, map_html, tiles_under
from evenplace.report.page import Figure, Section, figures_html, page, table_html, tier_mark
from evenplace.report.sheets import Sheets, lay_out

DOTS = 20_000
CURVES = 24  # cities whose ranks are drawn
SHARES = 24  # parts the ranks are cut into for diversity and recall


def audit_page(
    audit: Audit, title: str, folder: Path, pictures: int, tiles: str | None = None
) -> str:
    """The whole page; `folder` is where it will lie."""
    samples = sample_pictures(audit.photos, audit.places, folder, pictures)
    sections: list[Section | None] = [_numbers(audit), _cities(audit), _curve(audit)]
    sections.append(_map(audit, samples, tiles))
    if audit.recall:
        sections.append(_recall(audit))
    if audit.against is not None:
        sections.append(_comparison(audit, audit.against))
    sections += [_coverage(audit), _needs(audit), _left_out(audit, samples)]
    return page(
        title,
        [section for section in sections if section is not None],
        lead=html.escape(audit.sentence()),
        foot=f"Written by evenplace audit. Places: {html.escape(audit.places.rule.name)}, "
        f"{html.escape(str(_settings(audit.places)))}.",
    )


def _settings(places: Places) -> str:
    told = {
        name: value
        for name, value in places.rule.settings().items()
        if not isinstance(value, dict | list | tuple) and value is not None
    }
    return ", ".join(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
                     for name, value in told.items())  # fmt: skip


def _numbers(audit: Audit) -> Section:
    places, tail = audit.places, audit.tiers[-1]
    figures = [
        Figure(f"{len(audit.photos):,}", "photos", f"{places.outside:,} outside every place"),
        Figure(f"{len(places):,}", "places", f"{places.areas.sum() / 1e6:.2f} km² seen"),
        Figure(f"{audit.imbalance:,.0f} : 1", "imbalance",
               f"{places.counts.max():,} to {places.counts.min():,} photos"),
        Figure(f"{audit.gini:.2f}", "Gini", "0 even, 1 all in one place"),
        Figure(f"{audit.half:.0%}", "of the places", "hold half of the photos"),
        Figure(f"≤ {tail.most:,}", "photos in a tail place", f"{tail.places:,} places"),
    ]  # fmt: skip
    columns, rows = audit.table()
    marked = [[tier_mark(row[0]), *map(html.escape, row[1:])] for row in rows]
    return Section(
        "How uneven",
        figures_html(figures) + "<h3>Head, middle and tail</h3>" + table_html(columns, marked),
        "Places are ranked by their photos: the top 30 % are the head, the next 40 % the middle, "
        "the last 30 % the tail.",
    )


def _cities(audit: Audit) -> Section | None:
    """A row a city, each with tiers of its own, and all of them together."""
    columns, rows = audit.city_table()
    if not rows:
        return None
    cells = [[html.escape(cell) for cell in row] for row in rows]
    places, curves = audit.places, ""
    for at, name in enumerate(places.cities[:CURVES]):
        counts = places.counts[places.city == at]
        if len(counts):
            curve = rank_plot([(name, counts)])
            curves += f"<div><h3>{html.escape(name)}</h3>{curve}</div>"
    return Section(
        "City by city",
        table_html(columns, cells) + f'<div class="pair">{curves}</div>',
        "Each city by itself: its own head and tail are the top and the last 30 % of its own "
        "places. The last row is all of them together, as everything else on this page.",
    )


def _curve(audit: Audit) -> Section:
    places = audit.places
    edges = (audit.tiers[0].places, len(places) - audit.tiers[2].places)
    curves = [(places.rule.name, places.counts)]
    if audit.against is not None:
        curves.append((audit.against.rule.name, audit.against.counts))
    bands = _bands(audit)
    left = rank_plot(curves[:1], edges, bands=bands)
    right = rank_plot(curves, log_rank=True)
    legend = '<i style="background:var(--accent)"></i>' + html.escape(places.rule.name)
    if audit.against is not None:
        legend += ' <i style="background:var(--soft)"></i>' + html.escape(audit.against.rule.name)
    note = (
        "Left: photos of each place on a log axis, with the tiers. Right: the same with both axes "
        "logarithmic."
    )
    if bands:
        note += f" Dotted, on the right axis: {html.escape(bands[0].name)}, with its spread."
    return Section(
        "Rank and count",
        f'<div class="pair"><div>{left}</div><div>{right}'
        f'<div class="legend">{legend}</div></div></div>',
        note,
    )


def _bands(audit: Audit) -> list[Band]:
    """Similarity within places along the ranks, or recall when that is all there is."""
    if audit.diversity is None:
        return []
    order = np.argsort(-audit.places.counts, kind="stable")
    parts = np.array_split(order, min(SHARES, len(order)))
    middle, spread = (
        np.array([_mean(values[part]) for part in parts])
        for values in (audit.diversity.mean, audit.diversity.spread)
    )
    low, high = np.clip(middle - spread, 0, 1), np.clip(middle + spread, 0, 1)
    return [Band("similarity within a place", low, np.clip(middle, 0, 1), high)]


def _mean(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _map(audit: Audit, samples: Samples, tiles: str | None) -> Section:
    places = audit.places
    facts: dict[str, object] = {"photos": places.counts, "east": np.round(places.centres[:, 0]),
                                "north": np.round(places.centres[:, 1])}  # fmt: skip
    if len(places.maps) > 1:
        facts["city"] = [places.maps[home].city for home in places.home]
    if audit.coverage.headings.size:
        facts["sides seen, of 12"] = audit.coverage.sides
    if audit.diversity is not None:
        facts["similarity within"] = np.round(np.nan_to_num(audit.diversity.mean, nan=-1), 3)
    sheets = lay_out(places)
    outlines = sheets.outlines(places.outlines)
    cells = Cells(outlines, places.tiers, facts=facts, pictures=samples.sources)  # type: ignore[arg-type]
    beside = ""
    if len(places.maps) > 1:
        beside = f" The cities lie beside each other: {html.escape(', '.join(places.cities))}."
    return Section(
        "Where",
        map_html(cells, Points(_dots(audit, sheets)), tiles=tiles_under(tiles, places)),
        "Each place in the colour of its tier. Drag to move (two fingers on a phone); click a "
        f"place for its photos, and then the wheel zooms; a button hides a tier.{beside}",
    )


def _dots(audit: Audit, sheets: Sheets) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    every = max(1, -(-len(audit.photos) // DOTS))
    some = audit.photos[::every]
    return sheets.points(some.positions, some.zone)


def _recall(audit: Audit) -> Section:
    assert audit.answers is not None
    rows = [
        [tier_mark(name) if name in TIERS else name, f"{count:,}", f"{found.mean:.1f}",
         f"{found.low:.1f} to {found.high:.1f}"]
        for name, count, found in audit.recall
    ]  # fmt: skip
    answers = audit.answers
    sheets = lay_out(audit.places)
    points = Points(
        sheets.points(answers.positions, answers.zones), np.where(answers.right, 0, 1),
        texts=[html.escape(Path(name).name) for name in answers.names], radius=5,
    )  # fmt: skip
    outlines = sheets.outlines(audit.places.outlines)
    cells = Cells(outlines, audit.places.tiers, facts={"photos": audit.places.counts})
    return Section(
        "Recall by tier",
        table_html(["tier", "queries", "recall@1, %", "95 % interval"], rows)
        + map_html(cells, points, label="map of the queries"),
        "A query belongs to the tier of the place it was taken in. Intervals are bootstrapped over "
        "places. Green dots were answered within 25 m, red ones were not.",
    )


def _comparison(audit: Audit, other: Places) -> Section:
    origin = audit.places.centres.min(axis=0)
    maps, rows, sheets = "", [], lay_out(audit.places)
    for places in (audit.places, other):
        facts = {"photos": places.counts, "m²": np.round(places.areas)}
        outlines = replace(sheets, home=places.home).outlines(places.outlines)
        cells = Cells(outlines, _kinds(audit, places), facts=facts)
        name = html.escape(places.rule.name)
        maps += (
            f"<div><h3>{name}</h3>{map_html(cells, link='pair', origin=origin, label=name)}</div>"
        )
        rows.append(
            [name, f"{len(places):,}", f"{imbalance_ratio(places.counts):,.1f} : 1",
             f"{gini(places.counts):.2f}", f"{imbalance_ratio(places.areas):,.0f} : 1",
             f"{np.median(places.areas):,.0f} m²", f"{places.outside:,}"]
        )  # fmt: skip
    columns = ["partition", "places", "imbalance of counts", "Gini", "imbalance of areas",
               "median area", "photos outside"]  # fmt: skip
    return Section(
        f"{audit.places.rule.name} beside {other.rule.name}",
        table_html(columns, rows) + f'<div class="pair">{maps}</div>',
        "A partition that evens the counts moves the unevenness into the areas: a place downtown "
        "becomes a doorstep, one at the edge of town a quarter. Colours go by count, with the "
        f"thresholds of {audit.places.rule.name}; the two maps move together.",
    )


def _kinds(audit: Audit, places: Places) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Head, middle or tail by the thresholds of the audited places, so that colours compare."""
    head, tail = audit.tiers[0].least, audit.tiers[2].most
    return np.where(places.counts <= tail, 2, np.where(places.counts >= max(head, 1), 0, 1))


def _coverage(audit: Audit) -> Section | None:
    cover = audit.coverage
    parts = []
    if cover.headings.size:
        parts.append(f"<div><h3>Which way photos look</h3>{heading_rose(cover.headings)}</div>")
    if len(cover.years):
        parts.append(
            f"<div><h3>When they were taken</h3>{year_plot(cover.years, cover.by_year)}</div>"
        )
    missing = [
        what
        for what, known in (("headings", cover.headings.size), ("years", len(cover.years)))
        if not known
    ]
    note = "Petals and bars are shares and photos of each tier."
    if missing:
        note = f"These photos tell no {' and no '.join(missing)}. " + (note if parts else "")
    return Section("Headings and years", f'<div class="pair">{"".join(parts)}</div>', note)


def _needs(audit: Audit) -> Section:
    rows = []
    for number, need in enumerate(audit.needs, 1):
        where = f"{need.centre[0]:,.0f} E, {need.centre[1]:,.0f} N"
        if need.zone:
            (lat,), (lon,) = to_degrees([need.centre[0]], [need.centre[1]], need.zone)
            where = (
                f'<a href="https://www.openstreetmap.org/?mlat={lat:.5f}&amp;mlon={lon:.5f}#map=18/'
                f'{lat:.5f}/{lon:.5f}">{lat:.5f}, {lon:.5f}</a>'
            )
        if len(audit.places.cities) > 1:
            where = f"{html.escape(need.city)}: {where}"
        rows.append([f"{number}", where, f"{need.below} of {need.places}", f"{need.photos:,}"])
    target = int(np.median(audit.places.counts)) if len(audit.places) else 0
    body = table_html(
        ["", "block of 200 m", "places below the median", "photos to the median"], rows
    )
    return Section(
        "Where new photos would help most",
        body if rows else "<p>No place lies below the median.</p>",
        f"The median place has {target} photos. Blocks are ranked by how many of their places have "
        "fewer; the last column is what would bring them all there.",
    )


def _left_out(audit: Audit, samples: Samples) -> Section | None:
    skipped = [(one.path, one.reason) for one in audit.photos.skipped]
    skipped += [(path, "it cannot be decoded") for path in samples.unreadable]
    if not skipped:
        return None
    rows = [[html.escape(Path(path).name), html.escape(why)] for path, why in skipped[:200]]
    more = f"<p>and {len(skipped) - 200:,} more</p>" if len(skipped) > 200 else ""
    return Section(
        "Left out",
        table_html(["file", "reason"], rows) + more,
        f"{len(audit.photos.skipped):,} photos could not be placed, "
        f"{len(samples.unreadable):,} of those looked at could not be opened.",
    )
