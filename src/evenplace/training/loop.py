"""Photos and places → a trained model, resumable at any moment, chosen on held-out photos.

With `validation` a share of the spots is held out, the best epoch is found on them, and, with
`refit`, a second training takes all photos for as many epochs.
"""

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from evenplace.arrays import Ints
from evenplace.describe.describer import Progress
from evenplace.describe.torch_engine import choose_device, choose_precision, weight_type
from evenplace.errors import PlaceError, RunError, SettingError
from evenplace.networks.checkpoints import save_checkpoint
from evenplace.networks.network import PlaceNetwork
from evenplace.photos.files import only_writer, sweep_drafts, write_json
from evenplace.photos.table import Photos, Skipped
from evenplace.places.table import Places
from evenplace.training.augment import Augmentation
from evenplace.training.distributed import Ranks, join_ranks
from evenplace.training.fit import Session
from evenplace.training.objective import Setup
from evenplace.training.photo_source import PhotoSource
from evenplace.training.progress import claim_run, has_progress
from evenplace.training.recipe import Recipe, read_recipe
from evenplace.training.trunk_cache import TrunkCache, ViewSettings, cache_trunk
from evenplace.training.validation import HeldOut, Recall, hold_out, without

Announce = Callable[[str], Progress]


@dataclass(frozen=True)
class Trained:
    """What training leaves: the network, its losses epoch by epoch, and the photos left out.

    recall: what the best epoch found of the held-out photos; None where none were held out.
    """

    network: PlaceNetwork
    losses: tuple[float, ...]
    skipped: tuple[Skipped, ...]
    seconds: float
    recall: Recall | None = None


@dataclass(frozen=True)
class Validated:
    """A fit that has not seen some photos, for whoever wants to measure on them.

    places: those it knows, with the labels of `photos`.
    """

    network: PlaceNetwork
    photos: Photos
    places: Places
    held_out: Photos
    recall: Recall


def train(
    network: PlaceNetwork,
    photos: Photos,
    places: Places,
    recipe: Recipe | str | Path,
    run: str | Path,
    *,
    cache_folder: Path | None = None,
    announce: Announce | None = None,
    device: str = "auto",
    on_validated: Callable[[Validated], None] | None = None,
) -> Trained:
    """Train a network on photos and their places, leaving a run folder that can be searched.

    recipe: one, or the name or path of one; its [network] and [places] are what the caller
    already built.  run/ gets recipe.toml, places.parquet, model.safetensors, log.jsonl and
    skipped.json, with validation also validation.parquet, the photos held out, and
    training.parquet, the others.  A run that was stopped is taken up where it was; the trunk's
    cache goes to `cache_folder`, by default inside the run, and can be shared between runs.
    on_validated: called with the fit that has not seen the held-out photos, before it is
    refitted on all of them.
    """
    recipe = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
    recipe, run = replace(recipe, network=network.spec), Path(run)
    if len(places) < 2:
        raise PlaceError(
            f"{len(places)} place(s) to tell apart; use more photos or smaller cells (cell=)"
        )
    ranks = join_ranks(device)
    trainer = _Trainer(
        photos=photos,
        recipe=recipe,
        run=run,
        cache_folder=cache_folder or run / "cache",
        announce=announce or (lambda _: lambda done, total: None),
        precision=_settle_in(network, choose_device(device, ranks.local), recipe),
        ranks=ranks,
        on_validated=on_validated,
    )
    with _only_training(run, ranks):
        trained = trainer.train(network, places)
    network.to("cpu", torch.float32)
    return trained


def _settle_in(network: PlaceNetwork, home: torch.device, recipe: Recipe) -> torch.dtype:
    """Move a network to where it trains, and say in which precision that is."""
    precision = choose_precision(recipe.training.precision, home)
    network.to(home, weight_type(precision))
    if home.type == "cuda":
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return precision


@contextmanager
def _only_training(run: Path, ranks: Ranks) -> Iterator[None]:
    """Hold the run folder, swept of what a killed training left; rank 0 does for all."""
    with ExitStack() as held:

        def enter() -> None:
            held.enter_context(only_writer(run / ".lock", RunError))
            for folder in (run, run / "validation"):
                sweep_drafts(folder)

        ranks.lead(enter)
        yield


@dataclass(frozen=True)
class _Trainer:
    """One run folder and what goes into it."""

    photos: Photos
    recipe: Recipe
    run: Path
    cache_folder: Path
    announce: Announce
    precision: torch.dtype
    ranks: Ranks
    on_validated: Callable[[Validated], None] | None

    def train(self, network: PlaceNetwork, places: Places) -> Trained:
        began, spec = time.monotonic(), self.recipe.training
        epochs, recall = spec.epochs, None
        held: HeldOut | None = None
        if spec.validation:
            rows = hold_out(self.photos, spec.validation, spec.seed)
            fewer = without(places, rows)
            held = HeldOut(self.photos, fewer, rows)
            self._claim(self.run, places if spec.refit else fewer)
            self._write_once(rows)
            if spec.refit:
                trial = copy.deepcopy(network)
                first = self._fit(trial, fewer, self.run / "validation", held, epochs)
                epochs, recall, held = first.best, first.recall, None
                if not has_progress(self.run):
                    self._tell(trial, fewer, rows, recall)
            else:
                places = fewer
        session = self._fit(network, places, self.run, held, epochs)
        if session.recall is not None:
            recall = session.recall
            self._tell(network, places, rows, recall)
        skipped = session.setup.source.skipped
        if self.ranks.first:
            self._leave(network, places, skipped)
        self.ranks.wait()
        losses = tuple(session.position.losses)
        return Trained(network, losses, skipped, time.monotonic() - began, recall)

    def _fit(
        self, network: PlaceNetwork, places: Places, run: Path, held: HeldOut | None, epochs: int
    ) -> Session:
        self._claim(run, places)
        fresh, ranks = not has_progress(run), self.ranks
        ranks.wait()
        source = PhotoSource(
            network,
            self.photos.paths,
            cache=self._cache(network) if self.recipe.training.cached else None,
            how=self._how,
            ranks=ranks,
            train_size=self.recipe.training.train_size,
            precision=self.precision,
            pooled_in=self._freeze_all_but_projection(network, run),
        )
        setup = Setup(self.recipe, network, self.photos, places, source, ranks, run, fresh)
        show = self.announce("training" if held is None else "training, some photos held out")
        session = Session(setup, held, show)
        session.fit(epochs)
        return session

    def _freeze_all_but_projection(self, network: PlaceNetwork, run: Path) -> Path | None:
        """Where to keep what the projection sees, if it alone trains."""
        if not self.recipe.training.projection_only:
            return None
        backbone = network.backbone
        if backbone.cut < len(backbone.stages):
            raise SettingError(
                f"projection_only=true, but the network trains from stage {backbone.cut} on; "
                f"use cut={len(backbone.stages)}"
            )
        network.aggregator.requires_grad_(False)
        return run

    def _claim(self, run: Path, places: Places) -> None:
        self.ranks.lead(lambda: claim_run(run, self.recipe, places))

    def _cache(self, network: PlaceNetwork) -> TrunkCache:
        """Rank 0 makes it, the others wait and read."""
        views = ViewSettings(self.recipe.training.views, self.recipe.training.seed, self._how)
        paths, folder = self.photos.paths, self.cache_folder
        show = self.announce("frozen trunk")
        self.ranks.lead(lambda: cache_trunk(network, paths, views, folder, show))
        return cache_trunk(network, paths, views, folder)

    @property
    def _how(self) -> Augmentation | None:
        spec = self.recipe.training
        how = Augmentation(spec.crop, spec.jitter, spec.hue, spec.flip, spec.randaugment)
        return how if spec.augment else None

    def _tell(
        self, network: PlaceNetwork, places: Places, rows: Ints, recall: Recall | None
    ) -> None:
        if self.on_validated is None or recall is None:
            return
        kept = np.ones(len(self.photos), bool)
        kept[rows] = False
        known = replace(places, labels=places.labels[kept])
        home = network.device
        network.cpu()
        self.on_validated(Validated(network, self.photos[kept], known, self.photos[rows], recall))
        network.to(home)

    def _write_once(self, rows: Ints) -> None:
        if self.ranks.first:
            others = np.delete(np.arange(len(self.photos)), rows)
            self.photos[rows].write(self.run / "validation.parquet")
            self.photos[others].write(self.run / "training.parquet")

    def _leave(self, network: PlaceNetwork, places: Places, skipped: tuple[Skipped, ...]) -> None:
        listed = [vars(one) for one in skipped]
        write_json(self.run / "skipped.json", listed, indent=1)
        save_checkpoint(
            self.run / "model.safetensors", network, self.recipe.as_dict(), places.columns()
        )
