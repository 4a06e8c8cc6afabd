"""How fast to learn, at which moment, and a moving average of what was learnt.

The rate is a function of the epoch and of the losses so far; nothing is remembered between
calls, so a run that was stopped goes on at the rate it had.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from evenplace.training.specs import TrainingSpec

_WORTHWHILE = 1e-4  # a loss that falls by less than this share has not fallen


def rate(spec: TrainingSpec, epoch: float, losses: Sequence[float] = ()) -> float:
    """The share of the full learning rate at `epoch` (with its fraction).

    cosine: half a wave from 1 to `final`.      linear: a line from 1 to `final`.
    steps: times `factor` at each of `milestones` (epochs).     constant: 1.
    plateau: times `factor` whenever `patience` epochs brought no lower loss.
    """
    done = epoch / max(1, spec.epochs)
    if spec.schedule == "cosine":
        return spec.final + (1 - spec.final) * 0.5 * (1 + math.cos(math.pi * done))
    if spec.schedule == "linear":
        return 1 + (spec.final - 1) * min(1.0, done)
    if spec.schedule == "steps":
        return float(spec.factor ** sum(epoch >= mark for mark in spec.milestones))
    if spec.schedule == "plateau":
        return float(spec.factor ** _disappointments(losses, spec.patience))
    return 1.0


def warm_up(spec: TrainingSpec, epoch: float) -> float:
    """A tenth of the rate at first, all of it after `warmup` epochs."""
    if spec.warmup == 0:
        return 1.0
    return min(1.0, (epoch + 0.1 * spec.warmup) / spec.warmup)


def _disappointments(losses: Sequence[float], patience: int) -> int:
    """How often `patience` epochs in a row brought no lower loss."""
    best, waited, found = math.inf, 0, 0
    for loss in losses:
        waited = 0 if loss < best * (1 - _WORTHWHILE) else waited + 1
        best = min(best, loss)
        if waited > patience:
            found, waited = found + 1, 0
    return found


def build_optimiser(
    spec: TrainingSpec, body: list[nn.Parameter], heads: list[nn.Parameter]
) -> torch.optim.Optimizer:
    """One optimiser for the network and its classifiers, each group at its own rate.

    A classifier whose group is not trained in a step has no gradient and is left alone, moments
    included: the same as one optimiser a classifier.  Either may be empty; AnyLoc learns nothing.
    """
    groups = [
        {"params": params, "lr": peak, "peak": peak}
        for params, peak in ((body, spec.lr), (heads, spec.lr_classifier))
    ]
    if spec.optimiser == "sgd":
        return torch.optim.SGD(groups, momentum=spec.momentum, weight_decay=spec.weight_decay)
    kind = torch.optim.AdamW if spec.optimiser == "adamw" else torch.optim.Adam
    return kind(groups, weight_decay=spec.weight_decay)


def set_rates(
    optimiser: torch.optim.Optimizer, spec: TrainingSpec, epoch: float, losses: Sequence[float]
) -> None:
    """Give every group of parameters its share of its full rate."""
    share, warm = rate(spec, epoch, losses), warm_up(spec, epoch)
    for group in optimiser.param_groups:
        group["lr"] = group["peak"] * share * warm


class Average:
    """theta_avg <- d theta_avg + (1 - d) theta after each step, d at most (1 + t) / (10 + t).

    The ramp lets a short run forget where it started.  decay = 0 averages nothing and costs
    nothing.
    """

    def __init__(self, parameters: dict[str, nn.Parameter], decay: float) -> None:
        self.parameters, self.decay, self.count = parameters, decay, 0
        self.shadow: dict[str, Tensor] = {}
        self.restart()

    @torch.no_grad()
    def restart(self) -> None:
        """Begin at the weights as they are now."""
        self.count = 0
        if self.decay:
            self.shadow = {name: p.detach().clone() for name, p in self.parameters.items()}

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights after a step."""
        if not self.decay:
            return
        self.count += 1
        decay = min(self.decay, (1 + self.count) / (10 + self.count))
        for name, own in self.parameters.items():
            self.shadow[name].lerp_(own, 1 - decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The averaged weights in place of the network's own, for as long as this lasts."""
        if not self.decay:
            yield
            return
        own = {name: p.detach().clone() for name, p in self.parameters.items()}
        self._put(self.shadow)
        try:
            yield
        finally:
            self._put(own)

    def keep(self) -> None:
        """Make the averaged weights the network's own."""
        if self.decay:
            self._put(self.shadow)

    @torch.no_grad()
    def _put(self, values: dict[str, Tensor]) -> None:
        for name, parameter in self.parameters.items():
            parameter.copy_(values[name])
