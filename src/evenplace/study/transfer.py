"""One training, many tests: the paper's Tables 3 and 4, with tiers.

T tests
"""

from collections.abc import Mapping
from pathlib import Path

from evenplace.errors import RunError
from evenplace.photos.files import whole_file
from evenplace.places.tiers import TIERS
from evenplace.report.tables import markdown
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
        ]
    )


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
    """Write out/tables.md; each test has a folder of its own beside it."""
    text = f"# One training, {len(found)} tests\n\n`{command}`\n\n{transfer_tables(found)}\n"
    with whole_file(out / "tables.md", RunError) as draft:
        draft.write_text(text, encoding="utf-8")
    return out / "tables.md"
