"""Photos held out in turn, to ask what tomorrow's queries will: from spots nobody has seen.

The photos are dealt by position into folds.  Each fold asks a database without it: one described
by a network that was trained without it, or, where no network is trained, one laid out of the
others' descriptors.  Where most spots were photographed on several days, a photo does not see
those of its own day either: tomorrow's query will have another light and other cars.

    N photos · V of them that ask · K folds · D descriptor
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.describe.describer import Progress
from evenplace.evaluation import Truth
from evenplace.photos.splits import spots_of
from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.retrieval import Batch, Index, Search
from evenplace.retrieval.build import index_descriptors
from evenplace.run.tail import lay_out
from evenplace.training.cache import describe_cached
from evenplace.training.loop import Announce, train
from evenplace.training.recipe import Recipe
from evenplace.training.start import starting_network
from evenplace.training.validation import without

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
RIGHT = Truth()
_UNKNOWN = -(2**40)  # no day of ours
_READ = 1024  # descriptors read at a time


@dataclass(frozen=True)
class Fold:
    """Photos that ask, and an index of the others by a model that has not seen them."""

    index: Index
    queries: Photos
    source: Any  # descriptors that rows are read from: an array, or `StoredRows`
    rows: Ints  # (V,) of the source, one a query
    hidden: list[Ints] | None = None  # rows of the index that each must not see

    def search(self, engine: Search, chosen: Ints | None = None) -> Iterator[tuple[Ints, Batch]]:
        """The answers to some of the queries, a few at a time.  chosen: which, in what order."""
        chosen = np.arange(len(self.rows)) if chosen is None else chosen
        for first in range(0, len(chosen), _READ):
            some = chosen[first : first + _READ]
            hidden = None if self.hidden is None else [self.hidden[one] for one in some]
            asked = np.asarray(self.source[self.rows[some]], np.float32)
            for batch in engine.batches(asked, k=1, without=hidden):
                yield some[batch.first : batch.first + len(batch.hits)], batch

    def only(self, kept: Ints, hidden: list[Ints]) -> "Fold":
        """Some of the queries, with the rows each must not see."""
        return replace(self, queries=self.queries[kept], rows=self.rows[kept], hidden=hidden)


@dataclass(frozen=True)
class StoredRows:
    """Descriptors of some photos of an index, read as they are needed."""

    index: Index
    rows: Ints

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.index.dim

    def __getitem__(self, chosen: Any) -> Floats:
        return self.index.vectors(self.rows[chosen])


def deal(photos: Photos, folds: int, seed: int) -> Iterator[Ints]:
    """Rows of each fold; photos of one spot stay together."""
    spot = spots_of(photos)
    fold = np.random.default_rng(seed).permutation(int(spot.max(initial=-1)) + 1) % folds
    for number in range(folds):
        yield np.flatnonzero(fold[spot] == number)


def trained_folds(
    photos: Photos,
    places: Places,
    recipe: Recipe,
    folder: Path,
    *,
    cache_folder: Path,
    announce: Announce | None = None,
    device: str = "auto",
) -> list[Fold]:
    """Train and index without each fold in turn; folds that leave nothing to learn are left out.

    folder: for the folds' runs; what was stopped goes on there.  With the trunk's cache a fold
    costs seconds.
    """
    folds = []
    for number, rows in enumerate(deal(photos, recipe.search.folds, recipe.training.seed)):
        fewer = without(places, rows)
        if len(fewer) > 1 and len(rows):
            show = announce(f"fold {number + 1} of {recipe.search.folds}") if announce else None
            home = folder / f"fold-{number}"
            folds.append(_train_fold(photos, fewer, rows, recipe, home, cache_folder, show, device))
    return folds


def _train_fold(
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
    asked = np.flatnonzero(held)
    return Fold(index, photos[described.rows[asked]], described.descriptors, asked)


def stored_folds(
    index: Index, folds: int, seed: int, folder: Path, announce: Announce | None = None
) -> list[Fold]:
    """Lay out the descriptors of an index without each fold in turn, as `tail.lay_out` does all."""
    photos, places = index.photos, replace(index.places, labels=index.labels)
    show, found = announce("folds of the database") if announce else None, []
    for number, rows in enumerate(deal(photos, folds, seed)):
        fewer = without(places, rows)
        if len(fewer) > 1 and len(rows):
            others = np.setdiff1d(np.arange(len(photos)), rows)
            kept = replace(fewer, labels=fewer.labels[others])
            home = folder / f"fold-{number}"
            smaller = lay_out(StoredRows(index, others), photos[others], kept, home)
            found.append(
                Fold(smaller, photos[rows], StoredRows(index, np.arange(len(index))), rows)
            )
        if show:
            show(number + 1, folds)
    return found


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
    near = RIGHT.positives(fold.queries, fold.index.photos)
    asked = np.repeat(np.arange(len(fold.queries)), near.counts)
    another = asked[taken_on[near.rows] != asked_on[asked]]
    matches = np.bincount(another, minlength=len(fold.queries))
    return np.asarray((matches > 0) | (near.counts == 0))


def _hidden(fold: Fold, kept: Ints) -> Fold:
    asked_on, taken_on = _days(fold)
    rows = {day: np.flatnonzero(taken_on == day) for day in np.unique(asked_on[kept])}
    return fold.only(kept, [rows[day] for day in asked_on[kept]])


def _days(fold: Fold) -> tuple[Ints, Ints]:
    """Days on which the photos that ask, and those asked about, were taken; unknown are apart."""
    asked, taken = (
        photos.time.astype("datetime64[D]") for photos in (fold.queries, fold.index.photos)
    )
    days = [np.where(np.isnat(day), _UNKNOWN, day.astype(np.int64)) for day in (asked, taken)]
    return days[0] - (days[0] == _UNKNOWN), days[1]
