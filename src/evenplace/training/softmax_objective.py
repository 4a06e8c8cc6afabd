"""Training by classification: one group of places an epoch, two views, or several levels.

B batch · C places · L levels · G groups
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from evenplace.arrays import Ints
from evenplace.errors import SettingError
from evenplace.losses import Columns
from evenplace.networks.classifiers import GroupClassifiers, LevelClassifiers
from evenplace.places import FocalGrid, Places
from evenplace.training.batches import Step, epoch_rows, plain_step, split_batches
from evenplace.training.initialisation import fit_if_needed, set_place_means, start_from_frozen
from evenplace.training.objective import Objective, Setup, effect_of


def attach_groups(setup: Setup) -> GroupClassifiers:
    """Give each place a prototype: random, or where its photos are before the first step."""
    torch.manual_seed(setup.recipe.training.seed)  # the prototypes' and a projection's first values
    setup.network.attach_places(torch.from_numpy(setup.places.groups.astype(np.int64)))
    begin_at_photos(setup)
    assert isinstance(setup.network.classifiers, GroupClassifiers)
    return setup.network.classifiers


def begin_at_photos(setup: Setup) -> None:
    """Start clusters, projection and prototypes from the photos, unless a run is taken up."""
    if not setup.fresh:
        return
    fit_if_needed(setup.network, setup.source, setup.rows)
    if setup.recipe.training.start == "principal":
        start_from_frozen(setup.network, setup.source, setup.rows, setup.places.labels[setup.rows])


class SoftmaxObjective(Objective):
    """One softmax a group of places, the groups in turn, an epoch each (CosPlace, D&C, DAPR).

    With several ranks, each holds and trains its part of the prototypes: 110,000 places of 512
    numbers are 225 MB, and Adam's moments twice that; dealt to eight ranks, 84 MB each, and a
    step multiplies by an eighth of the matrix.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._hold(attach_groups(setup), setup.places.counts)
        setup.network.scale = float(getattr(self.losses[0], "scale", setup.network.scale))

    def _hold(self, classifiers: GroupClassifiers, counts: NDArray[np.integer[Any]]) -> None:
        """A softmax and its loss for each group.  counts: photos of each class of them all."""
        self.classifiers, self.sharded = classifiers, self.setup.ranks.count > 1
        self.members = [rows.numpy() for rows in classifiers.members]
        self.losses = [self.setup.loss(counts[rows]) for rows in self.members]
        whole = list(classifiers.prototypes)
        self.prototypes = self._own_parts(whole) if self.sharded else whole

    def _own_parts(self, prototypes: list[nn.Parameter]) -> list[nn.Parameter]:
        """What this rank trains of each group; the whole is filled at the end."""
        ranks, smallest = self.setup.ranks, min(map(len, prototypes))
        if smallest < ranks.count:
            raise SettingError(
                f"a group of {smallest} place(s) cannot be dealt to {ranks.count} ranks; "
                "use fewer ranks or fewer groups"
            )
        self.classifiers.requires_grad_(False)
        parts = [slice(*ranks.edges(len(whole))) for whole in prototypes]
        return [
            nn.Parameter(whole.detach()[part].clone())
            for whole, part in zip(prototypes, parts, strict=True)
        ]

    def begin(self, epoch: int) -> bool:
        for loss in self.losses:
            loss.set_epoch(epoch)
        if self.setup.source.known:  # photos turned out unreadable: w and nu of those that remain
            for loss, counts in zip(self.losses, self.counts(), strict=True):
                if counts.any():
                    loss.update_counts(torch.from_numpy(counts))
        return False

    def counts(self) -> list[Ints]:
        """Photos of each class of each softmax, of those in training now."""
        found = photos_of_places(self.setup)
        return [found[rows] for rows in self.members]

    def plan(self, epoch: int, round_: int) -> list[Step]:
        spec, places = self.setup.recipe.training, self.setup.places
        head = epoch % len(self.members)
        local = numbering(self.members[head], len(places))
        rows = self.setup.rows
        rows = rows[local[places.labels[rows]] >= 0]
        own = local[places.labels[rows]]
        return _deal(self.setup, rows, own, self.setup.dice(epoch), spec.batch, head)

    def __call__(self, descriptors: Tensor, labels: Tensor, step: Step) -> Tensor:
        heads = np.unique(step.heads)
        if len(heads) == 1:
            return self._loss(descriptors, labels, int(heads[0]))
        parts = []
        for head in heads.tolist():
            rows = torch.from_numpy(np.flatnonzero(step.heads == head)).to(descriptors.device)
            parts.append(self._loss(descriptors[rows], labels[rows], head))
        return torch.stack(parts).sum()

    def _loss(self, descriptors: Tensor, labels: Tensor, head: int) -> Tensor:
        cosines = descriptors @ F.normalize(self.prototypes[head], dim=1).T  # (B, S)
        columns = []
        if self.sharded:
            ranks = self.setup.ranks
            here = torch.arange(*ranks.edges(len(self.members[head])), device=descriptors.device)
            columns.append(Columns(here, group=ranks.group))
        loss: Tensor = self.losses[head](cosines, labels, *columns)
        return loss

    def parameters(self) -> list[nn.Parameter]:
        return self.prototypes

    def shards(self) -> Mapping[str, nn.Parameter]:
        if not self.sharded:
            return {}
        return {f"shard.{number}": one for number, one in enumerate(self.prototypes)}

    def memory(self) -> nn.Module:
        return nn.ModuleList(self.losses)

    def effect(self, epoch: int) -> dict[str, Any]:
        head = epoch % len(self.losses)
        return {"group": head, **effect_of(self.losses[head])}

    @torch.no_grad()
    def finish(self) -> None:
        if self.sharded:
            for whole, part in zip(self.classifiers.prototypes, self.prototypes, strict=True):
                whole.copy_(self.setup.ranks.gather(part.detach()))


class FocalObjective(SoftmaxObjective):
    """EigenPlaces: each step half photos that look across the street, half along it.

    The two partitions share nothing but the network; their classifiers are thrown away in the
    end, and a place of the run is a cell whose prototype is its photos' mean.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        attach_groups(setup)
        setup.network.classifiers.requires_grad_(False)
        views = [focal_view(setup, name) for name in ("lateral", "frontal")]
        self.labels = [view.labels for view in views]  # (N,) each, -1 where a photo looks away
        groups, shifts = [], [0]
        for view in views:
            groups.append(np.unique(view.groups, return_inverse=True)[1] + shifts[-1])
            shifts.append(shifts[-1] + len(np.unique(view.groups)))
        self.shifts = shifts
        self.starts = np.cumsum([0, *(len(view) for view in views)])
        own = GroupClassifiers(torch.from_numpy(np.concatenate(groups)), setup.network.dim)
        counts = np.concatenate([view.counts for view in views])
        self._hold(own.to(setup.network.anchor), counts)

    def counts(self) -> list[Ints]:
        seen = [labels[self.setup.rows] for labels in self.labels]
        sizes = np.diff(self.starts)
        found = np.concatenate(
            [np.bincount(one[one >= 0], minlength=n) for one, n in zip(seen, sizes, strict=True)]
        )
        return [found[rows] for rows in self.members]

    def plan(self, epoch: int, round_: int) -> list[Step]:
        dice = self.setup.dice(epoch)
        halves = [self._half(view, epoch, dice) for view in range(len(self.labels))]
        return [_join([half[at % len(half)] for half in halves if half])
                for at in range(max(map(len, halves)))]  # fmt: skip

    def _half(self, view: int, epoch: int, dice: np.random.Generator) -> list[Step]:
        spec = self.setup.recipe.training
        heads = range(self.shifts[view], self.shifts[view + 1])
        if not len(heads):
            return []
        head = heads[epoch % len(heads)]
        local = numbering(self.members[head], int(self.starts[-1]))
        labels = self.labels[view]
        rows = self.setup.rows
        rows = rows[labels[rows] >= 0]
        own = local[labels[rows] + self.starts[view]]
        rows, own = rows[own >= 0], own[own >= 0]
        return _deal(self.setup, rows, own, dice, max(1, spec.batch // 2), head)

    def shards(self) -> Mapping[str, nn.Parameter]:
        return {f"shard.{number}": one for number, one in enumerate(self.prototypes)}

    def finish(self) -> None:
        set_place_means(self.setup.network, self.setup.source, self.setup.rows, self.setup.places)


def focal_view(setup: Setup, view: str) -> Places:
    """One of the two views of EigenPlaces, cut out of the photos that train."""
    spec, rows = setup.recipe.places, setup.rows
    rule = FocalGrid(
        view,
        cell=spec.cell,
        groups=spec.groups,
        min_photos=spec.min_photos,
        tolerance=spec.tolerance if np.isfinite(setup.photos.heading).any() else None,
    )
    cut = rule.partition(setup.photos[rows])
    labels = np.full(len(setup.photos), -1, np.int64)
    labels[rows] = cut.labels
    return replace(cut, labels=labels)


class LevelObjective(SoftmaxObjective):
    """One softmax a partition, all of them in every step (HGE, CPlaNet).

    Every rank holds all levels: coarse ones are few.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        torch.manual_seed(setup.recipe.training.seed)
        self.parents = place_parents(setup)  # (L, C)
        combine = "product" if setup.recipe.places.rule == "hierarchy" else "sum"
        setup.network.attach_levels(torch.from_numpy(self.parents), combine)
        levels = setup.network.classifiers
        assert isinstance(levels, LevelClassifiers)
        self.levels = levels
        begin_at_photos(setup)
        self.losses = [setup.loss(counts) for counts in self._summed(setup.places.counts)]
        setup.network.scale = float(getattr(self.losses[0], "scale", setup.network.scale))

    def counts(self) -> list[Ints]:
        return self._summed(photos_of_places(self.setup))

    def _summed(self, counts: NDArray[np.integer[Any]]) -> list[Ints]:
        """Photos of each class of each level.  counts: (C,) of the places."""
        return [np.bincount(row, counts).astype(np.int64) for row in self.parents]

    def plan(self, epoch: int, round_: int) -> list[Step]:
        rows, batch = self.setup.rows, self.setup.recipe.training.batch
        labels = self.setup.places.labels[rows]
        return _deal(self.setup, rows, labels, self.setup.dice(epoch), batch)

    def __call__(self, descriptors: Tensor, labels: Tensor, step: Step) -> Tensor:
        own = self.levels.parents[:, labels]
        parts = [
            loss(self.levels(descriptors, level), own[level])
            for level, loss in enumerate(self.losses)
        ]
        return torch.stack(parts).sum()

    def parameters(self) -> list[nn.Parameter]:
        return list(self.levels.parameters())

    def shards(self) -> Mapping[str, nn.Parameter]:
        return {}

    def finish(self) -> None:
        """The levels are in the network, and say for themselves what a place scores."""


def place_parents(setup: Setup) -> Ints:
    """The class of each place at each level, classes without photos left out.  -> (L, C)."""
    places = setup.places
    if setup.recipe.places.rule == "intersection":
        table = places.ids.T + (places.home.astype(np.int64) << 40)  # rows of one map
    else:
        coarse = [places.extra[name] for name in sorted(places.extra) if name.startswith("level")]
        table = np.stack([*coarse, np.arange(len(places))])
    return np.stack([np.unique(row, return_inverse=True)[1] for row in table]).astype(np.int64)


def photos_of_places(setup: Setup) -> Ints:
    """Photos of each place, of those in training now.  -> (C,)."""
    labels = setup.places.labels[setup.rows]
    return np.bincount(labels, minlength=len(setup.places)).astype(np.int64)


def numbering(members: Ints, places: int) -> Ints:
    """Which row of its group each place is, -1 for places of other groups.  -> (C,)."""
    local = np.full(places, -1, np.int64)
    local[members] = np.arange(len(members))
    return local


def _deal(
    setup: Setup, rows: Ints, own: Ints, dice: np.random.Generator, batch: int, head: int = 0
) -> list[Step]:
    """Batches of an epoch for one softmax.  rows, own: (n,) the photos and their classes in it."""
    spec = setup.recipe.training
    chosen = epoch_rows(own, spec.sampler, dice, spec.steps * batch or None)
    return [
        plain_step(rows[part], own[part], setup.views(len(part), dice), head)
        for part in split_batches(chosen, batch)
    ]


def _join(steps: list[Step]) -> Step:
    parts = [np.concatenate([getattr(s, name) for s in steps]) for name in
             ("rows", "views", "labels", "heads")]  # fmt: skip
    return Step(*parts)
