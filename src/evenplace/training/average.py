"""A moving average of the weights: steadier than the last step, and what is kept in the end."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


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
