"""Training by comparing photos: P places times K photos a batch, or cliques of similar places.

CliqueMining's idea on our places: a place is drawn, then some of the places most similar to it;
among their photos, cliques, in which any two were taken within `reach` metres, become the batch's
places, and photos that are neither in a clique nor far from it are left out.

    B batch · n photos · C places · D descriptor · P places a batch · K photos of each
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from evenplace.arrays import Doubles, Floats, Ints, unit
from evenplace.training.batches import Step, city_batches, epoch_bunches, plain_step, split_batches
from evenplace.training.initialisation import place_means, set_place_means
from evenplace.training.objective import Objective, Setup, effect_of
from evenplace.training.softmax_objective import attach_groups, photos_of_places

_TRIES = 20
_SHARPNESS = 4  # at 1 and hundreds of places, those alike would hardly ever be drawn


class PairObjective(Objective):
    """A loss over the pairs of a batch; the classifiers are place means, made in the end.

    The prior is taken anew at each epoch, as the paper does for pairs: from the photos that are
    in training then, which are fewer once some have turned out unreadable.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup, self.labels = setup, setup.places.labels
        attach_groups(setup)
        setup.network.classifiers.requires_grad_(False)
        self.loss = setup.loss(photos_of_places(setup))

    def begin(self, epoch: int) -> bool:
        self.loss.update_counts(torch.from_numpy(photos_of_places(self.setup)))
        self.loss.set_epoch(epoch)
        return False

    def plan(self, epoch: int, round_: int) -> list[Step]:
        return self._steps(self._bunches(self.setup.dice(epoch)), self.setup.dice(epoch + 10**6))

    def _bunches(self, dice: np.random.Generator) -> list[list[Ints]]:
        """Batches of bunches: the photos of P places each."""
        spec, rows = self.setup.recipe.training, self.setup.rows
        size = max(2, spec.batch // spec.photos_per_place)
        wanted = spec.steps * size or None
        found = epoch_bunches(self.labels[rows], spec.sampler, dice, spec.photos_per_place, wanted)
        homes = self.setup.places.city[self.labels[rows[[one[0] for one in found]]]]
        if spec.within_city and homes.min() < homes.max():
            parts = city_batches(homes, size, dice)
        else:
            parts = split_batches(np.arange(len(found)), size)
        return [[rows[found[at]] for at in part] for part in parts]

    def _steps(self, batches: list[list[Ints]], dice: np.random.Generator) -> list[Step]:
        rows = [np.concatenate(bunches) for bunches in batches]
        return [plain_step(one, self.labels[one], self.setup.views(len(one), dice)) for one in rows]

    def __call__(self, descriptors: Tensor, labels: Tensor, step: Step) -> Tensor:
        loss: Tensor = self.loss(descriptors, labels)
        return loss

    def memory(self) -> nn.Module:
        return self.loss

    def effect(self, epoch: int) -> dict[str, Any]:
        return effect_of(self.loss)

    def finish(self) -> None:
        setup = self.setup
        set_place_means(setup.network, setup.source, setup.rows, setup.places)


class CliqueObjective(PairObjective):
    """CliqueMining (Izquierdo and Civera, 2024): every other batch is of places that look alike.

    The other batches are the usual ones, each place once; the authors add the losses of one
    batch of each kind, and taking turns gives the same gradient in two steps.  In a batch of
    cliques a clique is the place: its photos are positives though cells may part them.
    """

    def plan(self, epoch: int, round_: int) -> list[Step]:
        spec, mining = self.setup.recipe.training, self.setup.recipe.mining
        dice, rows = self.setup.dice(epoch), self.setup.rows
        size = max(2, spec.batch // spec.photos_per_place)
        labels = self.labels[rows]
        found = epoch_bunches(labels, "place", dice, spec.photos_per_place)
        usual = [[rows[one] for one in found[i : i + size]] for i in range(0, len(found), size)]
        usual = [batch for batch in usual if len(batch) > 1][: -(-spec.steps // 2) or None]
        look = self.setup.source.look
        seen = self.setup.choose(
            epoch, round_, lambda: {"centres": place_centres(look(rows), labels)}
        )
        positions = self.setup.photos.points[rows]
        steps: list[Step] = []
        for batch in usual:
            cliques = clique_batch(
                seen["centres"],
                positions,
                labels,
                dice,
                places=size,
                bunch=spec.photos_per_place,
                alike=mining.alike,
                reach=mining.reach,
            )
            steps += self._steps([batch], dice)
            if cliques:
                photos = rows[np.concatenate(cliques)]
                first = rows[[clique[0] for clique in cliques]]
                names = np.repeat(self.labels[first], list(map(len, cliques)))
                steps.append(plain_step(photos, names, self.setup.views(len(photos), dice)))
        return steps[: spec.steps or None]


def place_centres(descriptors: Floats, labels: Ints) -> Floats:
    """One unit vector a place that has photos, in the order of the places.  -> (C', D)."""
    _, which = np.unique(labels, return_inverse=True)
    count = int(which.max(initial=-1)) + 1
    return unit(place_means(torch.from_numpy(descriptors), torch.from_numpy(which), count).numpy())


def clique_batch(
    centres: Floats,
    positions: Doubles,
    labels: Ints,
    dice: np.random.Generator,
    *,
    places: int,
    bunch: int,
    alike: int,
    reach: float,
) -> list[Ints]:
    """Rows of up to `places` cliques of K photos, no two of them within `reach` of each other.

    A clique is called by the place of its first photo, whichever cells its photos lie in, and no
    two cliques by the same.  centres: (C', D) of the places that occur in labels.  positions:
    (n, 2) or (n, 3), labels: (n,).
    """
    names, which = np.unique(labels, return_inverse=True)
    found: dict[int, Ints] = {}
    free = np.ones(len(labels), bool)  # of photos near a clique of this batch
    for _ in range(_TRIES):
        seed = int(dice.integers(len(names)))
        chosen = np.append(similar_places(centres, seed, alike, dice), seed)
        rows = np.flatnonzero(np.isin(which, chosen) & free)
        for clique in cut_cliques(positions[rows], dice, bunch, reach):
            own = rows[clique]
            place = int(labels[own[0]])
            if place in found:
                continue
            found[place] = own
            for member in np.unique(own):
                free &= np.linalg.norm(positions - positions[member], axis=1) >= reach
            if len(found) == places:
                return list(found.values())
    return list(found.values())


def similar_places(centres: Floats, seed: int, alike: int, dice: np.random.Generator) -> Ints:
    """Draw places near the seed's descriptor, each in proportion to 1 / distance."""
    gap = np.sqrt(np.maximum(2 - 2 * centres @ centres[seed], 1e-6))
    odds = 1 / gap.astype(np.float64) ** _SHARPNESS
    odds[seed] = 0
    count = min(alike, int(np.count_nonzero(odds)))
    return dice.choice(len(centres), size=count, replace=False, p=odds / odds.sum())


def cut_cliques(
    positions: Doubles, dice: np.random.Generator, bunch: int, reach: float
) -> list[Ints]:
    """Grow cliques photo by photo; those near a finished one are left out.  Rows of K each.

    A clique of fewer than K photos repeats them, so that a place photographed twice takes part.
    """
    free = np.ones(len(positions), bool)
    found: list[Ints] = []
    for first in dice.permutation(len(positions)):
        if not free[first]:
            continue
        clique = [int(first)]
        near = np.linalg.norm(positions - positions[first], axis=1) < reach
        for other in dice.permutation(np.flatnonzero(near & free)):
            gaps = np.linalg.norm(positions[clique] - positions[other], axis=1)
            if other not in clique and gaps.max() < reach and len(clique) < bunch:
                clique.append(int(other))
        if len(clique) > 1:
            found.append(np.resize(np.array(clique), bunch))
        for member in clique:
            free &= np.linalg.norm(positions - positions[member], axis=1) >= reach
    return found
