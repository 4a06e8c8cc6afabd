"""Scores as tables: for a terminal, for a page, for a file."""

from collections.abc import Sequence

import numpy as np

from evenplace.evaluation import Scores, compare_pairs
from evenplace.evaluation.conditions import LABELS
from evenplace.places.tiers import TIERS

COLUMNS = (
    "system", "R@1", "R@1 findable", "R@5", "R@10", "head R@1", "middle R@1", "tail R@1", "LR@1",
    "pool", "mAP@10", "median m", "ms",
)  # fmt: skip
TIER_COLUMNS = ("system", *(f"{tier} R@{rank}" for tier in TIERS for rank in (5, 10)))
GAIN_COLUMNS = ("difference in R@1", "overall", *TIERS)
KNOWING_COLUMNS = ("system", "source", "AUC-PR", "AUROC", "AURC", "at 95 %", "at 99 %", "ECE")
CONDITION_COLUMNS = ("condition", "", "queries")
NOTHING = "–"


def score_rows(systems: Sequence[Scores]) -> list[list[str]]:
    """One row a system; intervals at 95 %, milliseconds the median of one query.

    R@1 counts queries without a match as failures, "findable" leaves them out.
    """
    return [
        [
            scores.name,
            str(scores.overall.intervals[1]),
            number(scores.answerable.recall[1]),
            *(f"{scores.recall[rank]:.1f}" for rank in (5, 10)),
            *(str(scores.tier(tier).intervals[1]) for tier in TIERS),
            f"{scores.classifier.recall[1]:.1f}",
            f"{scores.pool.recall[1]:.1f}",
            number(scores.mean_precision[10].mean),
            number(scores.position.median),
            f"{scores.cost.median_ms:.0f}",
        ]
        for scores in systems
    ]


def tier_rows(systems: Sequence[Scores]) -> list[list[str]]:
    """R@5 and R@10 of every tier, with intervals; R@1 is in the first table."""
    return [
        [one.name, *(str(one.tier(tier).intervals[rank]) for tier in TIERS for rank in (5, 10))]
        for one in systems
    ]


def gain_rows(systems: Sequence[Scores]) -> list[list[str]]:
    """What each system wins over the first one on the same queries, in points of R@1."""
    base = systems[0].predictions
    return [
        [
            f"{scores.name} − {systems[0].name}",
            *(str(compare_pairs(scores.predictions, base, tier)) for tier in (None, 0, 1, 2)),
        ]
        for scores in systems[1:]
    ]


def knowing_rows(systems: Sequence[Scores]) -> list[list[str]]:
    """How well each source of confidence tells right from wrong; "own" is the system's."""
    return [
        [
            scores.name,
            source,
            *(number(value, 3) for value in (found.auc_pr, found.auroc, found.aurc)),
            *(f"{100 * share:.1f} %" for share in found.coverage.values()),
            number(found.ece, 3),
        ]
        for scores in systems
        for source, found in scores.knowing.items()
    ]


def condition_rows(systems: Sequence[Scores]) -> list[list[str]]:
    """R@1 by condition: a row for each label, a column for each system.

    With another database, or radius, a system may have no query under a label of another's.
    """
    rows = []
    for what, label in ((what, label) for what, labels in LABELS.items() for label in labels):
        found = [one.conditions.get(what, {}).get(label) for one in systems]
        if any(found):
            recalls = [str(one.intervals[1]) if one else NOTHING for one in found]
            rows.append([what, label, span([one.queries for one in found if one]), *recalls])
    return rows


def cost_table(systems: Sequence[Scores]) -> tuple[list[str], list[list[str]]]:
    """What each system takes: sizes, and median / 95th percentile of each stage."""
    stages = list(dict.fromkeys(stage for scores in systems for stage in scores.cost.latency))
    columns = ["system", "parameters", "numbers a photo", "index", "memory", "candidates"]
    rows = []
    for scores in systems:
        cost = scores.cost
        spent = [cost.latency.get(stage) for stage in stages]
        rows.append(
            [
                scores.name,
                f"{cost.parameters / 1e6:.1f} M",
                str(cost.dim),
                f"{cost.index_bytes / 2**20:.1f} MiB",
                f"{cost.resident_bytes / 2**20:.0f} MiB",
                f"{cost.pool_size:.0f}",
                *(f"{one.median_ms:.2f} / {one.p95_ms:.2f}" if one else NOTHING for one in spent),
                f"{cost.median_ms:.1f}",
            ]
        )
    return [*columns, *(f"{stage}, ms" for stage in stages), "a query, ms"], rows


def number(value: float, digits: int = 1) -> str:
    """A figure, or a dash where there is none."""
    return f"{value:.{digits}f}" if np.isfinite(value) else NOTHING


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Mean ± standard deviation over the seeds; the mean alone for one."""
    known = np.array([value for value in values if np.isfinite(value)])
    if len(known) < 2:
        return number(known[0] if len(known) else np.nan, digits)
    return f"{known.mean():.{digits}f} ± {known.std(ddof=1):.{digits}f}"


def span(values: Sequence[int]) -> str:
    """A number, or from which to which."""
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a file or an issue."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def say_databases(systems: Sequence[Scores]) -> str:
    """That systems searched other photos, so that a difference is not theirs alone; or nothing."""
    found = [system.predictions.positives for system in systems]
    if all(np.array_equal(one, found[0]) for one in found[1:]):
        return ""
    each = ", ".join(
        f"{(one > 0).sum()} in that of {system.name}"
        for one, system in zip(found, systems, strict=True)
    )
    return (
        f"These are different databases: of {len(found[0])} queries a match is there for {each}; "
        "differences are of the photos too, not of the systems alone."
    )
