"""What training is after, whatever the method: batches in, a loss out.  The loop knows only this.

    softmax_objective.py  cosines to places: groups in turn, two views, several levels
    pair_objective.py     photos with photos: P places x K photos, cliques of similar places
    triplet_objective.py  triplets whose negatives are looked for, and SFRS's generations

B batch · D descriptor · C places
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from evenplace.arrays import Array, Ints
from evenplace.errors import RunError
from evenplace.losses import PriorLoss, build_loss
from evenplace.networks.network import PlaceNetwork
from evenplace.photos.files import whole_file
from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.training.batches import Step
from evenplace.training.distributed import Ranks
from evenplace.training.photo_source import PhotoSource
from evenplace.training.recipe import Recipe


@dataclass(frozen=True)
class Setup:
    """What an objective is made for.  rows: (n,) the photos to train on, each with a place."""

    recipe: Recipe
    network: PlaceNetwork
    photos: Photos
    places: Places
    source: PhotoSource
    ranks: Ranks
    run: Path
    fresh: bool = True  # no checkpoint waits to be taken up

    @property
    def rows(self) -> Ints:
        """The photos with a place that have not been found unreadable."""
        return np.flatnonzero((self.places.labels >= 0) & self.source.readable)

    @property
    def device(self) -> torch.device:
        return self.network.device

    def dice(self, epoch: int) -> np.random.Generator:
        """Every draw of an epoch comes from here, so that an epoch can be drawn again."""
        return np.random.default_rng((self.recipe.training.seed, epoch))

    def views(self, count: int, dice: np.random.Generator) -> Ints:
        """Through which cached crop each photo is seen; nothing to draw where none is cached."""
        if not self.recipe.training.cached:
            return np.zeros(count, np.int64)
        return dice.integers(self.recipe.training.views, size=count)

    def loss(self, counts: Ints) -> PriorLoss:
        """The recipe's loss over places of these counts, on the network's device."""
        spec = self.recipe.loss
        built = build_loss(spec.name, counts=torch.from_numpy(counts), **spec.settings)
        return built.to(self.device)

    def choose(
        self, epoch: int, round_: int, make: Callable[[], dict[str, Array]]
    ) -> dict[str, Array]:
        """What the network as it is now chooses for a round, kept until the round is over.

        A run taken up within the round must not choose with later weights.
        """
        kept = self.run / f"mined-{epoch:04d}-{round_:03d}.npz"
        if kept.exists():
            with np.load(kept) as file:
                return dict(file)
        made = make()
        if self.ranks.first:
            with whole_file(kept, RunError) as draft, draft.open("wb") as file:
                np.savez(file, **made)  # type: ignore[arg-type]
        self.ranks.wait()
        return made

    def forget(self, epoch: int, round_: int) -> None:
        """Remove what was chosen for rounds before this one; a checkpoint has left them behind."""
        for kept in self.run.glob("mined-*.npz"):
            if kept.stem < f"mined-{epoch:04d}-{round_:03d}":
                kept.unlink(missing_ok=True)


class Objective:
    """Batches of an epoch, and the loss of each; what most have nothing to say to is said here."""

    setup: Setup
    rounds = 1  # how often batches are chosen anew within an epoch
    regions = False  # whether photos are described region by region
    sharded = False  # whether each rank's loss sees its own columns only

    def begin(self, epoch: int) -> bool:
        """Hear that an epoch begins; True asks for a fresh optimiser."""
        raise NotImplementedError

    def restart(self) -> None:
        """Put the network back to where it began; only generations ask for it."""

    def plan(self, epoch: int, round_: int) -> list[Step]:
        """The batches to come, the same on every rank and whenever asked again."""
        raise NotImplementedError

    def __call__(self, descriptors: Tensor, labels: Tensor, step: Step) -> Tensor:
        """The loss of the whole batch's descriptors, gathered from all ranks.  (B, D) -> ()."""
        raise NotImplementedError

    def parameters(self) -> list[nn.Parameter]:
        """The classifiers', which learn at a rate of their own."""
        return []

    def shards(self) -> Mapping[str, nn.Parameter]:
        """Parameters outside the network, to be kept in checkpoints; each rank has its own."""
        return {}

    def memory(self) -> nn.Module:
        """What the losses have learnt of the places, to be kept in checkpoints."""
        raise NotImplementedError

    def effect(self, epoch: int) -> dict[str, Any]:
        """What the log should say of weights and offsets."""
        raise NotImplementedError

    def finish(self) -> None:
        """Leave the network with a prototype for each place."""


def effect_of(loss: PriorLoss) -> dict[str, Any]:
    """Weights and offsets as the log has them."""
    found = loss.describe()
    return {
        "weights": [round(edge, 4) for edge in found.weights],
        "offsets": [round(edge, 4) for edge in found.offsets],
    }
