"""Findings → tables.md: mean ± spread over the seeds, paired intervals, the paper's numbers beside.

S seeds
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from evenplace.evaluation import Scores, compare_pairs, compare_sources
from evenplace.evaluation.abstention import deliver, together
from evenplace.evaluation.sources import SOURCES
from evenplace.places.tiers import TIERS, tiers
from evenplace.report import tables
from evenplace.report.tables import markdown, spread
from evenplace.retrieval.calibration import Calibration
from evenplace.run.run import Run
from evenplace.study import paper
from evenplace.study.elsewhere import elsewhere_table
from evenplace.study.runs import Findings, Outcome, engine_settings

Table = Callable[[Findings], str]


def recall_table(found: Findings) -> str:
    """R@N overall, R@1 by tier, the classifier's LR@N, the pool's ceiling, mAP, metres."""
    beside = [one for one in _paper_columns(found) if "tail" not in one]
    ranks = RANKS if paper.LR1 in beside else (1,)
    columns = ["system", "R@1", "R@1 findable", "R@5", "R@10", *(f"{tier} R@1" for tier in TIERS),
               *(f"LR@{rank}" for rank in ranks), "pool", "mAP@10", "median, m",
               *beside]  # fmt: skip
    rows = []
    for one in found.outcomes:
        parts = one.parts
        rows.append([
            one.system.name,
            spread([part.recall[1] for part in parts]),
            spread([part.answerable.recall[1] for part in parts]),
            *(spread([part.recall[rank] for part in parts]) for rank in (5, 10)),
            *(spread([part.tier(tier).recall[1] for part in parts]) for tier in TIERS),
            *(spread([part.classifier.recall[rank] for part in parts]) for rank in ranks),
            spread([part.pool.recall[1] for part in parts]),
            spread([part.mean_precision[10].mean for part in parts]),
            spread([part.position.median for part in parts]),
            *(one.system.paper.get(column, "") for column in beside),
        ])  # fmt: skip
    told = " “Findable” counts only queries with a match."
    told += " The paper's are R@1 / R@5 / R@10." if beside else ""
    return f"{counts(found)}{told}\n\n{markdown(columns, rows)}"


def beside_table(found: Findings) -> str:
    """R@1, R@5 and R@10 in the layout of the paper's tables, its own numbers beside ours."""
    beside = [one for one in _paper_columns(found) if "tail" not in one]
    lone = paper.LR1 in beside
    columns = [f"R@{rank}" for rank in RANKS] + [f"LR@{rank}" for rank in RANKS if lone]
    rows = []
    for one in found.outcomes:
        ours = [[part.recall[rank] for part in one.parts] for rank in RANKS]
        ours += [[part.classifier.recall[rank] for part in one.parts] for rank in RANKS if lone]
        theirs = [one.system.paper.get(column, "") for column in beside]
        rows.append([one.system.name, *map(spread, ours), *theirs])
    several = " The paper's are R@1 / R@5 / R@10." if beside else ""
    return f"{counts(found)}{several}\n\n{markdown(['system', *columns, *beside], rows)}"


def tier_table(found: Findings) -> str:
    """R@1, R@5 and R@10 of every tier (the paper's Figure 4 and Table 4)."""
    beside = [one for one in _paper_columns(found) if "tail" in one]
    columns = ["system", *(f"{tier} R@{rank}" for tier in TIERS for rank in RANKS), *beside]
    rows = [
        [one.system.name]
        + [spread([part.tier(tier).recall[rank] for part in one.parts])
           for tier in TIERS for rank in RANKS]
        + [one.system.paper.get(column, "") for column in beside]
        for one in found.outcomes
    ]  # fmt: skip
    return f"{counts(found)}\n\n{markdown(columns, rows)}"


def gain_table(found: Findings, rank: int = 1) -> str:
    """What each system wins over its baseline on the same queries, in R@rank."""
    rows = []
    first = found.outcomes[0]
    usual = [(one.system.name, found.study.baseline(one.system)) for one in found.outcomes]
    for name, other in (*usual, *found.study.pairs):
        if name == other:
            continue
        ours, theirs = (found.of(which).joint.predictions for which in (name, other))
        ours = replace(ours, tiers=first.joint.predictions.tiers)
        cells = [str(compare_pairs(ours, theirs, tier, rank=rank)) for tier in (None, 0, 1, 2)]
        rows.append([f"{name} − {other}", *cells])
    if not rows:
        return "There is nothing to compare."
    text = (
        f"Points of R@{rank} on the same queries: mean, 95 % interval over spots (* excludes 0), "
        "queries won and lost, McNemar's p."
    ) + (f" Tiers are those of {first.system.name}'s places." if places_differ(found) else "")
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
            *(spread([part[tier] for part in parts]) for tier in range(3)),
        ])  # fmt: skip
    columns = ["system", "places", "m², min / median / max", "small", "medium", "large"]
    text = (
        "R@1 by the extent of the query's place; – where places of one extent would lie in two "
        "bins, as the equal squares of a grid do."
    )
    return f"{text}\n\n{markdown(columns, rows)}"


def recall_by_area(scores: Scores) -> list[float]:
    """R@1 of the queries in the smallest 30 % of the places, the middle 40 %, the largest 30 %.

    Places as large as each other cannot be ranked: where one extent would lie in two of the bins
    there are none, and all three are nan.
    """
    run = scores.predictions
    extent = np.round(scores.places.areas * 1000).astype(np.int64)
    bins = tiers(-extent)  # the smallest come first
    if any(np.isin(extent[bins == t], extent[bins != t]).any() for t in range(3)):
        return [float("nan")] * 3
    at, group = run.places >= 0, bins[run.places]
    chosen = [at & (group == tier) for tier in range(3)]
    return [100 * float(run.right[one].mean()) if one.any() else float("nan") for one in chosen]


def confidence_table(found: Findings) -> str:
    """Every source on each system's own answers."""
    blocks = []
    columns = ["source", "AUC-PR", "− L2, points", "AUROC", "AURC", "answered at 95 %",
               "answered at 99 %", "ECE", *(f"paper, {name}" for name in _PAPER_SETS)]  # fmt: skip
    for one in found.outcomes[-3:]:  # a study of many is read for its last ones
        run = one.joint.predictions
        known = [name for name in (*SOURCES, "inliers") if name in run.sources]
        rows = [_source_row(one, name) for name in ("own", *known)]
        text = f"{len(run)} answers, {int(run.right.sum())} of them right; `own` is the system's."
        blocks.append(f"### {one.system.name}\n\n{text}\n\n{markdown(columns, rows)}")
    return "\n\n".join(blocks)


def cost_table(found: Findings) -> str:
    """The paper's memory and time table: sizes, and the milliseconds of each stage."""
    columns, rows = tables.cost_table([one.joint for one in found.outcomes])
    beside = [one.system.paper.get(paper.TIME, "") for one in found.outcomes]
    told = "Median / 95th percentile milliseconds of each stage, one query at a time."
    wider = [[*row, theirs] for row, theirs in zip(rows, beside, strict=True)]
    return f"{told}\n\n{markdown([*columns, paper.TIME], wider)}"


def pipeline_table(found: Findings) -> str:
    """R@1, milliseconds, bytes of the index and of what one query must read."""
    columns = ["kind", "system", "R@1", "LR@1", "a query, ms", "numbers", "index, MB",
               "read, kB", "read at SF-XL's size", paper.V1, paper.V2, paper.TIME]  # fmt: skip
    rows = [_row(one) for one in found.outcomes]
    return (
        f"{counts(found)}\n\n{markdown(columns, rows)}\n\n"
        "“Read” is what ranking must have at hand for one query: all "
        "descriptors under retrieval, those of the candidates else, 4 bytes a number; at SF-XL's "
        f"size {SFXL:,} photos, or the same candidates. The paper's: 450 candidates of 768 numbers "
        f"({_size(read_bytes(450, 768))}; it says 1.35 MB), all photos of 8,448 "
        f"({_size(read_bytes(SFXL, 8448))}; 94.8 GB) and of 8,192 "
        f"({_size(read_bytes(SFXL, 8192))}; 91.9 GB)."
    )


def read_bytes(photos: float, numbers: int) -> int:
    """Float32 descriptors of so many photos."""
    return round(photos * numbers * 4)


def _row(one: Outcome) -> list[str]:
    usual = "retrieval" if one.system.search.get("exact") else "mixed"
    cost, kind = one.joint.cost, _KIND.get(one.system.name, usual)
    whole = SFXL if kind == "retrieval" else cost.pool_size
    beside = one.system.paper
    return [
        kind,
        one.system.name,
        spread([part.recall[1] for part in one.parts]),
        spread([part.classifier.recall[1] for part in one.parts]),
        f"{cost.median_ms:.1f}",
        f"{cost.dim:,}",
        f"{cost.index_bytes / 1e6:.1f}",
        f"{read_bytes(cost.pool_size, cost.dim) / 1e3:,.0f}",
        _size(read_bytes(whole, cost.dim)),
        *(beside.get(column, "") for column in (paper.V1, paper.V2, paper.TIME)),
    ]


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.2f} MB"


def abstention_table(found: Findings) -> str:
    """What comes back when a precision is asked for: how right, and how much is still answered.

    Thresholds are those the run learned from its training photos; the test queries only judge.
    A run that is uncalibrated promises nothing; what it delivers to those who insist is shown.
    """
    rows, notes = [], []
    for one in found.outcomes:
        curves = [
            Run(run).calibration(
                part.truth.radius, part.truth.heading, **engine_settings(one.system.search)
            )
            for part, run in zip(one.parts, one.runs, strict=True)
        ]
        learned = [curve for curve in curves if curve is not None]
        if len(learned) == len(curves):
            rows += [_promise_row(one, learned, wanted) for wanted in WANTED]
            notes += [_near_misses(one), *sorted({_refusal(one, curve) for curve in learned})]
    if not rows:
        return "No system here has learned what its confidence is worth (`search.folds`)."
    columns = ["system", "asked for", "promised", "delivered", "tail", "kept", "kept in the tail"]
    return "\n\n".join([markdown(columns, rows), *filter(None, notes)])


def _promise_row(one: Outcome, learned: list[Calibration], wanted: float) -> list[str]:
    """What one precision delivers over all splits, and in how many of them it is kept."""
    overall, tail = [], []
    for part, curve in zip((part.predictions for part in one.parts), learned, strict=True):
        answered = part.confidence >= curve.threshold(wanted)
        overall.append(deliver(part.right, answered))
        tail.append(deliver(part.right, answered, part.tiers == TIERS.index("tail")))
    promised = sum(not curve.doubt for curve in learned)
    return [
        one.system.name,
        f"{wanted:.0%}",
        f"in {promised} of {len(learned)}",
        str(together(overall)),
        str(together(tail)),
        *(f"{sum(d.keeps(wanted) for d in part)} of {len(part)}" for part in (overall, tail)),
    ]


def _refusal(one: Outcome, learned: Calibration) -> str:
    return f"{one.system.name} is uncalibrated where {learned.doubt}." if learned.doubt else ""


def _near_misses(one: Outcome) -> str:
    """How many of the sure answers that are wrong lie just outside what counts as right."""
    away, radius = [], one.joint.truth.radius
    for part in one.parts:
        run = part.predictions
        surest = run.confidence >= np.quantile(run.confidence, 1 - SUREST)
        away.append(run.hit_metres[:, 0][surest & ~run.right])
    metres = np.concatenate(away)
    near = float((metres <= 2 * radius).mean()) if len(metres) else 0.0
    return (
        f"{one.system.name}: of each seed's {SUREST:.0%} surest answers {len(metres)} are wrong; "
        f"{near:.0%} of these lie within {2 * radius:g} m."
    )


TABLES: dict[str, Table] = {
    "recall": recall_table,
    "beside": beside_table,
    "tiers": tier_table,
    "gains": gain_table,
    "gains-5": partial(gain_table, rank=5),
    "areas": area_table,
    "confidence": confidence_table,
    "cost": cost_table,
    "pipelines": pipeline_table,
    "abstention": abstention_table,
    "elsewhere": elsewhere_table,
}
RANKS = (1, 5, 10)
WANTED = (0.9, 0.95)
SUREST = 0.75
SFXL = 2_800_000  # photos of its test database
_KIND = {name: kind for kind, named in paper.KINDS.items() for name in named}
_PAPER_SETS = ("Nordland", "Pitts30k", "MSLS")


def _paper_columns(found: Findings) -> list[str]:
    named = [column for one in found.outcomes for column in one.system.paper]
    return [column for column in dict.fromkeys(named) if column != paper.TIME]


def places_differ(found: Findings) -> bool:
    """Whether systems cut the map differently, so that their tiers are of different places."""
    first = found.outcomes[0].joint.predictions.tiers
    return any(not np.array_equal(first, one.joint.predictions.tiers) for one in found.outcomes)


def counts(found: Findings) -> str:
    one = found.outcomes[0]
    joint, whose = one.joint, ""
    per_tier = ", ".join(f"{tier} {joint.tier(tier).queries}" for tier in TIERS)
    if places_differ(found):
        whose = f" Systems that cut the map otherwise have other tiers; these are of {joint.name}."
    return (
        f"{joint.overall.queries} queries over {len(one.parts)} seed(s) ({per_tier}, "
        f"{joint.untiered} at no known place).{whose} {joint.cost.answerable} have a match. "
        f"Right within {joint.truth}. Mean ± standard deviation "
        "over seeds."
    )


def _source_row(one: Outcome, name: str) -> list[str]:
    parts = [part.knowing[name] for part in one.parts]
    run = one.joint.predictions
    sure = run.confidence if name == "own" else run.sources[name]
    runs = np.repeat(np.arange(len(one.parts)), [len(part.predictions) for part in one.parts])
    against = compare_sources(run.right, sure, run.sources["l2"], run.clusters, runs)
    beside = paper.CONFIDENCE.get(name, {})
    return [
        name,
        spread([part.auc_pr for part in parts], 3),
        "" if name == "l2" else f"{against.mean:+.1f} [{against.low:+.1f}, {against.high:+.1f}]",
        spread([part.auroc for part in parts], 3),
        spread([part.aurc for part in parts], 3),
        *(spread([100 * part.coverage[at] for part in parts]) + " %" for at in ("95", "99")),
        spread([part.ece for part in parts], 3),
        *(beside.get(data, "") for data in _PAPER_SETS),
    ]
