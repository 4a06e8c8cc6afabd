"""What a system is worth: recall with its intervals, overall and by tier, and what it costs.

Q queries · k hits
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from evenplace.arrays import Bools, Ints
from evenplace.errors import RunError
from evenplace.evaluation.conditions import LABELS
from evenplace.evaluation.confidence_curves import Knowing, judge
from evenplace.evaluation.cost import Cost, mean_cost
from evenplace.evaluation.intervals import Interval, interval
from evenplace.evaluation.predictions import Predictions, join_predictions
from evenplace.evaluation.truth import RANKS, Truth, average_precisions
from evenplace.photos.files import write_json
from evenplace.photos.table import Skipped
from evenplace.places.table import Places
from evenplace.places.tiers import TIERS, query_tiers

VERSION = 3


@dataclass(frozen=True)
class Recalls:
    """Recall@N of one set of queries, in percent, with intervals and the number it rests on."""

    queries: int
    intervals: dict[int, Interval]

    @property
    def recall(self) -> dict[int, float]:
        return {rank: found.mean for rank, found in self.intervals.items()}


@dataclass(frozen=True)
class PositionError:
    """Metres between the estimated and the true position."""

    median: float
    p90: float


@dataclass(frozen=True)
class Scores:
    """One system on one set of queries; every figure says how many queries stand behind it.

    Tiers are by place (30/40/30 % of the places by photo count); `by_query` splits the queries
    instead.  Queries without any match in the database count as failures in `overall` and the
    tiers, and are left out of `answerable`.
    """

    name: str
    truth: Truth  # what counts as found
    overall: Recalls
    answerable: Recalls  # of the queries that have a match in the database
    head: Recalls
    middle: Recalls
    tail: Recalls
    by_query: dict[str, Recalls]
    classifier: Recalls  # LR@N: the centre of one of the classifier's N best places within it
    pool: Recalls  # a match anywhere in the pool: what no ranking can exceed
    conditions: dict[str, dict[str, Recalls]]  # night, season …: see `conditions.LABELS`
    mean_precision: dict[int, Interval]  # mAP@k, queries without a match left out
    position: PositionError
    knowing: dict[str, Knowing]  # by source of confidence; "own" is the system's
    untiered: int  # queries at no known place
    cost: Cost
    predictions: Predictions = field(repr=False, compare=False)  # what was counted
    places: Places = field(repr=False, compare=False)  # what the tiers are of
    skipped: tuple[Skipped, ...] = ()  # queries that could not be read
    moved: float = 0.0  # how far all queries were moved to where the database is, of length 1

    @property
    def recall(self) -> dict[int, float]:
        return self.overall.recall

    def reached_by(self) -> str:
        """What finds the places: the classifier, means of the database's own, or each for some."""
        means = self.places.extra.get("means")
        if means is None or not means.any():
            return "the classifier"
        if means.all():
            return "means of the database's own places"
        run, parts = self.predictions, []
        for kind, name in ((0, "the classifier"), (1, "means of the database's own places")):
            mine = (run.places >= 0) & (means[run.places] == kind)
            share = f"{100 * run.in_pool[mine].mean():.1f} %" if mine.any() else "none"
            parts.append(f"{name} ({int(mine.sum())} queries, pool {share})")
        return " and ".join(parts)

    def tier(self, name: str) -> Recalls:
        """The recalls of a tier by its name, or of all queries: "overall"."""
        found: Recalls = getattr(self, name)
        return found

    def as_dict(self) -> dict[str, Any]:
        """The figures alone; predictions and places have files of their own."""
        bare = asdict(replace(self, predictions=None, places=None))  # type: ignore[arg-type]
        tree = {f.name: bare[f.name] for f in fields(self) if f.name not in _FILES}
        plain: dict[str, Any] = _without_nan({"version": VERSION, **tree})
        return plain

    def write(self, folder: Path) -> None:
        """Keep the figures and what they were counted from, as three files of a folder."""
        write_json(folder / "scores.json", self.as_dict(), indent=1)
        self.predictions.write(folder / "predictions.parquet")
        self.places.write(folder / "scored_places.parquet")

    @classmethod
    def read(cls, folder: Path) -> "Scores":
        """What `write` kept."""
        path = folder / "scores.json"
        if not path.exists():
            raise RunError(f"{path} does not exist; evaluate first: evenplace evaluate {folder}")
        tree = json.loads(path.read_text())
        if tree.pop("version", None) != VERSION:
            raise RunError(f"{path} is of another version of EvenPlace; evaluate again")
        hints = get_type_hints(cls)
        return cls(
            **{key: _value(hints[key], value) for key, value in tree.items()},
            predictions=Predictions.read(folder / "predictions.parquet"),
            places=Places.read(folder / "scored_places.parquet"),
        )


_FILES = ("predictions", "places")


def _without_nan(tree: Any) -> Any:
    """The same tree with None for nan, which JSON does not have."""
    if isinstance(tree, dict):
        return {key: _without_nan(value) for key, value in tree.items()}
    return None if isinstance(tree, float) and np.isnan(tree) else tree


def _value(kind: Any, tree: Any) -> Any:
    """A value of a kind from what JSON has of it: null is nan where a number is wanted."""
    inside = get_args(kind)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: _value(hints[name], value) for name, value in tree.items()})  # type: ignore[operator]
    if get_origin(kind) is dict:
        return {inside[0](key): _value(inside[1], value) for key, value in tree.items()}
    if get_origin(kind) is tuple:
        return tuple(_value(inside[0], value) for value in tree)
    return float("nan") if tree is None and kind is float else tree


def summarise(
    name: str,
    predictions: Predictions,
    places: Places,
    cost: Cost,
    truth: Truth,
    skipped: tuple[Skipped, ...] = (),
) -> Scores:
    """Count what was right: overall, by tier, by condition, and how surely."""
    run = predictions

    def among(chosen: Bools, ranks: Ints = run.first_right) -> Recalls:
        return recalls(ranks[chosen], run.clusters[chosen])

    everyone, known = np.ones(len(run), bool), run.positives > 0
    by_query = query_tiers(run.photographed)
    return Scores(
        name,
        truth,
        overall=among(everyone),
        answerable=among(known),
        head=among(run.tiers == 0),
        middle=among(run.tiers == 1),
        tail=among(run.tiers == 2),
        by_query={tier: among(by_query == t) for t, tier in enumerate(TIERS)},
        classifier=among(everyone, run.first_centre),
        pool=among(everyone, np.where(run.in_pool, 0, -1)),
        conditions={
            what: {label: among(labels == label) for label in LABELS[what] if label in labels}
            for what, labels in run.conditions.items()
        },
        mean_precision=_mean_precision(run[known]),
        position=_position(run),
        knowing={
            source: judge(run.right, sure)
            for source, sure in {"own": run.confidence, **run.sources}.items()
            if len(run)
        },
        untiered=int((run.tiers < 0).sum()),
        cost=cost,
        predictions=run,
        places=places,
        skipped=skipped,
    )


def join_scores(parts: Sequence[Scores], *, one_map: bool = False) -> Scores:
    """One system on several towns or seeds: all their queries together, the cost averaged.

    one_map: the parts ask about the same streets (see `join_predictions`).  The places are the
    first one's; maps and curves of a joint score are not meaningful.
    """
    joined = join_predictions([part.predictions for part in parts], one_map=one_map)
    cost = mean_cost([part.cost for part in parts])
    skipped = tuple(one for part in parts for one in part.skipped)
    return summarise(parts[0].name, joined, parts[0].places, cost, parts[0].truth, skipped)


def recalls(first_right: Ints, clusters: Ints) -> Recalls:
    """Recall@1, 5, 10, 20 from the rank of each query's first right hit (0 = best, -1 = none)."""
    found = {
        rank: interval(((first_right >= 0) & (first_right < rank)).astype(float), clusters)
        for rank in RANKS
    }
    return Recalls(len(first_right), found)


def _mean_precision(run: Predictions) -> dict[int, Interval]:
    return {
        k: interval(average_precisions(run.hit_right, run.positives, k), run.clusters)
        for k in RANKS
    }


def _position(run: Predictions) -> PositionError:
    """Over the queries that got an answer; nan if none did."""
    metres = run.errors[np.isfinite(run.errors)]
    if not len(metres):
        return PositionError(float("nan"), float("nan"))
    median, p90 = np.percentile(metres, [50, 90])
    return PositionError(float(median), float(p90))
