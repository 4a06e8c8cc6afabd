"""How to weigh evidence and how far to trust an answer, learned from the training photos alone.

The photos are dealt by position into folds.  Each fold asks a model that was trained without it,
in a database without it, so its photos are what real queries are: taken at spots nobody has seen.
Their answers fit the fused score (`search.fusion`) and the curve from confidence to probability
(`search.calibration`).  With the trunk's cache a fold costs seconds.

    N photos · K folds
"""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import RunError
from evenplace.index import Index, index_descriptors
from evenplace.index.build import describe_database
from evenplace.models.describe import Progress
from evenplace.models.network import build_network
from evenplace.photos.files import whole_file
from evenplace.photos.splits import spots_of
from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.search import Search
from evenplace.search.calibration import Calibration, fit_calibration
from evenplace.search.fusion import Evidence, fit_fused
from evenplace.search.pools import Pool, Ranking
from evenplace.search.rerank import L2, Fused, Searched
from evenplace.training.loop import train
from evenplace.training.recipe import Recipe
from evenplace.training.specs import SearchSpec
from evenplace.training.validation import without

Ints = NDArray[np.int64]
RADIUS = 25.0


@dataclass(frozen=True)
class Tuned:
    """What the folds taught: the fused score's weights if that is the rule, and the curve."""

    calibration: Calibration
    fused: Fused | None

    def write(self, run: Path) -> None:
        self.calibration.write(run / "calibration.json")
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
class _Fold:
    """Photos that ask, and an index of the others by a model that has not seen them."""

    index: Index
    queries: Photos
    descriptors: NDArray[np.float32]


def tune_search(
    photos: Photos,
    places: Places,
    recipe: Recipe,
    folder: Path,
    *,
    cache_folder: Path,
    announce: Callable[[str], Progress] | None = None,
    device: str = "auto",
) -> Tuned | None:
    """Train without each fold in turn and learn from what it asks.

    None where nothing can be held out: a town of two places teaches nothing.  folder: for the
    folds' runs; a tuning that was stopped goes on there, and it is removed at the end.
    """
    spec, folds = recipe.search, []
    for number, rows in enumerate(deal(photos, spec.folds, recipe.training.seed)):
        fewer = without(places, rows)
        if len(fewer) > 1 and len(rows):
            show = announce(f"fold {number + 1} of {spec.folds}") if announce else None
            home = folder / f"fold-{number}"
            folds.append(_fold(photos, fewer, rows, recipe, home, cache_folder, show, device))
    tuned = _learn(folds, recipe) if folds else None
    shutil.rmtree(folder, ignore_errors=True)
    return tuned


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
) -> _Fold:
    """Train on the other folds and index them."""
    plain = replace(recipe, training=replace(recipe.training, validation=0.0))
    network = build_network(recipe.network)
    train(
        network, photos, places, plain, folder,
        cache_folder=cache_folder,
        announce=(lambda _: progress) if progress else None,
        device=device,
    )  # fmt: skip
    described = describe_database(network, photos.paths, cache_folder)
    held = np.isin(described.rows, rows)
    index = index_descriptors(
        described.descriptors[~held],
        photos[described.rows[~held]],
        places,
        folder / "index",
        prototypes=network.classifiers.joint().detach().numpy(),
        scale=network.scale,
    )
    return _Fold(index, photos[described.rows[held]], described.descriptors[held])


def _learn(folds: list[_Fold], recipe: Recipe) -> Tuned:
    spec = recipe.search
    fused = None
    if spec.rerank == "fused":
        fused = fit_fused([one for fold in folds for one in _evidence(fold, spec)])
    raw, right = [], []
    for fold in folds:
        engine = Search(
            fold.index,
            shortlist=spec.shortlist,
            rerank=fused or spec.rerank,
            confidence=spec.confidence,
        )
        found = engine.search(fold.descriptors, k=1)
        raw.append(found.confidence)
        right.append(_right(fold, np.arange(len(found)), found.rows[:, 0], spec.heading))
    curve = fit_calibration(
        np.concatenate(raw),
        np.concatenate(right),
        rerank=spec.rerank,
        confidence=spec.confidence,
    )
    return Tuned(curve, fused)


def _evidence(fold: _Fold, spec: SearchSpec) -> list[Evidence]:
    """What the fused score would weigh for each photo that asks."""
    memory = _Remember()
    Search(fold.index, shortlist=spec.shortlist, rerank=memory).search(fold.descriptors, k=1)
    impostors, sizes = fold.index.impostors, fold.index.sizes
    return [
        Evidence(
            pool.cosines,
            np.asarray(impostors[pool.rows], np.float32),
            pool.log_posterior,
            np.log(np.maximum(sizes[pool.places], 1)).astype(np.float32),
            _right(fold, np.full(len(pool), query), pool.rows, spec.heading),
        )
        for query, pool in enumerate(memory.pools)
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


def _right(fold: _Fold, asked: Ints, rows: Ints, heading: float) -> NDArray[np.bool_]:
    """Right is near and, if `heading` is given, looking the same way where both photos say."""
    queries, found = fold.queries, fold.index.photos[np.maximum(rows, 0)]
    gap = found.positions - queries.positions[asked]
    right: NDArray[np.bool_] = np.hypot(gap[:, 0], gap[:, 1]) <= RADIUS
    right &= (found.zone == queries.zone[asked]) & (rows >= 0)
    if heading:
        turn = np.abs(found.heading - queries.heading[asked]) % 360
        right &= ~(np.minimum(turn, 360 - turn) > heading)  # unknown headings are nan and pass
    return right
