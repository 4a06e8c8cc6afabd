"""How to weigh evidence and how far to trust an answer, learned from the training photos alone.

The photos are dealt by position into folds.  Each fold asks a model that was trained without it,
in a database without it, so its photos are what real queries are: taken at spots nobody has seen.
Where most spots were photographed on several days, a photo does not see those of its own day
either: tomorrow's query will have another light and other cars.  The answers fit the fused score
(`search.fusion`) and are kept for calibration (`search.calibration`).  With the trunk's cache a
fold costs seconds.

    N photos · K folds
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from evenplace.describe.describer import Progress
from evenplace.errors import RunError
from evenplace.evaluation import Truth
from evenplace.photos.files import whole_file
from evenplace.photos.nearby import turn
from evenplace.photos.splits import spots_of
from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.retrieval import Index, Search, index_descriptors
from evenplace.retrieval.calibration import Rehearsal
from evenplace.retrieval.candidates import Pool, Ranking
from evenplace.retrieval.fusion import Evidence, fit_fused
from evenplace.retrieval.rerank import L2, Fused, Searched
from evenplace.training.cache import describe_cached
from evenplace.training.loop import train
from evenplace.training.recipe import Recipe
from evenplace.training.specs import SearchSpec
from evenplace.training.start import starting_network
from evenplace.training.validation import without

Ints = NDArray[np.int64]
_RIGHT = Truth()
_UNKNOWN = -(2**40)  # no day of ours
_NOWHERE = 1e6  # metres off, of no answer


@dataclass(frozen=True)
class Tuned:
    """What the folds taught: the fused score's weights if that is the rule, and the answers."""

    rehearsal: Rehearsal
    fused: Fused | None

    def write(self, run: Path) -> None:
        self.rehearsal.write(run / "calibration.json")
        if self.fused is not None:
            weights = {name: getattr(self.fused, name) for name in _WEIGHTS}
            with whole_file(run / "fused.json", RunError) as draft:
                draft.write_text(json.dumps(weights, indent=1))


_WEIGHTS = ("scale", "posterior", "balance", "impostor")


def read_fused(path: Path) -> Fused:
    """The fused score a run learned."""
    try:
        return Fused(**{name: float(json.loads(path.read_text())[name]) for name in _WEIGHTS})
    except (ValueError, KeyError, TypeError) as cause:
        raise RunError(f"{path} is no fused score ({cause}); train the run again") from cause


@dataclass(frozen=True)
class Fold:
    """Photos that ask, and an index of the others by a model that has not seen them."""

    index: Index
    queries: Photos
    descriptors: NDArray[np.float32]
    hidden: list[Ints] | None = None  # rows of the index that each must not see

    def pools(self, shortlist: int = 20) -> list[Pool]:
        """The candidates of each photo that asks."""
        memory = _Remember()
        engine = Search(self.index, shortlist=shortlist, rerank=memory)
        engine.search(self.descriptors, k=1, without=self.hidden)
        return memory.pools


def hold_out(
    photos: Photos,
    places: Places,
    recipe: Recipe,
    folder: Path,
    *,
    cache_folder: Path,
    announce: Callable[[str], Progress] | None = None,
    device: str = "auto",
) -> list[Fold]:
    """Train and index without each fold in turn; folds that leave nothing to learn are left out.

    folder: for the folds' runs; what was stopped goes on there.
    """
    folds = []
    for number, rows in enumerate(deal(photos, recipe.search.folds, recipe.training.seed)):
        fewer = without(places, rows)
        if len(fewer) > 1 and len(rows):
            show = announce(f"fold {number + 1} of {recipe.search.folds}") if announce else None
            home = folder / f"fold-{number}"
            folds.append(_fold(photos, fewer, rows, recipe, home, cache_folder, show, device))
    return folds


def deal(photos: Photos, folds: int, seed: int) -> Iterator[Ints]:
    """Rows of each fold; photos of one spot stay together."""
    spot = spots_of(photos)
    fold = np.random.default_rng(seed).permutation(int(spot.max(initial=-1)) + 1) % folds
    for number in range(folds):
        yield np.flatnonzero(fold[spot] == number)


def _fold(
    photos: Photos,
    places: Places,
    rows: Ints,
    recipe: Recipe,
    folder: Path,
    cache_folder: Path,
    progress: Progress | None,
    device: str,
) -> Fold:
    """Train on the other folds and index them."""
    plain = replace(recipe, training=replace(recipe.training, validation=0.0))
    network = starting_network(recipe)
    train(
        network, photos, places, plain, folder,
        cache_folder=cache_folder,
        announce=(lambda _: progress) if progress else None,
        device=device,
    )  # fmt: skip
    described = describe_cached(network, photos.paths, cache_folder)
    held = np.isin(described.rows, rows)
    index = index_descriptors(
        described.descriptors[~held],
        photos[described.rows[~held]],
        places,
        folder / "index",
        prototypes=network.classifiers.joint().detach().cpu().numpy(),
        scale=network.scale,
    )
    return Fold(index, photos[described.rows[held]], described.descriptors[held])


def on_other_days(folds: list[Fold]) -> list[Fold]:
    """Hide from each photo those of its own day, if most have a match of another day.

    Photos that would lose their last match ask nothing.
    """
    chosen = [_matched(fold) for fold in folds]
    if sum(map(np.sum, chosen)) < 0.5 * sum(map(len, chosen)):
        return folds
    return [_hidden(fold, np.flatnonzero(kept)) for fold, kept in zip(folds, chosen, strict=True)]


def _matched(fold: Fold) -> NDArray[np.bool_]:
    """Which photos that ask have a match of another day, or none of any day."""
    asked_on, taken_on = _days(fold)
    near = _RIGHT.positives(fold.queries, fold.index.photos)
    asked = np.repeat(np.arange(len(fold.queries)), near.counts)
    another = asked[taken_on[near.rows] != asked_on[asked]]
    matches = np.bincount(another, minlength=len(fold.queries))
    return np.asarray((matches > 0) | (near.counts == 0))


def _hidden(fold: Fold, kept: Ints) -> Fold:
    asked_on, taken_on = _days(fold)
    rows = {day: np.flatnonzero(taken_on == day) for day in np.unique(asked_on[kept])}
    hidden = [rows[day] for day in asked_on[kept]]
    return Fold(fold.index, fold.queries[kept], fold.descriptors[kept], hidden)


def _days(fold: Fold) -> tuple[Ints, Ints]:
    """Days on which the photos that ask, and those asked about, were taken; unknown are apart."""
    asked, taken = (
        photos.time.astype("datetime64[D]") for photos in (fold.queries, fold.index.photos)
    )
    days = [np.where(np.isnat(day), _UNKNOWN, day.astype(np.int64)) for day in (asked, taken)]
    return days[0] - (days[0] == _UNKNOWN), days[1]


def learn_search(folds: list[Fold], spec: SearchSpec) -> Tuned | None:
    """Learn from what the folds ask; None without any: a town of two places teaches nothing."""
    if not folds:
        return None
    folds, fused = on_other_days(folds), None
    if spec.rerank == "fused":
        fused = fit_fused([one for fold in folds for one in evidence(fold, spec)])
    parts = [_rehearse(fold, spec, fused or spec.rerank) for fold in folds]
    confidence, facing, metres, degrees = np.concatenate(parts, axis=1).tolist()
    answers = (tuple(confidence), tuple(facing), tuple(metres), tuple(degrees))
    return Tuned(Rehearsal(*answers, spec.rerank, spec.confidence), fused)


def _rehearse(fold: Fold, spec: SearchSpec, rule: str | Fused) -> NDArray[np.float64]:
    """Confidence, confidence where headings matter, metres and degrees off.  (4, V)."""
    rows, sure = np.empty(0, np.int64), []
    for facing in (False, True):
        engine = Search(
            fold.index,
            shortlist=spec.shortlist,
            rerank=rule,
            confidence=spec.confidence,
            facing=facing,
        )
        found = engine.search(fold.descriptors, k=1, without=fold.hidden)
        rows = found.rows[:, 0]
        sure.append(found.confidence)
    answer = fold.index.photos[np.maximum(rows, 0)]
    metres = np.linalg.norm(answer.positions - fold.queries.positions, axis=1)
    metres[(rows < 0) | (answer.zone != fold.queries.zone)] = _NOWHERE
    degrees = np.nan_to_num(turn(answer.heading, fold.queries.heading))
    return np.stack([*sure, metres, degrees]).astype(np.float64)


def evidence(fold: Fold, spec: SearchSpec) -> list[Evidence]:
    """What the fused score would weigh for each photo that asks."""
    impostors, sizes, photos = fold.index.impostors, fold.index.sizes, fold.index.photos
    return [
        Evidence(
            pool.cosines,
            np.asarray(impostors[pool.rows], np.float32),
            pool.log_posterior,
            np.log(np.maximum(sizes[pool.places], 1)).astype(np.float32),
            _RIGHT.right(fold.queries, photos, np.full(len(pool), query), pool.rows),
        )
        for query, pool in enumerate(fold.pools(spec.shortlist))
    ]


@dataclass
class _Remember:
    """A rule that keeps the pools it is asked to rank."""

    pools: list[Pool] = field(default_factory=list)

    def fit(self, database: Searched) -> Self:
        return self

    def rank(self, pool: Pool) -> Ranking:
        self.pools.append(pool)
        return L2().rank(pool)
