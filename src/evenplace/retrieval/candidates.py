"""The candidates of a query, and of many queries side by side.

Q queries · P candidates of one · T candidates of all · D descriptor
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Floats, starts_of
from evenplace.retrieval.array_files import Rows
from evenplace.retrieval.top_k import sorted_within

SCALE = 30.0  # makes odds of cosines
_EACH = ("rows", "places", "cosines", "log_posterior")  # what a candidate has


@dataclass(frozen=True)
class Pool:
    """The candidates of one query: photos of the shortlisted places, place by place."""

    rows: Rows  # (P,) rows of the index
    places: Rows  # (P,)
    cosines: Floats  # (P,) similarity of the query to each photo
    log_posterior: Floats  # (P,) log p(place | query) of each photo's place
    query: Floats  # (D,)

    def __len__(self) -> int:
        return len(self.rows)

    def alone(self) -> "Pools":
        """This pool as a batch of one."""
        each = {name: getattr(self, name) for name in _EACH}
        return Pools(**each, queries=self.query[None], cuts=np.array([0, len(self)]))


@dataclass(frozen=True)
class Pools:
    """The pools of a batch, one after the other: candidates of query q are cuts[q]:cuts[q + 1]."""

    rows: Rows  # (T,)
    places: Rows  # (T,)
    cosines: Floats  # (T,)
    log_posterior: Floats  # (T,)
    queries: Floats  # (Q, D)
    cuts: Rows  # (Q + 1,)

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def __getitem__(self, query: int) -> Pool:
        mine = slice(self.cuts[query], self.cuts[query + 1])
        own = {name: getattr(self, name)[mine] for name in _EACH}
        return Pool(**own, query=self.queries[query])

    @cached_property
    def sizes(self) -> Rows:
        """Candidates of each query.  (Q,)."""
        return self.cuts[1:] - self.cuts[:-1]

    @cached_property
    def of(self) -> Rows:
        """Which query each candidate is of.  (T,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def hiding(self, rows: Sequence[Rows]) -> "Pools":
        """The same without some rows of the index, for each query its own."""
        unseen = [np.isin(self[query].rows, own) for query, own in enumerate(rows)]
        seen = ~np.concatenate(unseen)
        cuts = np.concatenate([[0], np.cumsum(seen)])[self.cuts]
        return self._chosen(np.flatnonzero(seen), cuts)

    def beside(self, query: Rows, rows: Rows, cosines: Floats, likely: Floats) -> "Pools":
        """The same, and photos in no place behind the candidates of their queries.  (M,) each."""
        more = (rows, np.full(len(rows), -1), cosines, likely)
        both = {
            name: np.concatenate([getattr(self, name), came])
            for name, came in zip(_EACH, more, strict=True)
        }
        cuts = self.cuts + starts_of(np.bincount(query, minlength=len(self)))
        order = np.argsort(np.concatenate([self.of, query]), kind="stable")
        return replace(self, **both)._chosen(order, cuts)

    def _chosen(self, which: Rows, cuts: Rows) -> "Pools":
        return replace(self, cuts=cuts, **{name: getattr(self, name)[which] for name in _EACH})

    def sums(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        """Sum over each query's candidates.  (T, ...) -> (Q, ...)."""
        return sum_spans(values, self.cuts)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """exp(30 (cos - the query's largest)): how much each candidate counts.  (T,)."""
        return np.exp(SCALE * (self.cosines - self.largest[self.of]).astype(np.float64))

    @cached_property
    def largest(self) -> Floats:
        """The largest cosine of each query; 0 where there are no candidates.  (Q,)."""
        held = self.sizes > 0
        largest = np.zeros(len(self), np.float32)
        largest[held] = np.maximum.reduceat(self.cosines, self.cuts[:-1][held])
        return largest

    def segments(self) -> tuple[Rows, Rows, Rows]:
        """Pairs of a query and a place: query (S,), place (S,), and the pair of each candidate."""
        span = int(self.places.max(initial=-1)) + 2
        keys = self.of * span + self.places + 1
        begins = np.diff(keys, prepend=-1) != 0
        pairs, which = keys[begins], np.cumsum(begins) - 1
        if len(set(pairs.tolist())) < len(pairs):  # places stand together, unless somebody mixed
            pairs, again = np.unique(pairs, return_inverse=True)
            which = again[which]
        return pairs // span, pairs % span - 1, which


def sum_spans(values: NDArray[np.floating], cuts: Rows) -> NDArray[np.float64]:
    """Sum from each cut to the next, 0 where that is nothing.  (T, ...), (Q + 1,) -> (Q, ...)."""
    held = cuts[1:] > cuts[:-1]
    added = np.zeros((len(held), *values.shape[1:]))
    if held.any():
        added[held] = np.add.reduceat(values, cuts[:-1][held], axis=0, dtype=np.float64)
    return added


@dataclass(frozen=True)
class Ranking:
    """Candidates from best to worst, and how far each is; the unit is the rule's own."""

    order: Rows  # (P,) positions in the pool
    distances: Floats  # (P,) in that order
    inliers: Floats | None = None  # (P,) after a second look; nan where nobody looked


@dataclass(frozen=True)
class Rankings:
    """The rankings of a batch, one after the other as in its pools."""

    order: Rows  # (T,) candidates
    distances: Floats  # (T,) in that order
    cuts: Rows  # (Q + 1,)
    inliers: Floats | None = None  # (T,) in that order

    def __getitem__(self, query: int) -> Ranking:
        mine = slice(self.cuts[query], self.cuts[query + 1])
        inliers = None if self.inliers is None else self.inliers[mine]
        return Ranking(self.order[mine] - mine.start, self.distances[mine], inliers)

    @classmethod
    def join(cls, rankings: Sequence[Ranking], cuts: Rows) -> Self:
        orders = [one.order + first for one, first in zip(rankings, cuts, strict=False)]
        seen = [one.inliers for one in rankings if one.inliers is not None]
        return cls(
            order=np.concatenate(orders),
            distances=np.concatenate([one.distances for one in rankings]),
            cuts=cuts,
            inliers=np.concatenate(seen) if seen and len(seen) == len(rankings) else None,
        )

    @property
    def looked(self) -> Rows:
        """Candidates of each query that were looked at a second time.  (Q,)."""
        if self.inliers is None:
            return np.zeros(len(self.cuts) - 1, np.int64)
        return sum_spans(~np.isnan(self.inliers), self.cuts).astype(np.int64)

    def best(self, pools: Pools, k: int) -> "Best":
        """The k best of each query; -1, inf and nan where there are fewer."""
        at = self.cuts[:-1, None] + np.arange(k)
        there = at < self.cuts[1:, None]
        rows = np.full(at.shape, -1)
        distances, cosines, inliers = (
            np.full(at.shape, none, np.float32) for none in (np.inf, np.nan, np.nan)
        )
        chosen = self.order[at[there]]
        rows[there], cosines[there] = pools.rows[chosen], pools.cosines[chosen]
        distances[there] = self.distances[at[there]]
        if self.inliers is not None:
            inliers[there] = self.inliers[at[there]]
        return Best(rows, distances, cosines, inliers)


class Best(NamedTuple):
    """The first of each ranking.  (Q, k) each."""

    rows: Rows
    distances: Floats
    cosines: Floats
    inliers: Floats


def rank_pools(pools: Pools, distances: Floats, *, by_place: bool) -> Rankings:
    """The nearest first; by_place: of a place's photos, which are equally far, the most alike."""
    order = np.arange(len(distances))
    if by_place:
        order = sorted_within(pools.of, -pools.cosines)
    order = order[sorted_within(pools.of, distances[order])]
    return Rankings(order, distances[order], pools.cuts)
