"""The weights of a fused score and of a second look, learned from photos whose place is known.

The score of a candidate is the log of its odds to be the match.  So take queries that the model
has not seen, and find the weights under which the best photo that matches wins most surely over
all that do not:

    maximise  sum_q n_q log  exp(b_q) / (exp(b_q) + sum_{i wrong} exp(score_qi)),
              b_q = max_{i right} score_qi

n_q is what a query counts: one each, or each place as much as any other (`count_queries`).

One right photo is enough to be found, so one is counted: with all of them a busy place could
afford to have its number of photos held against each.  Four weights and hundreds of queries:
nothing to overfit, and no constant left to tune.

Queries lie one after the other, each as long as its pool, and a few at a time are weighed: what
a padded table of the longest would take (one pool of 20,000 beside 600 of 60: 1 GB) is never made.

    V queries · T candidates of all · N candidates of one that were looked at · S stages of a look
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from evenplace.arrays import Floats, starts_of
from evenplace.retrieval.array_files import Rows
from evenplace.retrieval.candidates import Ranking
from evenplace.retrieval.point_matching import worth
from evenplace.retrieval.rerank import Fused
from evenplace.retrieval.second_look import FIRST, LookWeights

_EACH = ("cosines", "impostors", "log_posterior", "log_sizes", "right")  # of a candidate
_FITTED = ("scale", "impostor", "posterior", "balance")
_SPREAD = (0.5, 0.5, 1.0, 1.0)  # how far a query's worth of evidence moves each weight
_LOST, _ENOUGH = 0.005, 20  # settled: of at least so many that stop, so few lose a right answer
_LEAST, _MOST = 30, 200  # inliers that may settle it: of one pass 15 did, and cost another day
_NOTHING = -1e9
_BLOCK = 1 << 18  # candidates weighed at a time, and those of one query more


@dataclass(frozen=True)
class Evidence:
    """What a fused score weighs, for the candidates of queries, and which of them are right.

    The candidates of query q are cuts[q]:cuts[q + 1].
    """

    cosines: Floats  # (T,)
    impostors: Floats  # (T,)
    log_posterior: Floats  # (T,)
    log_sizes: Floats  # (T,) log of the photos in each candidate's place
    right: NDArray[np.bool_]  # (T,)
    cuts: Rows  # (V + 1,)
    counts: Floats  # (V,) what each query counts

    def __len__(self) -> int:
        return len(self.cuts) - 1

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The queries of several, one after the other."""
        sizes = np.concatenate([np.diff(part.cuts) for part in parts])
        return cls(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in _EACH},
            cuts=starts_of(sizes),
            counts=np.concatenate([part.counts for part in parts]),
        )

    def telling(self) -> Self:
        """The queries that have a right candidate; the others say nothing about the weights."""
        of = np.repeat(np.arange(len(self)), np.diff(self.cuts))
        found = np.bincount(of[self.right], minlength=len(self)) > 0
        return replace(
            self,
            **{name: getattr(self, name)[found[of]] for name in _EACH},
            cuts=starts_of(np.diff(self.cuts)[found]),
            counts=self.counts[found],
        )

    def blocks(self) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Terms (4, T'), which are right (T',), whose they are (T',), what those count (V',).

        A few queries at a time.
        """
        first = 0
        while first < len(self):
            start = self.cuts[first]
            last = max(first + 1, int(np.searchsorted(self.cuts, start + _BLOCK, "right")) - 1)
            mine = slice(start, self.cuts[last])
            fields = [getattr(self, name)[mine] for name in _EACH[:4]]
            terms = torch.from_numpy(np.stack(fields)).double()
            of = np.repeat(np.arange(last - first), np.diff(self.cuts[first : last + 1]))
            counts = torch.from_numpy(self.counts[first:last]).double()
            yield terms, torch.from_numpy(self.right[mine]), torch.from_numpy(of), counts
            first = last


def fit_fused(asked: Evidence, start: Fused | None = None, without: Sequence[str] = ()) -> Fused:
    """Fit the weights.

    A penalty worth one query holds each weight near `start`, so that few queries move little.
    without: terms that are left out; the others make do.
    """
    start, telling = start or Fused(), asked.telling()
    if not len(telling):
        return start.without(without)
    kept = torch.tensor([name not in without for name in _FITTED])
    first = torch.tensor(
        [np.log(start.scale), start.impostor, np.log(start.posterior), start.balance]
    ).double()

    def costs(moved: Tensor) -> Iterator[Tensor]:
        for (cosines, impostors, posterior, sizes), right, of, counts in telling.blocks():
            scale, impostor, weight, balance = _weights(first, moved, kept)
            score = scale * (cosines - impostor * impostors)
            score = score + weight * (posterior - balance * sizes)
            yield (counts * surprise(score, right, of)).sum()

    moved = _best_move(4, costs, len(telling))
    scale, impostor, weight, balance = (float(w) for w in _weights(first, moved, kept))
    return Fused(scale=scale, posterior=weight, balance=balance, impostor=impostor)


def _best_move(weights: int, costs: Callable[[Tensor], Iterator[Tensor]], queries: int) -> Tensor:
    """How far to move each weight from its start: where the costs of the queries are least.

    A penalty worth one query holds each in its place.  Costs come in parts, so that one part's
    derivative is in memory at a time.
    """
    moved = torch.zeros(weights, dtype=torch.double, requires_grad=True)
    optimiser = torch.optim.LBFGS([moved], max_iter=100, line_search_fn="strong_wolfe")

    def step() -> float:
        optimiser.zero_grad()
        total = 0.0
        for cost in chain([moved.square().sum()], costs(moved)):
            part = cost / queries
            part.backward()  # type: ignore[no-untyped-call]
            total += float(part.detach())
        return total

    optimiser.step(step)  # type: ignore[no-untyped-call]
    return moved.detach()


def count_queries(places: Rows, favour: str) -> Floats:
    """What each query counts, averaging to 1.  places: of each, -1 for none.  (V,) -> (V,).

    queries: all alike, so that what is asked most often is found most often.  places: those of a
    place share one, so that a street asked about once weighs as much as the square.
    """
    if favour == "queries" or not len(places):
        return np.ones(len(places), np.float32)
    _, own, many = np.unique(places, return_inverse=True, return_counts=True)
    shares = 1 / many[own]
    counts: Floats = (shares / shares.mean()).astype(np.float32)
    return counts


def surprise(score: Tensor, right: Tensor, of: Tensor) -> Tensor:
    """Minus the log of the chance that the best right candidate wins.  (T,) -> (V,).

    of: which query each candidate is of, ascending from 0.
    """
    queries = int(of[-1]) + 1
    best = _largest(score.masked_fill(~right, _NOTHING), of, queries)
    wrong = score.masked_fill(right, _NOTHING)
    top = _largest(wrong.detach(), of, queries)
    total = torch.zeros_like(top).index_add(0, of, (wrong - top[of]).exp())
    return functional.softplus(top + total.log() - best)


def _largest(values: Tensor, of: Tensor, queries: int) -> Tensor:
    start = torch.full((queries,), _NOTHING, dtype=values.dtype)
    return start.scatter_reduce(0, of, values, "amax")


def _weights(first: Tensor, moved: Tensor, kept: Tensor) -> Sequence[Tensor]:
    """Those of `_FITTED`; scale and posterior stay positive, terms that are not kept are 0."""
    place = first + moved * torch.tensor(_SPREAD).double()
    return (torch.stack([place[0].exp(), place[1], place[2].exp(), place[3]]) * kept).unbind()


@dataclass(frozen=True)
class Looked:
    """The candidates of one rehearsed query, as the rule ranked them."""

    distances: Floats  # (N,)
    inliers: Floats  # (N,)
    right: NDArray[np.bool_]  # (N,)


def fit_look(asked: Sequence[Looked]) -> LookWeights:
    """Learn what matches are worth: the weights under which the best right photo wins most surely.

    As `fit_fused`: a penalty worth one query holds each weight near its start.
    """
    start = LookWeights()
    telling = [one for one in asked if one.right.any() and not one.right.all()]
    if not telling:
        return start
    distances, gained, right, of = _flat(telling)  # (T,) candidates of all queries
    first = torch.tensor([np.log(start.scale), np.log(start.inliers)]).double()

    def costs(moved: Tensor) -> Iterator[Tensor]:
        scale, worth = (first + moved).exp()
        yield surprise(worth * gained - scale * distances, right, of).sum()

    scale, worth = (first + _best_move(2, costs, len(telling))).exp().tolist()
    weights = LookWeights(scale, worth)
    return replace(weights, settled=_settled(asked, weights))


def _settled(asked: Sequence[Looked], weights: LookWeights) -> int:
    """The least inliers at which stopping loses a right answer once in 200 times; 0 for none.

    Looking on could only correct an answer: whether it is right does not matter here.
    """
    stages = [stage for one in asked if (stage := _stages(one, weights)) is not None]
    settled = 0
    for least in range(_MOST, _LEAST - 1, -1):
        stopped = [stage for stage in stages if stage.most[-2] >= least]
        if len(stopped) < _ENOUGH:
            continue
        at = [int(np.argmax(stage.most >= least)) for stage in stopped]
        lost = [s.right[-1] and not s.right[end] for s, end in zip(stopped, at, strict=True)]
        if np.mean(lost) > _LOST:
            break
        settled = least
    return settled


@dataclass(frozen=True)
class _Stages:
    """What is known of a query after each five candidates."""

    most: Floats  # (S,) inliers of the best so far
    right: NDArray[np.bool_]  # (S,) whether the answer would be right


def _stages(one: Looked, weights: LookWeights) -> _Stages | None:
    """None where there is nothing left to stop before."""
    ends = [*range(FIRST, len(one.inliers), FIRST), len(one.inliers)]
    if len(ends) < 2:
        return None
    ranking, right = Ranking(np.arange(len(one.right)), one.distances), []
    for end in ends:
        seen = np.where(np.arange(len(one.inliers)) < end, one.inliers, 0)
        right.append(one.right[weights.rank(ranking, seen).order[0]])
    most = np.array([one.inliers[:end].max() for end in ends])
    return _Stages(most=most, right=np.array(right))


def _flat(asked: Sequence[Looked]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Distances in their spreads, what inliers are worth, which are right, whose.  (T,) each."""
    of = np.repeat(np.arange(len(asked)), [len(one.right) for one in asked])
    distances = np.concatenate(
        [one.distances / (np.std(one.distances, dtype=np.float64) or 1.0) for one in asked]
    )
    gained = worth(np.concatenate([one.inliers for one in asked]))
    right = np.concatenate([one.right for one in asked])
    return tuple(torch.from_numpy(part) for part in (distances, gained, right, of))  # type: ignore[return-value]
