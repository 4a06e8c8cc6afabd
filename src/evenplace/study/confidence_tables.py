"""Which number says best whether an answer is right, and what a promise of precision delivers.

Also of photos that are not on the map: those of the data sets beside the one that is studied, and
of a town drawn for it.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from evenplace.arrays import Bools, Floats
from evenplace.evaluation import Truth, compare_sources
from evenplace.evaluation.abstention import deliver, together
from evenplace.evaluation.confidence_curves import SOURCES
from evenplace.photos import Photos, read_photos
from evenplace.places.tiers import TIERS
from evenplace.report.tables import markdown, spread
from evenplace.retrieval.calibration import Calibration
from evenplace.run.run import Run
from evenplace.study.data import drawn_town, find_folder, sets_at_hand
from evenplace.study.runs import Findings, Outcome, engine_settings

WANTED = (0.9, 0.95)
SUREST = 0.75
MANY = 100  # photos of each other city
_SEED = 1000  # a town that no study draws
THEIRS = {  # the paper's supplement E
    "Nordland": {"l2": ".80", "sue": ".86", "cfd": ".86"},
    "Pitts30k": {"l2": ".97", "sue": ".97", "cfd": ".99"},
    "MSLS": {"l2": ".95", "sue": ".95", "cfd": ".97"},
}


def uncertainty_table(tests: Mapping[str, Findings]) -> str:
    """AUC-PR in the supplement's layout: a row a set and system, L2, SUE, CFD, then the others."""
    sources = ["l2", "sue", "cfd", "own"]
    sources += [name for name in SOURCES if name not in sources]
    rows = [
        [f"{test}: {one.system.name}",
         *(spread([part.knowing[name].auc_pr for part in one.parts], 3) for name in sources)]
        for test, found in tests.items()
        for one in found.outcomes
    ]  # fmt: skip
    rows += [
        [f"{data}: the paper", *(theirs.get(name, "") for name in sources)]
        for data, theirs in THEIRS.items()
    ]
    told = "AUC-PR, each source on that system's own answers; `own` is what it answers with."
    return f"{told}\n\n{markdown(['set and system', *sources], rows)}"


def confidence_table(found: Findings) -> str:
    """Every source on each system's own answers."""
    blocks = []
    columns = ["source", "AUC-PR", "− L2, points", "AUROC", "AURC", "answered at 95 %",
               "answered at 99 %", "ECE"]  # fmt: skip
    for one in found.outcomes[-3:]:  # a study of many is read for its last ones
        run = one.joint.predictions
        known = [name for name in (*SOURCES, "inliers") if name in run.sources]
        rows = [_source_row(one, name) for name in ("own", *known)]
        text = f"{len(run)} answers, {int(run.right.sum())} of them right; `own` is the system's."
        blocks.append(f"### {one.system.name}\n\n{text}\n\n{markdown(columns, rows)}")
    return "\n\n".join(blocks)


def _source_row(one: Outcome, name: str) -> list[str]:
    parts = [part.knowing[name] for part in one.parts]
    run = one.joint.predictions
    sure = run.confidence if name == "own" else run.sources[name]
    runs = np.repeat(np.arange(len(one.parts)), [len(part.predictions) for part in one.parts])
    against = compare_sources(run.right, sure, run.sources["l2"], run.clusters, runs)
    return [
        name,
        spread([part.auc_pr for part in parts], 3),
        "" if name == "l2" else f"{against.mean:+.1f} [{against.low:+.1f}, {against.high:+.1f}]",
        spread([part.auroc for part in parts], 3),
        spread([part.aurc for part in parts], 3),
        *(spread([100 * part.coverage[at] for part in parts]) + " %" for at in ("95", "99")),
        spread([part.ece for part in parts], 3),
    ]


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


def elsewhere_table(found: Findings) -> str:
    """A row for each system and other city: how sure the middle answer is, and how many given.

    A run that is uncalibrated answers none of them at a precision; shown is what insisting gives.
    """
    truth, folder = found.splits[0].truth, found.outcomes[0].runs[0].parents[1] / "data"
    studied = Path(found.splits[0].name).name
    names = ["a drawn town", *(name for name in sets_at_hand() if name != studied)]
    rows = []
    for one in found.outcomes:
        search = tuple(sorted(one.system.search.items()))
        asked = [_asked(one.runs, search, truth, name, folder) for name in names]
        every = (np.concatenate([part[at] for part in asked], axis=-1) for at in (0, 1))
        for name, (sure, given) in zip([*names, "all"], [*asked, tuple(every)], strict=True):
            answered = [f"{100 * np.mean(part):.1f} %" for part in given]
            rows.append(
                [one.system.name, name, str(len(sure)), f"{np.median(sure):.3f}", *answered]
            )
    columns = ["system", "photos of", "asked", "median confidence",
               *(f"answered at {wanted:.0%}" for wanted in WANTED)]  # fmt: skip
    return markdown(columns, rows)


def _photos(name: str, folder: Path) -> Photos:
    """Some photos of another city."""
    if name == "a drawn town":
        return read_photos(drawn_town(folder, MANY, 1, _SEED) / "database")
    photos = read_photos(find_folder(name))
    return photos[np.sort(np.random.default_rng(0).permutation(len(photos))[:MANY])]


@cache  # a table is written and printed
def _asked(
    runs: tuple[Path, ...],
    search: tuple[tuple[str, Any], ...],
    truth: Truth,
    name: str,
    folder: Path,
) -> tuple[Floats, Bools]:
    """How sure each run is of each photo, and which would be answered.  (Q,), (wanted, Q)."""
    photos, sure, given = _photos(name, folder), [], []
    for run in runs:
        settings = engine_settings(dict(search))
        engine = Run(run).search(radius=truth.radius, heading=truth.heading, **settings)
        assert engine.describer is not None
        described = engine.describer.describe(photos.paths)
        paths = [photos.paths[row] for row in described.rows]
        together = engine.together(described.descriptors)  # as a folder of them is asked
        found = together.search(described.descriptors, 1, pictures=paths).confidence
        sure.append(found)
        learned = engine.calibration
        bars = [np.inf if learned is None else learned.threshold(one) for one in WANTED]
        given.append(found >= np.array(bars)[:, None])
    return np.concatenate(sure), np.concatenate(given, axis=1)
