"""Places to photograph next, as GeoJSON and as a page with a map."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup

from evenplace.photos.files import write_text
from evenplace.photos.geodesy import degrees, say_spot
from evenplace.places import Places
from evenplace.places.wanted import Wanted
from evenplace.report.map import TIER_KEYS, Cells, Points, map_html
from evenplace.report.page import Section, page, part, table_html

KEYS = (("photograph here", "--accent"), ("a gap, by guess", "--ink"))
KINDS = (".geojson", ".html")


def write_wanted(wanted: Sequence[Wanted], places: Places, out: Path) -> None:
    """Write the list as the ending says."""
    flat = out.suffix.lower() == ".geojson"
    write_text(out, _geojson(wanted) if flat else _page(wanted, places))


def say_sides(one: Wanted) -> str:
    """Which ways to look, each once, with how often."""
    counts = Counter(one.sides)
    return ", ".join(f"{side} ×{many}" if many > 1 else side for side, many in counts.items())


def wanted_row(one: Wanted) -> list[str]:
    """Where, how many to take, how many there are, what they would gain, and which way to look."""
    where = say_spot(one.east, one.north, *_degrees(one))
    return [where, str(one.photos), str(one.have), f"+{one.gain}", say_sides(one)]


def _degrees(one: Wanted) -> tuple[float, float]:
    latitude, longitude = degrees(np.array([[one.east, one.north]]), [one.zone])[0].tolist()
    return latitude, longitude


def _geojson(wanted: Sequence[Wanted]) -> str:
    features = []
    for rank, one in enumerate(wanted, start=1):
        latitude, longitude = _degrees(one)
        told = {"rank": rank, "photos": one.photos, "have": one.have, "gain": one.gain,
                "sides": list(one.sides), "between": one.between}  # fmt: skip
        point = {"type": "Point", "coordinates": [round(longitude, 7), round(latitude, 7)]}
        features.append({"type": "Feature", "geometry": point, "properties": told})
    return json.dumps({"type": "FeatureCollection", "features": features})


def _page(wanted: Sequence[Wanted], places: Places) -> str:
    cells = Cells(places.outlines, places.tiers, TIER_KEYS, {"photos": places.counts})
    texts = [
        Markup("<b>{}.</b> take {}, has {}; +{} in 100 here<br>look {}").format(
            rank, one.photos, one.have, one.gain, say_sides(one)
        )
        for rank, one in enumerate(wanted, start=1)
    ]
    spots = np.array([(one.east, one.north) for one in wanted]).reshape(-1, 2)
    kinds = np.array([one.between for one in wanted], np.uint8)
    points = Points(spots, kinds, KEYS, texts, radius=6)
    drawn = map_html(cells, points, label="where to photograph")
    rows = [[str(rank), *wanted_row(one)] for rank, one in enumerate(wanted, start=1)]
    legend = Markup(" ").join(part("colour_mark", name, colour) for name, colour in KEYS)
    columns = ("rank", "where", "take", "has", "gain", "look")
    said = legend + ". Gain: right answers more in 100 questions there."
    listed = Section("The list", table_html(columns, rows, texts=(1, 5)))
    return page("Where to photograph next", [Section("The map", drawn, said), listed])
