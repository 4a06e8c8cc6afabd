"""Answers to many photos put into a file of the kind its ending says."""

from collections.abc import Sequence
from pathlib import Path

from evenplace.errors import RunError, SettingError
from evenplace.photos.files import whole_file
from evenplace.places import Places
from evenplace.report.answer_files import WRITERS
from evenplace.report.answer_page import answer_page
from evenplace.run.located import Located

KINDS = (*WRITERS, ".html")
GLOBE = (".geojson", ".gpx", ".kml")  # kinds that know degrees only


def check_out(out: Path, zones: Sequence[int]) -> None:
    """Refuse a file of a kind nobody knows, or one that needs degrees where there are none."""
    kind = out.suffix.lower()
    if kind not in KINDS:
        raise SettingError(f"--out {out} ends in no kind of answers; use {', '.join(KINDS)}")
    if 0 in zones and kind in GLOBE:
        raise SettingError(
            f"--out {out} needs degrees, and this database has local metres; use .csv, .parquet "
            "or .html"
        )


def write_answers(lines: Sequence[Located], out: Path, places: Places) -> None:
    """Write answers whole.  places: what the map page shows as photographed."""
    kind = out.suffix.lower()
    with whole_file(out, RunError) as draft:
        if kind == ".html":
            draft.write_text(answer_page(lines, places, out.parent), encoding="utf-8")
        else:
            draft.write_bytes(WRITERS[kind](lines))
