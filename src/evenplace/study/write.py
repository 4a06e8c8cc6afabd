"""Findings → a folder: tables.md, figures, and what was run, on one test or on many."""

import datetime
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from evenplace.photos.files import write_text
from evenplace.places.tiers import TIERS
from evenplace.report.figures import save_figure
from evenplace.study import tables
from evenplace.study.confidence_tables import (
    abstention_table,
    confidence_table,
    elsewhere_table,
    uncertainty_table,
)
from evenplace.study.figures import draw, draw_multiples
from evenplace.study.runs import Findings

TABLES: dict[str, tuple[str, Callable[[Findings], str]]] = {
    "recall": ("Recall", tables.recall_table),
    "beside": ("Recall", tables.beside_table),
    "tiers": ("By tier", tables.tier_table),
    "tails": ("In the tail", tables.tail_table),
    "gains": ("Differences", tables.gain_table),
    "gains-5": ("Differences among the first five", partial(tables.gain_table, rank=5)),
    "areas": ("By the extent of the place", tables.area_table),
    "uncertainty": ("Uncertainty", lambda found: uncertainty_table({found.splits[0].name: found})),
    "confidence": ("Confidence", confidence_table),
    "cost": ("Cost", tables.cost_table),
    "pipelines": ("Pipelines", lambda found: tables.pipeline_table({"": found})),
    "abstention": ("Answer or abstain", abstention_table),
    "elsewhere": ("Photos of other cities", elsewhere_table),
}


def table_text(found: Findings, name: str) -> str:
    """A table under its title, as Markdown."""
    title, write = TABLES[name]
    return f"## {title}\n\n{write(found)}"


def write_findings(found: Findings, out: Path, *, command: str = "") -> Path:
    """Write out/tables.md and out/figures/*.svg, *.png, *.csv; returns the path of the tables."""
    ran = f"`{command}`, " if command else ""
    parts = [f"# {found.study.name}: {found.study.question}", ran + about(found)]
    if found.study.note:
        parts.append(found.study.note)
    for name in found.study.tables:
        parts.append(table_text(found, name))
    for name in found.study.figures:
        file = f"{found.study.name}-{name}"
        _, caption = draw(found, name, out / "figures" / file)
        parts.append(f"![{caption}](figures/{file}.svg)\n\n{caption}")
    return _write(parts, out)


def _write(parts: Sequence[str], out: Path) -> Path:
    return write_text(out / "tables.md", "\n\n".join(parts) + "\n")


def about(found: Findings) -> str:
    """When, where and on what it was found."""
    first = found.splits[0]
    return (
        f"{datetime.date.today()}, {platform.machine()}, {platform.system()}. "
        f"Data: {first.name}, seeds {', '.join(str(split.seed) for split in found.splits)}, "
        f"{len(first.train)} photos to train on, {len(first.database)} to search in, "
        f"{len(first.queries)} queries (first seed)."
    )


def write_transfer(found: Mapping[str, Findings], out: Path, command: str = "") -> Path:
    """Write out/tables.md and its figure; each test has a folder of its own beside it."""
    save_figure(draw_multiples(found), out / "figures" / "tests")
    drawn = "![R@1 of every method and test](figures/tests.svg)"
    title = f"# One training, {len(found)} tests"
    return _write([title, f"`{command}`", transfer_tables(found), drawn], out)


def transfer_tables(found: Mapping[str, Findings]) -> str:
    """R@1, 5, 10 of every test, R@1 by tier, R@1, 5, 10 in the tail; then what the study adds."""
    first = next(iter(found.values()))
    parts = [
        _about_tests(found),
        tables.system_table(
            found, tables.recall_columns(), tables.paper_columns(first, tail=False)
        ),
        "R@N by tier: queries ranked by how often their place was photographed, 30 % head, "
        "40 % middle, 30 % tail, as the paper's MSLS and Pitts30k tables. The paper's numbers are "
        "R@1 / R@5 / R@10.",
        tables.system_table(found, tables.query_columns(TIERS, (1,))),
        tables.system_table(
            found, tables.query_columns(("tail",)), tables.paper_columns(first, tail=True)
        ),
    ]
    more = {"pipelines": tables.pipeline_table, "confidence": uncertainty_table}
    return "\n\n".join([*parts, *(more[one](found) for one in first.study.tables if one in more)])


def _about_tests(found: Mapping[str, Findings]) -> str:
    """What was trained on, and the size of every test."""
    first = next(iter(found.values())).splits[0]
    told = [
        f"{name}: {len(one.splits[0].database):,} photos, {len(one.splits[0].queries):,} queries, "
        f"right within {one.splits[0].truth}"
        for name, one in found.items()
    ]
    cities = ", ".join(first.train.cities)
    seeds = ", ".join(str(split.seed) for split in next(iter(found.values())).splits)
    return (
        f"Trained on {len(first.train):,} photos of {cities}, seeds {seeds}; the same network asks "
        f"every test. {'; '.join(told)}."
    )
