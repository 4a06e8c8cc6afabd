"""Findings → tables: a row a system, mean ± spread over the seeds, the paper's numbers beside.

What answers cost is milliseconds by stage, bytes of the index and of the candidates (Table 1).
Several tests of one training stand beside each other; the one test of most studies has no name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from evenplace.evaluation import Recalls, Scores, compare_pairs
from evenplace.evaluation.conditions import LABELS
from evenplace.evaluation.scores import recalls
from evenplace.places.tiers import TIERS, tiers
from evenplace.report import tables as report_tables
from evenplace.report.tables import markdown, span, spread
from evenplace.study.runs import Findings, Outcome

Columns = dict[str, Callable[[Scores], float]]  # numbers of a system's scores, by name
RANKS = (1, 5, 10)
TIME = "paper, ms"  # the paper's column of a query's time
THEIRS = ("paper, SF-XL v1", "paper, SF-XL v2", TIME)
LIGHTS = LABELS["light"]
SFXL = 2_800_000  # photos of its test database


def recall_columns(group: str = "overall", ranks: Sequence[int] = RANKS) -> Columns:
    """R@N of all queries, of a tier, or of the classifier alone."""
    said = {"overall": "R", "classifier": "LR"}.get(group, f"{group} R")
    return {f"{said}@{rank}": partial(_recall, group, rank) for rank in ranks}


def _recall(group: str, rank: int, scores: Scores) -> float:
    return scores.tier(group).recall[rank]


def query_columns(tiers: Sequence[str], ranks: Sequence[int] = RANKS) -> Columns:
    """R@N in tiers of the queries: 30/40/30 % of them by their place's photos."""
    return {f"{tier} of queries R@{rank}": partial(_query_recall, tier, rank)
            for tier in tiers for rank in ranks}  # fmt: skip


def _query_recall(tier: str, rank: int, scores: Scores) -> float:
    return scores.by_query[tier].recall[rank]


def system_table(
    tests: Mapping[str, Findings], columns: Columns, beside: Sequence[str] = ()
) -> str:
    """Every column of every test, then the paper's."""
    rows = []
    for system in (one.system for one in next(iter(tests.values())).outcomes):
        parts = [found.of(system.name).parts for found in tests.values()]
        ours = [spread([of(part) for part in seeds]) for seeds in parts for of in columns.values()]
        rows.append([system.name, *ours, *(system.paper.get(name, "") for name in beside)])
    names = [f"{test} {column}".strip() for test in tests for column in columns]
    return markdown(["system", *names, *beside], rows)


def recall_table(found: Findings) -> str:
    """R@N overall, R@1 by tier, the classifier's LR@N, the pool's ceiling, mAP, metres."""
    beside = paper_columns(found, tail=False)
    columns = {
        **recall_columns(ranks=(1,)),
        "R@1 findable": lambda scores: scores.answerable.recall[1],
        **recall_columns(ranks=(5, 10)),
        **_by_tier((1,)),
        **recall_columns("classifier", RANKS if _classifies(found) else (1,)),
        "pool": lambda scores: scores.pool.recall[1],
        "mAP@10": lambda scores: scores.mean_precision[10].mean,
        "median, m": lambda scores: scores.position.median,
    }
    return _with_counts(found, columns, beside, " “Findable” counts only queries with a match.")


def beside_table(found: Findings) -> str:
    """R@1, R@5 and R@10 in the layout of the paper's tables, its own numbers beside ours."""
    beside = paper_columns(found, tail=False)
    columns = recall_columns() | (recall_columns("classifier") if _classifies(found) else {})
    return _with_counts(found, columns, beside)


def tier_table(found: Findings) -> str:
    """R@1, R@5 and R@10 of every tier (the paper's Figure 4 and Table 4)."""
    return _with_counts(found, _by_tier(RANKS), paper_columns(found, tail=True))


def _by_tier(ranks: Sequence[int]) -> Columns:
    head, middle, tail = (recall_columns(tier, ranks) for tier in TIERS)
    return head | middle | tail


def tail_table(found: Findings) -> str:
    """R@1, R@5 and R@10 in the tail of the queries, as Table 4, and in that of the places."""
    columns = query_columns(("tail",)) | recall_columns("tail")
    told = " “Of queries” is the 30 % of them whose places were photographed least."
    return _with_counts(found, columns, paper_columns(found, tail=True), told)


def _with_counts(found: Findings, columns: Columns, beside: Sequence[str], told: str = "") -> str:
    theirs = [one.system.paper.get(name, "") for one in found.outcomes for name in beside]
    if any("/" in cell for cell in theirs):
        told += " The paper's are R@1 / R@5 / R@10."
    return f"{counts(found)}{told}\n\n{system_table({'': found}, columns, beside)}"


def _classifies(found: Findings) -> bool:
    """Whether a classifier alone is among them, which the paper judges by LR@N."""
    return any(one.system.kind == "classification" for one in found.outcomes)


def paper_columns(found: Findings, *, tail: bool) -> list[str]:
    """The paper's columns of these systems, of its tail or of all queries."""
    named = dict.fromkeys(column for one in found.outcomes for column in one.system.paper)
    return [column for column in named if column != TIME and ("tail" in column) is tail]


def gain_table(found: Findings, rank: int = 1) -> str:
    """What each system wins over its baseline on the same queries, in R@rank."""
    rows = []
    usual = [(one.system.name, found.study.baseline(one.system)) for one in found.outcomes]
    for name, other in (*usual, *found.study.pairs):
        if name == other:
            continue
        ours, theirs = (found.of(which).joint.predictions for which in (name, other))
        ours = replace(ours, tiers=theirs.tiers)
        cells = [str(compare_pairs(ours, theirs, tier, rank=rank)) for tier in (None, 0, 1, 2)]
        rows.append([f"{name} − {other}", *cells])
    if not rows:
        return "There is nothing to compare."
    text = (
        f"Points of R@{rank} on the same queries: mean, 95 % interval over spots (* excludes 0), "
        "queries won and lost, McNemar's p."
    ) + (" Tiers are of the places of the one compared with." if places_differ(found) else "")
    columns = [f"difference in R@{rank}", "overall", *TIERS]
    return f"{text}\n\n{markdown(columns, rows)}"


def area_table(found: Findings) -> str:
    """R@1 by the extent of the query's place: the smallest 30 % of the places, 40 %, the rest."""
    rows = []
    for one in found.outcomes:
        parts = [recall_by_area(part) for part in one.parts]
        extent = one.parts[0].places.areas
        rows.append([
            one.system.name,
            f"{len(extent)}",
            f"{extent.min():.0f} / {np.median(extent):.0f} / {extent.max():.0f}",
            *(spread([part[size].recall[1] for part in parts]) for size in range(3)),
        ])  # fmt: skip
    columns = ["system", "places", "m², min / median / max", "small", "medium", "large"]
    text = (
        "R@1 by the extent of the query's place; – where places of one extent would lie in two "
        "bins, as the equal squares of a grid do."
    )
    return f"{text}\n\n{markdown(columns, rows)}"


def recall_by_area(scores: Scores) -> list[Recalls]:
    """Of the queries in the smallest 30 % of the places, the middle 40 %, the largest 30 %.

    Places as large as each other cannot be ranked: where one extent would lie in two of the bins
    there are none, and no query is in any.
    """
    run = scores.predictions
    extent = np.round(scores.places.areas * 1000).astype(np.int64)
    bins = tiers(-extent)  # the smallest come first
    tied = any(np.isin(extent[bins == t], extent[bins != t]).any() for t in range(3))
    of = np.where((run.places < 0) | tied, -1, bins[run.places])
    return [recalls(run.first_right[of == t], run.clusters[of == t]) for t in range(3)]


def places_differ(found: Findings) -> bool:
    """Whether systems cut the map differently, so that their tiers are of different places."""
    first = found.outcomes[0].joint.predictions.tiers
    return any(not np.array_equal(first, one.joint.predictions.tiers) for one in found.outcomes)


def counts(found: Findings) -> str:
    """How many queries there are in each tier, or from how many to how many."""
    every, joint = [one.joint for one in found.outcomes], found.outcomes[0].joint
    per_tier = ", ".join(f"{tier} {span([j.tier(tier).queries for j in every])}" for tier in TIERS)
    whose = " Tiers are of each system's own places." if places_differ(found) else ""
    seeds, spreads = len(found.splits), ""
    if seeds > 1:
        spreads = f" of {seeds} seeds; ± is one standard deviation over them"
    return (
        f"{joint.overall.queries} queries{spreads} ({per_tier}, "
        f"{span([one.untiered for one in every])} at no known place).{whose} "
        f"{joint.cost.answerable} have a match. Right within {joint.truth}."
    )


def cost_table(found: Findings) -> str:
    """The paper's memory and time table: sizes, and the milliseconds of each stage."""
    columns, rows = report_tables.cost_table([one.joint for one in found.outcomes])
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
    if not all(set(LIGHTS) <= set(light) for light in every):
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
