"""The weights of a fused score, learned from photos whose place is known instead of chosen.

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

    V queries · T candidates of all
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from evenplace.retrieval.rerank import Fused

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

_SPREAD = (0.5, 0.5, 1.0, 1.0)  # how far a query's worth of evidence moves each weight
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
        names = ("cosines", "impostors", "log_posterior", "log_sizes", "right")
        sizes = np.concatenate([np.diff(part.cuts) for part in parts])
        return cls(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names},
            cuts=np.append(0, np.cumsum(sizes)),
            counts=np.concatenate([part.counts for part in parts]),
        )

    def telling(self) -> "Evidence":
        """The queries that have a right candidate; the others say nothing about the weights."""
        sizes = np.diff(self.cuts)
        found = np.bincount(self._of[self.right], minlength=len(self)) > 0
        kept = found[self._of]
        return Evidence(
            self.cosines[kept],
            self.impostors[kept],
            self.log_posterior[kept],
            self.log_sizes[kept],
            self.right[kept],
            np.append(0, np.cumsum(sizes[found])),
            self.counts[found],
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
            fields = (self.cosines, self.impostors, self.log_posterior, self.log_sizes)
            terms = torch.from_numpy(np.stack([one[mine] for one in fields])).double()
            of = np.repeat(np.arange(last - first), np.diff(self.cuts[first : last + 1]))
            counts = torch.from_numpy(self.counts[first:last]).double()
            yield terms, torch.from_numpy(self.right[mine]), torch.from_numpy(of), counts
            first = last

    @property
    def _of(self) -> Rows:
        return np.repeat(np.arange(len(self)), np.diff(self.cuts))


def fit_fused(asked: Evidence, start: Fused | None = None) -> Fused:
    """Fit the weights.

    A penalty worth one query holds each weight near `start`, so that few queries move little.
    """
    start, telling = start or Fused(), asked.telling()
    if not len(telling):
        return start
    first = torch.tensor(
        [np.log(start.scale), start.impostor, np.log(start.posterior), start.balance]
    ).double()
    moved = torch.zeros(4, dtype=torch.double, requires_grad=True)
    optimiser = torch.optim.LBFGS([moved], max_iter=100, line_search_fn="strong_wolfe")

    def add(cost: Tensor) -> float:
        (cost / len(telling)).backward()  # type: ignore[no-untyped-call]
        return float(cost.detach()) / len(telling)

    def step() -> float:
        optimiser.zero_grad()
        total = add(moved.square().sum())
        for (cosines, impostors, posterior, sizes), right, of, counts in telling.blocks():
            scale, impostor, weight, balance = _weights(first, moved)
            score = scale * (cosines - impostor * impostors)
            score = score + weight * (posterior - balance * sizes)
            total += add((counts * surprise(score, right, of)).sum())
        return total

    optimiser.step(step)  # type: ignore[no-untyped-call]
    scale, impostor, weight, balance = (float(w) for w in _weights(first, moved.detach()))
    return Fused(scale=scale, posterior=weight, balance=balance, impostor=impostor)


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


def _weights(first: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scale, impostor, posterior, balance; scale and posterior stay positive."""
    place = first + moved * torch.tensor(_SPREAD).double()
    return place[0].exp(), place[1], place[2].exp(), place[3]
