"""Photos held out in turn, to ask what tomorrow's queries will: from spots nobody has seen.

The photos are dealt by position into folds.  Each fold asks a database without it: one described
by a network that was trained without it, or, where no network is trained, one laid out of the
others' descriptors.  What else is hidden from a photo that asks, `scenarios.py` says.

    N photos · V of them that ask · K folds · D descriptor
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Doubles, Floats, Ints
from evenplace.describe.describer import Describer, Progress
from evenplace.evaluation import Truth
from evenplace.photos.choose import spots_of
from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.retrieval import Batch, Index, Search
from evenplace.retrieval.build import index_descriptors
from evenplace.run.relighting import describe_relit
from evenplace.training.initialisation import starting_network
from evenplace.training.loop import Announce, train
from evenplace.training.recipe import Recipe
from evenplace.training.trunk_cache import describe_cached
from evenplace.training.validation import without

RIGHT = Truth()
RELIT = 1_000  # photos drawn in another light, over all folds: a minute on one core
_READ = 1024  # descriptors read at a time


@dataclass(frozen=True)
class Fold:
    """Photos that ask, and an index of the others by a model that has not seen them."""

    index: Index
    queries: Photos
    source: Any  # descriptors that rows are read from: an array, or `StoredRows`
    rows: Ints  # (V,) of the source, one a query
    hidden: list[Ints] | None = None  # rows of the index that each must not see
    gap: Doubles | None = None  # (V,) metres that hiding has put between each and its best match
    relit: Floats | None = None  # descriptors of some queries in another light
    relit_row: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # (V,) -1 for others

    def search(self, engine: Search, chosen: Ints | None = None) -> Iterator[tuple[Ints, Batch]]:
        """The answers to some of the queries, a few at a time.  chosen: which, in what order."""
        chosen = np.arange(len(self.rows)) if chosen is None else chosen
        for first in range(0, len(chosen), _READ):
            some = chosen[first : first + _READ]
            hidden = None if self.hidden is None else [self.hidden[one] for one in some]
            asked = np.asarray(self.source[self.rows[some]], np.float32)
            for batch in engine.batches(asked, k=1, without=hidden):
                yield some[batch.first : batch.first + len(batch.hits)], batch

    def only(self, kept: Ints) -> "Fold":
        """Some of the queries, with what each must not see."""
        return replace(
            self,
            queries=self.queries[kept],
            rows=self.rows[kept],
            hidden=None if self.hidden is None else [self.hidden[one] for one in kept],
            gap=None if self.gap is None else self.gap[kept],
            relit_row=self.relit_row if self.relit is None else self.relit_row[kept],
        )

    def hiding(self, more: list[Ints]) -> "Fold":
        """The same queries, each seeing still less."""
        if self.hidden is not None:
            more = [np.union1d(old, new) for old, new in zip(self.hidden, more, strict=True)]
        return replace(self, hidden=more)

    def metres_off(self, query: Ints | int, metres: Doubles) -> Doubles:
        """Metres between queries and their answers, less what hiding has put there.  (P,)."""
        gap = 0.0 if self.gap is None else self.gap[query]
        return np.maximum(metres - gap, 0.0)

    def relight(self, describer: Describer, most: int, seed: int, show: Progress | None) -> "Fold":
        """Draw some of the queries in another light and describe them so."""
        drawn = np.random.default_rng(seed).permutation(len(self.queries))[:most]
        paths = self.queries[drawn].paths
        found, readable = describe_relit(describer, paths, seed, show)
        place = np.full(len(self.queries), -1)
        place[drawn[readable]] = np.arange(len(readable))
        return replace(self, relit=found, relit_row=place)


@dataclass(frozen=True)
class StoredRows:
    """Some rows of descriptors, read as they are needed."""

    given: Any  # (N, D)
    rows: Ints

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.given.shape[1]

    def __getitem__(self, chosen: Any) -> NDArray[Any]:
        found: NDArray[Any] = self.given[self.rows[chosen]]
        return found


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
    fold = Fold(index, photos[described.rows[asked]], described.descriptors, asked)
    describer = Describer(network, engine="torch", device=device)
    most = -(-RELIT // recipe.search.folds)
    return fold.relight(describer, most, recipe.training.seed, progress)


def stored_folds(
    index: Index,
    folds: int,
    seed: int,
    folder: Path,
    announce: Announce | None = None,
    keep: str | None = None,
) -> list[Fold]:
    """Lay out the descriptors of an index without each fold in turn.

    keep: how, as in `index_descriptors`; axes are those of the others alone.
    """
    photos, places = index.photos, replace(index.places, labels=index.labels)
    show, found = announce("folds of the database") if announce else None, []
    for number, rows in enumerate(deal(photos, folds, seed)):
        fewer = without(places, rows)
        if len(fewer) > 1 and len(rows):
            others = np.setdiff1d(np.arange(len(photos)), rows)
            kept = replace(fewer, labels=fewer.labels[others])
            home = folder / f"fold-{number}"
            values = StoredRows(index.as_given, others)
            smaller = index_descriptors(values, photos[others], kept, home, keep=keep)
            found.append(Fold(smaller, photos[rows], index.as_given, rows))
        if show:
            show(number + 1, folds)
    return found
