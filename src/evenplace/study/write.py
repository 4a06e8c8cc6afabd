"""Findings → a folder: tables.md, figures, and what was run."""

import datetime
import platform
from pathlib import Path

from evenplace.errors import RunError
from evenplace.photos.files import whole_file
from evenplace.study.figures import write_figures
from evenplace.study.runs import Findings
from evenplace.study.tables import TABLES

_TITLES = {
    "recall": "Recall",
    "gains": "Differences",
    "areas": "By the extent of the place",
    "confidence": "Confidence",
    "cost": "Cost",
    "abstention": "Answer or abstain",
}


def write_findings(found: Findings, out: Path, *, command: str = "") -> Path:
    """Write out/tables.md and out/figures/*.svg, *.png; returns the path of the tables."""
    parts = [f"# {found.study.name}: {found.study.question}", _about(found, command)]
    if found.study.note:
        parts.append(found.study.note)
    for name in found.study.tables:
        parts.append(f"## {_TITLES[name]}\n\n{TABLES[name](found)}")
    for name, caption in write_figures(found, out / "figures"):
        parts.append(f"![{caption}](figures/{name}.svg)\n\n{caption}")
    with whole_file(out / "tables.md", RunError) as draft:
        draft.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return out / "tables.md"


def _about(found: Findings, command: str) -> str:
    first = found.splits[0]
    ran = f"`{command}`, " if command else ""
    return (
        f"{ran}{datetime.date.today()}, {platform.machine()}, {platform.system()}. "
        f"Data: {first.name}, seeds {', '.join(str(split.seed) for split in found.splits)}, "
        f"{len(first.train)} photos to train on, {len(first.database)} to search in, "
        f"{len(first.queries)} queries (first seed)."
    )
