"""The weights of a fused score, learned from photos whose place is known instead of chosen.

The score of a candidate is the log of its odds to be the match.  So take queries that the model
has not seen, and find the weights under which the best photo that matches wins most surely over
all that do not:

    maximise  sum_q log  exp(b_q) / (exp(b_q) + sum_{i wrong} exp(score_qi)),
              b_q = max_{i right} score_qi

One right photo is enough to be found, so one is counted: with all of them a busy place could
afford to have its number of photos held against each.  Four weights and hundreds of queries:
nothing to overfit, and no constant left to tune.

    V queries · P candidates
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from evenplace.retrieval.rerank import Fused

Floats = NDArray[np.float32]

_SPREAD = (0.5, 0.5, 1.0, 1.0)  # how far a query's worth of evidence moves each weight
_NOTHING = -1e9


@dataclass(frozen=True)
class Evidence:
    """What a fused score weighs, for the candidates of one query, and which of them are right."""

    cosines: Floats  # (P,)
    impostors: Floats  # (P,)
    log_posterior: Floats  # (P,)
    log_sizes: Floats  # (P,) log of the photos in each candidate's place
    right: NDArray[np.bool_]  # (P,)


def fit_fused(asked: Sequence[Evidence], start: Fused | None = None) -> Fused:
    """Fit the weights; queries without a right candidate say nothing about them.

    A penalty worth one query holds each weight near `start`, so that few queries move little.
    """
    start = start or Fused()
    telling = [one for one in asked if one.right.any()]
    if not telling:
        return start
    cosines, impostors, posterior, sizes, right, there = _padded(telling)  # (V, P)
    first = torch.tensor(
        [np.log(start.scale), start.impostor, np.log(start.posterior), start.balance]
    ).double()
    moved = torch.zeros(4, dtype=torch.double, requires_grad=True)
    optimiser = torch.optim.LBFGS([moved], max_iter=100, line_search_fn="strong_wolfe")

    def cost() -> Tensor:
        scale, impostor, weight, balance = _weights(first, moved)
        score = scale * (cosines - impostor * impostors) + weight * (posterior - balance * sizes)
        return (surprise(score, right, there).sum() + moved.square().sum()) / len(telling)

    def step() -> float:
        optimiser.zero_grad()
        value = cost()
        value.backward()  # type: ignore[no-untyped-call]
        return float(value.detach())

    optimiser.step(step)  # type: ignore[no-untyped-call]
    scale, impostor, weight, balance = (float(w) for w in _weights(first, moved.detach()))
    return Fused(scale=scale, posterior=weight, balance=balance, impostor=impostor)


def surprise(score: Tensor, right: Tensor, there: Tensor) -> Tensor:
    """Minus the log of the chance that the best right candidate wins.  (V, P) -> (V,)."""
    best = score.masked_fill(~right, _NOTHING).amax(1)
    wrong = score.masked_fill(right | ~there, _NOTHING).logsumexp(1)
    return functional.softplus(wrong - best)


def _weights(first: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scale, impostor, posterior, balance; scale and posterior stay positive."""
    place = first + moved * torch.tensor(_SPREAD).double()
    return place[0].exp(), place[1], place[2].exp(), place[3]


def _padded(asked: Sequence[Evidence]) -> tuple[Tensor, ...]:
    """Each field as one (V, P) tensor, and which entries are candidates at all."""
    longest = max(len(one.cosines) for one in asked)
    there = torch.zeros(len(asked), longest, dtype=torch.bool)
    right = torch.zeros_like(there)
    terms = torch.zeros(4, len(asked), longest, dtype=torch.double)
    for row, one in enumerate(asked):
        count = len(one.cosines)
        there[row, :count] = True
        right[row, :count] = torch.from_numpy(one.right)
        fields = (one.cosines, one.impostors, one.log_posterior, one.log_sizes)
        terms[:, row, :count] = torch.from_numpy(np.stack(fields).astype(np.float64))
    return *terms, right, there
