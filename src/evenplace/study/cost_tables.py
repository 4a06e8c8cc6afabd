"""What answers cost: milliseconds by stage, bytes of the index and of the candidates (Table 1)."""

from collections.abc import Mapping
from functools import partial

from evenplace.evaluation import Scores
from evenplace.evaluation.conditions import LABELS
from evenplace.report import tables
from evenplace.report.tables import markdown, spread
from evenplace.study.runs import Findings, Outcome
from evenplace.study.tables import TIME, Columns, counts, recall_columns

LIGHTS = LABELS["light"]
SFXL = 2_800_000  # photos of its test database
THEIRS = ("paper, SF-XL v1", "paper, SF-XL v2", TIME)


def cost_table(found: Findings) -> str:
    """The paper's memory and time table: sizes, and the milliseconds of each stage."""
    columns, rows = tables.cost_table([one.joint for one in found.outcomes])
    beside = [one.system.paper.get(TIME, "") for one in found.outcomes]
    told = "Median / 95th percentile milliseconds of each stage, one query at a time."
    wider = [[*row, theirs] for row, theirs in zip(rows, beside, strict=True)]
    return f"{told}\n\n{markdown([*columns, TIME], wider)}"


def pipeline_table(tests: Mapping[str, Findings]) -> str:
    """Table 1: R@1 of every test, milliseconds, bytes of the index and of the candidates."""
    first = next(iter(tests.values()))
    asked = recall_columns(ranks=(1,)) | (_lights(first) if len(tests) == 1 else {})
    columns = ["system", "kind", *(f"{test} {one}".strip() for test in tests for one in asked),
               "LR@1", "a query, ms", "numbers", "index, MB", "candidates, kB", "at SF-XL's size",
               *THEIRS]  # fmt: skip
    rows = []
    for one in first.outcomes:
        seeds = [found.of(one.system.name).parts for found in tests.values()]
        ours = [spread([of(part) for part in parts]) for parts in seeds for of in asked.values()]
        rows.append([one.system.name, _kind(one), *ours, *_row(one)])
    return (
        f"{counts(first)}\n\n{markdown(columns, rows)}\n\n"
        "“Candidates” is what ranking must have at hand for one query: the descriptors of all "
        "photos under retrieval, those of the shortlist else, 4 bytes a number; at SF-XL's size "
        f"of {SFXL:,} photos, or as many candidates as here. The paper's: 450 candidates of 768 "
        f"numbers ({_size(read_bytes(450, 768))}; it says 1.35 MB), all photos of 8,448 "
        f"({_size(read_bytes(SFXL, 8448))}; 94.8 GB) and of 8,192 "
        f"({_size(read_bytes(SFXL, 8192))}; 91.9 GB)."
    )


def _lights(found: Findings) -> Columns:
    """R@1 by day and by night where both were asked: two sets of queries, as Table 1 has."""
    every = [part.conditions.get("light", {}) for one in found.outcomes for part in one.parts]
    both = all(set(LIGHTS) <= set(light) for light in every)
    if not both:
        return {}
    asked = {at: sum(light[at].queries for light in every[: len(found.splits)]) for at in LIGHTS}
    return {f"R@1 of {many} by {at}": partial(_lit, at) for at, many in asked.items()}


def _lit(light: str, scores: Scores) -> float:
    return scores.conditions["light"][light].recall[1]


def read_bytes(photos: float, numbers: int) -> int:
    """Float32 descriptors of so many photos."""
    return round(photos * numbers * 4)


def _kind(one: Outcome) -> str:
    return one.system.kind or ("retrieval" if one.system.search.get("exact") else "mixed")


def _row(one: Outcome) -> list[str]:
    """What a pipeline costs, and what the paper's found."""
    cost, beside = one.joint.cost, one.system.paper
    whole = SFXL if _kind(one) == "retrieval" else cost.pool_size
    return [
        spread([part.classifier.recall[1] for part in one.parts]),
        f"{cost.median_ms:.1f}",
        f"{cost.dim:,}",
        f"{cost.index_bytes / 1e6:.1f}",
        f"{read_bytes(cost.pool_size, cost.dim) / 1e3:,.0f}",
        _size(read_bytes(whole, cost.dim)),
        *(beside.get(column, "") for column in THEIRS),
    ]


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.2f} MB"
