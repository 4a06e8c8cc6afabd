"""One training, many tests: the paper's Tables 3 and 4, with tiers.

T tests
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from evenplace.errors import RunError
from evenplace.evaluation import Scores
from evenplace.photos.files import whole_file
from evenplace.places.tiers import TIERS
from evenplace.report.figures import save_figure
from evenplace.report.tables import markdown, spread
from evenplace.study import paper
from evenplace.study.figures import draw_multiples
from evenplace.study.runs import Findings

_RANKS = (1, 5, 10)


def transfer_tables(found: Mapping[str, Findings]) -> str:
    """A row a system: R@1, 5, 10 of every test, R@1 by tier, then R@1, 5, 10 in the tail."""
    first = next(iter(found.values())).study
    named = dict.fromkeys(column for one in first.systems for column in one.paper)
    beside = [column for column in named if column not in (paper.TIME, paper.LR1, paper.LR2)]
    tails = [column for column in beside if "tail" in column]
    overall = {f"R@{n}": ("", n) for n in _RANKS}
    tail = {f"tail R@{n}": ("tail", n) for n in _RANKS}
    parts = [
        _about(found),
        _table(found, overall, [one for one in beside if one not in tails]),
        "R@N by tier: queries ranked by how often their place was photographed, 30 % head, "
        "40 % middle, 30 % tail, as the paper's MSLS and Pitts30k tables. The paper's numbers are "
        "R@1 / R@5 / R@10.",
        _table(found, {tier: (tier, 1) for tier in TIERS}, []),
        _table(found, tail, tails),
    ]
    return "\n\n".join([*parts, *([_uncertainty(found)] if "confidence" in first.tables else [])])


def _table(
    found: Mapping[str, Findings], cells: Mapping[str, tuple[str, int]], beside: Sequence[str]
) -> str:
    """Each cell's R@N in one tier, or of all queries, for every test; then the paper's columns."""
    rows = []
    for system in next(iter(found.values())).study.systems:
        row = [system.name]
        for one in found.values():
            for tier, rank in cells.values():
                row.append(
                    spread([_recall(part, tier, rank) for part in one.of(system.name).parts])
                )
        rows.append([*row, *(system.paper.get(column, "") for column in beside)])
    return markdown(["system", *(f"{test} {c}" for test in found for c in cells), *beside], rows)


def _recall(scores: Scores, tier: str, rank: int) -> float:
    return (scores.by_query[tier] if tier else scores.overall).recall[rank]


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
