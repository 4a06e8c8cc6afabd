"""Scores as tables: for a terminal, for a page, for a file."""

from collections.abc import Sequence

from evenplace.evaluation import Interval, Scores, compare
from evenplace.places.tiers import TIERS

COLUMNS = ("system", "R@1", "R@5", "head R@1", "middle R@1", "tail R@1", "LR@1", "pool", "ms")


def score_rows(systems: Sequence[Scores]) -> list[list[str]]:
    """One row a system; intervals at 95 %, milliseconds the median of one query."""
    return [
        [
            scores.name,
            str(scores.overall.intervals[1]),
            f"{scores.recall[5]:.1f}",
            *(str(scores.tier(tier).intervals[1]) for tier in TIERS),
            f"{scores.classifier.recall[1]:.1f}",
            f"{scores.pool.recall[1]:.1f}",
            f"{sum(stage.median_ms for stage in scores.cost.latency.values()):.0f}",
        ]
        for scores in systems
    ]


def gain_rows(systems: Sequence[Scores]) -> list[list[str]]:
    """What each system wins over the first one on the same queries, in points of R@1."""
    base = systems[0].predictions
    return [
        [
            f"{scores.name} − {systems[0].name}",
            *(_signed(compare(scores.predictions, base, tier)) for tier in (None, 0, 1, 2)),
        ]
        for scores in systems[1:]
    ]


GAIN_COLUMNS = ("difference in R@1", "overall", *TIERS)


def _signed(gain: Interval) -> str:
    mark = " *" if gain.excludes_zero else ""
    return f"{gain.mean:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}]{mark}"


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a file or an issue."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
