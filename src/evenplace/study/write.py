"""Findings → a folder: tables.md, figures, and what was run."""

import datetime
import platform
from pathlib import Path

from evenplace.errors import RunError
from evenplace.photos.files import whole_file
from evenplace.study.figures import write_figures
from evenplace.study.runs import Findings
from evenplace.study.tables import TABLES

TITLES = {
    "recall": "Recall",
    "beside": "Recall",
    "tiers": "By tier",
    "gains": "Differences",
    "gains-5": "Differences among the first five",
    "areas": "By the extent of the place",
    "confidence": "Confidence",
    "cost": "Cost",
    "pipelines": "Pipelines",
    "abstention": "Answer or abstain",
    "elsewhere": "Photos of other cities",
}


def write_findings(found: Findings, out: Path, *, command: str = "") -> Path:
    """Write out/tables.md and out/figures/*.svg, *.png, *.csv; returns the path of the tables."""
    ran = f"`{command}`, " if command else ""
    parts = [f"# {found.study.name}: {found.study.question}", ran + about(found)]
    if found.study.note:
        parts.append(found.study.note)
    for name in found.study.tables:
        parts.append(f"## {TITLES[name]}\n\n{TABLES[name](found)}")
    for name, caption in write_figures(found, out / "figures"):
        parts.append(f"![{caption}](figures/{name}.svg)\n\n{caption}")
    with whole_file(out / "tables.md", RunError) as draft:
        draft.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return out / "tables.md"


def about(found: Findings) -> str:
    """When, where and on what it was found."""
    first = found.splits[0]
    return (
        f"{datetime.date.today()}, {platform.machine()}, {platform.system()}. "
        f"Data: {first.name}, seeds {', '.join(str(split.seed) for split in found.splits)}, "
        f"{len(first.train)} photos to train on, {len(first.database)} to search in, "
        f"{len(first.queries)} queries (first seed)."
    )
