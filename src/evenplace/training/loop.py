"""Photos and places → a trained model, resumable at every epoch.

Every random draw of an epoch comes from (seed, epoch), so a run that was stopped and taken up
again draws what an unbroken one would have drawn.

    B batch · C places · D descriptor
"""

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenplace.errors import PlaceError
from evenplace.losses import PriorLoss, build_loss
from evenplace.models.checkpoints import save_checkpoint
from evenplace.models.describe import Progress
from evenplace.models.loading import load_batches
from evenplace.models.network import PlaceNetwork
from evenplace.photos.table import Photos, Skipped
from evenplace.places.table import Places
from evenplace.training.augment import random_views
from evenplace.training.batches import epoch_rows, split_batches
from evenplace.training.cache import TrunkCache, ViewSettings, cache_trunk
from evenplace.training.progress import claim_run, load_progress, save_progress
from evenplace.training.recipe import Recipe, read_recipe
from evenplace.training.start import start_from_frozen

Announce = Callable[[str], Progress]


@dataclass(frozen=True)
class Trained:
    """What training leaves: the network, its losses epoch by epoch, and the photos left out."""

    network: PlaceNetwork
    losses: tuple[float, ...]
    skipped: tuple[Skipped, ...]
    seconds: float


def train(
    network: PlaceNetwork,
    photos: Photos,
    places: Places,
    recipe: Recipe | str | Path,
    run: str | Path,
    *,
    cache_folder: Path | None = None,
    announce: Announce | None = None,
) -> Trained:
    """Train a network on photos and their places, leaving a run folder that can be searched.

    recipe: one, or the name or path of one; its [network] and [places] are what the caller
    already built.  run/ gets recipe.toml, places.parquet, model.safetensors and log.jsonl, and a
    run that was stopped is taken up where it was; the trunk's cache goes to `cache_folder`, by
    default inside the run, and can be shared between runs.
    """
    recipe = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
    recipe, run = replace(recipe, network=network.spec), Path(run)
    claim_run(run, recipe, places)
    session = _Session(network, photos, places, recipe, run, announce or _silent)
    return session.run_epochs(cache_folder or run / "cache")


def _silent(_: str) -> Progress:
    return lambda done, total: None


class _Session:
    """One training run: what stays the same from epoch to epoch."""

    def __init__(
        self,
        network: PlaceNetwork,
        photos: Photos,
        places: Places,
        recipe: Recipe,
        run: Path,
        announce: Announce,
    ) -> None:
        self.network, self.places, self.recipe, self.run = network, places, recipe, run
        self.paths, self.announce = photos.paths, announce
        self.spec = recipe.training
        if len(places) < 2:
            raise PlaceError(
                f"{len(places)} place(s) to tell apart; use more photos or smaller cells (cell=)"
            )
        torch.manual_seed(self.spec.seed)  # the prototypes' and a random projection's first values
        network.attach_places(torch.from_numpy(places.groups.astype(np.int64)))
        self.losses = [self._loss_of_group(rows) for rows in network.classifiers.members]
        network.scale = float(getattr(self.losses[0], "scale", network.scale))

    def _loss_of_group(self, members: Tensor) -> PriorLoss:
        counts = torch.from_numpy(self.places.counts)[members]
        return build_loss(self.recipe.loss.name, counts=counts, **self.recipe.loss.settings)

    def run_epochs(self, cache_folder: Path) -> Trained:
        began = time.monotonic()
        cache = self._cache(cache_folder)
        rows = np.flatnonzero((self.places.labels >= 0) & cache.readable)
        optimiser = self._optimiser()
        first, losses = load_progress(self.run, self.network, optimiser)
        if first == 0 and self.spec.start == "principal":
            start_from_frozen(self.network, cache, rows, self.places.labels[rows])
        show = self.announce("training")
        for epoch in range(first, self.spec.epochs):
            started = time.monotonic()
            losses.append(self._epoch(epoch, rows, cache, optimiser, show))
            self._log(epoch, losses[-1], time.monotonic() - started)
            save_progress(self.run, self.network, optimiser, epoch + 1, losses)
        self.network.eval()
        save_checkpoint(
            self.run / "model.safetensors",
            self.network,
            self.recipe.as_dict(),
            self.places.columns(),
        )
        return Trained(self.network, tuple(losses), cache.skipped, time.monotonic() - began)

    def _cache(self, folder: Path) -> TrunkCache:
        count = self.spec.views if self.spec.cached else 1
        views = ViewSettings(count, self.spec.augment, self.spec.flip, self.spec.seed)
        return cache_trunk(self.network, self.paths, views, folder, self.announce("frozen trunk"))

    def _optimiser(self) -> torch.optim.Optimizer:
        heads = list(self.network.classifiers.parameters())
        own = {id(p) for p in heads}
        body = [p for p in self.network.parameters() if p.requires_grad and id(p) not in own]
        return torch.optim.AdamW(
            [
                {"params": body, "lr": self.spec.lr, "peak": self.spec.lr},
                {"params": heads, "lr": self.spec.lr_classifier, "peak": self.spec.lr_classifier},
            ],
            weight_decay=self.spec.weight_decay,
        )

    def _epoch(
        self,
        epoch: int,
        rows: NDArray[np.int64],
        cache: TrunkCache,
        optimiser: torch.optim.Optimizer,
        show: Progress,
    ) -> float:
        """Train one group of places for one pass over its photos; return the mean loss."""
        group = epoch % len(self.network.classifiers)
        members = self.network.classifiers.members[group].numpy()
        local = np.full(len(self.places), -1, dtype=np.int64)
        local[members] = np.arange(len(members))
        rows = rows[local[self.places.labels[rows]] >= 0]
        generator = np.random.default_rng((self.spec.seed, epoch))
        chosen = rows[epoch_rows(self.places.labels[rows], self.spec.sampler, generator)]
        batches = split_batches(chosen, self.spec.batch)
        self.network.train()
        self.losses[group].set_epoch(epoch)
        total = 0.0
        for step, (batch, maps) in enumerate(self._maps(batches, cache, generator)):
            self._set_rates(optimiser, epoch + step / len(batches))
            labels = torch.from_numpy(local[self.places.labels[batch]])
            cosines = self.network.classifiers(self.network.describe(maps), group)
            loss: Tensor = self.losses[group](cosines, labels)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            total += float(loss.detach()) * len(batch)
            show(epoch * len(batches) + step + 1, self.spec.epochs * len(batches))
        return total / max(1, len(chosen))

    def _maps(
        self,
        batches: list[NDArray[np.int64]],
        cache: TrunkCache,
        generator: np.random.Generator,
    ) -> Iterator[tuple[NDArray[np.int64], Tensor]]:
        """The trunk's maps of each batch: from the cache, or from freshly cropped photos."""
        if self.spec.cached:
            for batch in batches:
                views = generator.integers(self.spec.views, size=len(batch))
                yield batch, cache.batch(batch, views)
            return
        draws = torch.Generator().manual_seed(int(generator.integers(2**62)))
        for batch in batches:
            for part in load_batches(
                self.paths, self.network.image_size, batch=len(batch), rows=batch.tolist()
            ):
                pixels = part.pixels
                if self.spec.augment:
                    pixels = random_views(pixels, draws, flip=self.spec.flip)
                yield np.array(part.rows), self.network.backbone.trunk(pixels)

    def _set_rates(self, optimiser: torch.optim.Optimizer, epoch: float) -> None:
        """Half a cosine from the peak to nothing, after half an epoch of warm-up."""
        share = 0.5 * (1 + math.cos(math.pi * epoch / max(1, self.spec.epochs)))
        for group in optimiser.param_groups:
            group["lr"] = group["peak"] * share * min(1.0, (epoch + 0.05) / 0.5)

    def _log(self, epoch: int, loss: float, seconds: float) -> None:
        if not math.isfinite(loss):
            raise PlaceError(f"the loss became {loss} in epoch {epoch}; lower lr or lr_classifier")
        group = epoch % len(self.losses)
        effect = self.losses[group].describe()
        line = {
            "epoch": epoch,
            "group": group,
            "loss": round(loss, 6),
            "seconds": round(seconds, 3),
            "sampler": self.spec.sampler,
            "weights": [round(edge, 4) for edge in effect.weights],
            "offsets": [round(edge, 4) for edge in effect.offsets],
        }
        with (self.run / "log.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
