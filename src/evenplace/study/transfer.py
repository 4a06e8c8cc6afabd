"""One training, many tests: the paper's Tables 3 and 4, with tiers.

T tests
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from evenplace.errors import RunError
from evenplace.evaluation import Scores
from evenplace.photos.files import whole_file
from evenplace.places.tiers import TIERS
from evenplace.report.figures import STYLE, SYSTEM_COLOURS, save_figure
from evenplace.report.tables import markdown
from evenplace.study import paper
from evenplace.study.runs import Findings
from evenplace.study.spread import spread

_RANKS = (1, 5, 10)


def transfer_tables(found: Mapping[str, Findings]) -> str:
    """A row a system; R@1, 5, 10 of every test, then R@1 by tier."""
    tests = list(found)
    first = next(iter(found.values()))
    rows, tiers = [], []
    for one in first.outcomes:
        name = one.system.name
        parts = [found[test].of(name).parts for test in tests]
        rows.append(
            [name] + [spread([p.recall[n] for p in mine]) for mine in parts for n in _RANKS]
        )
        tiers.append(
            [name]
            + [
                spread([p.by_query[tier].recall[1] for p in mine])
                for mine in parts
                for tier in TIERS
            ]
        )
    recall = ["system", *(f"{test} R@{n}" for test in tests for n in _RANKS)]
    tiered = ["system", *(f"{test} {tier}" for test in tests for tier in TIERS)]
    return "\n\n".join(
        [
            _about(found),
            markdown(recall, rows),
            "R@1 by tier: queries ranked by how often their place was photographed, 30 % head, "
            "40 % middle, 30 % tail, as the paper's MSLS and Pitts30k tables.",
            markdown(tiered, tiers),
            *([_uncertainty(found)] if "confidence" in first.study.tables else []),
        ]
    )


def _uncertainty(found: Mapping[str, Findings]) -> str:
    """AUC-PR of every source on each test, in the supplement's layout; the last system's answers.

    paper: the supplement's own row of that source, for the sets it has.
    """
    last = next(iter(found.values())).outcomes[-1].system.name
    asked = {test: one.of(last).parts for test, one in found.items()}
    sources = list(next(iter(asked.values()))[0].knowing)
    theirs = list(paper.CONFIDENCE["l2"])
    rows = [
        [name, *(spread([p.knowing[name].auc_pr for p in parts], 3) for parts in asked.values()),
         *(paper.CONFIDENCE.get(name, {}).get(data, "") for data in theirs)]
        for name in sources
    ]  # fmt: skip
    columns = ["source", *(f"{test}, AUC-PR" for test in asked), *(f"paper, {d}" for d in theirs)]
    return f"Uncertainty, of {last}'s answers; `own` is the system's.\n\n{markdown(columns, rows)}"


@mpl.rc_context(STYLE)
def draw_multiples(found: Mapping[str, Findings]) -> Figure:
    """R@1 overall and by tier, a row a test and a column a method, plain beside changed."""
    study = next(iter(found.values())).study
    hosts = {host: [one.name for one in study.systems if study.baseline(one) == host]
             for host in dict.fromkeys(map(study.baseline, study.systems))}  # fmt: skip
    size = (2.2 * len(hosts) + 0.6, 1.9 * len(found) + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    grid: Any = figure.subplots(len(found), len(hosts), sharex=True, sharey=True, squeeze=False)
    for row, (test, one) in enumerate(found.items()):
        for column, (host, names) in enumerate(hosts.items()):
            axes = grid[row, column]
            for number, name in enumerate(names):
                at = np.arange(4) + (number - (len(names) - 1) / 2) * 0.8 / len(names)
                colour = SYSTEM_COLOURS[number % len(SYSTEM_COLOURS)]
                width = 0.74 / len(names)
                axes.bar(at, _by_tier(one.of(name).parts), width, color=colour, label=name)
            axes.set_title("" if row else host, fontsize=9)
            axes.set_ylabel("" if column else f"{test}, R@1 %", fontsize=9)
            axes.set_xticks(range(4), ("all", *TIERS), fontsize=8)
            if not row:
                axes.legend(fontsize=7, loc="upper right")
    grid[0, 0].set_ylim(0, 125)  # room for the legends
    grid[0, 0].set_yticks(range(0, 101, 20))
    return figure


def _by_tier(parts: Sequence[Scores]) -> list[float]:
    """R@1 overall and by tier, the mean of the seeds."""
    tiers = [[part.recall[1], *(part.by_query[tier].recall[1] for tier in TIERS)] for part in parts]
    return [float(one) for one in np.nan_to_num(np.mean(tiers, axis=0))]


def _about(found: Mapping[str, Findings]) -> str:
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


def write_transfer(found: Mapping[str, Findings], out: Path, command: str = "") -> Path:
    """Write out/tables.md and its figure; each test has a folder of its own beside it."""
    save_figure(draw_multiples(found), out / "figures" / "tests")
    text = (
        f"# One training, {len(found)} tests\n\n`{command}`\n\n{transfer_tables(found)}\n\n"
        "![R@1 of every method and test](figures/tests.svg)\n"
    )
    with whole_file(out / "tables.md", RunError) as draft:
        draft.write_text(text, encoding="utf-8")
    return out / "tables.md"
