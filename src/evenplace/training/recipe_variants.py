"""A recipe changed as a whole: low-visit bias on any method, and a rehearsal before a long run."""

from dataclasses import replace
from typing import Any

import numpy as np

from evenplace.arrays import starts_of
from evenplace.errors import SettingError
from evenplace.losses import loss_settings, loss_takes
from evenplace.photos.table import Photos
from evenplace.training.recipe import Recipe
from evenplace.training.specs import LossSpec

# beta, kappa: the paper's are of its main text and supplement; ours hold up on photographs.
# A triplet's offset is a distance and a pair's a cosine, so kappa is small for both.
_STRENGTH = {
    ("recommended", "cosines"): {"beta": 0.25, "kappa": 0.5},
    ("recommended", "descriptors"): {"beta": 0.25, "kappa": 0.02},
    ("paper", "cosines"): {"beta": 0.01, "kappa": 0.05},
    ("paper", "descriptors"): {"beta": 0.01, "kappa": 0.01},
}
_BIASED = {
    "cosface": "low-visit-bias",
    "multi-similarity": "low-visit-bias-pairs",
}  # hosts whose biased form has a name of its own


def with_loss(recipe: Recipe, loss: str, preset: str = "recommended") -> Recipe:
    """The recipe with another loss; `low-visit-bias` takes the form that its own loss has.

    A softmax keeps its scale and margin, a loss on pairs its temperatures and miner; any other
    name replaces the loss, with that one's own settings.
    """
    if loss != "low-visit-bias":
        return replace(recipe, loss=LossSpec(loss), name=f"{recipe.name}+{loss}")
    host = recipe.loss
    strength: dict[str, Any] = dict(_STRENGTH[preset, loss_takes(host.name)])
    name = _BIASED.get(host.name, host.name)
    if name == "low-visit-bias-pairs" and preset == "recommended":
        strength["centred"] = True
    if not {"beta", "kappa"} <= loss_settings(name):
        raise SettingError(
            f"{host.name} has no low-visit-bias form; use a recipe with cross-entropy, cosface, "
            "arcface, aamc, multi-similarity, contrastive, triplet or sare"
        )
    settings = {**host.settings, **strength}
    return replace(recipe, loss=LossSpec(name, settings), name=f"{recipe.name}+lb")


_PHOTOS, _A_CELL = 96, 8  # photos, and of one cell at most: twelve cells or more


def rehearsal(recipe: Recipe) -> Recipe:
    """The recipe cut down to two epochs of two steps at most; for SFRS, two generations.

    Cells hold what a corner has: any number of photos, in all groups, of which there are few.
    """
    training = replace(
        recipe.training,
        epochs=min(recipe.training.epochs, 2),
        steps=2,
        batch=min(recipe.training.batch, 32),
        views=min(recipe.training.views, 2),
        milestones=(1.0,) if recipe.training.milestones else (),
    )
    mining = replace(recipe.mining, queries=16, refresh=8, pool=0, generations=2)
    places = replace(
        recipe.places,
        min_photos=1,
        max_photos=min(recipe.places.max_photos, _A_CELL),
        groups=min(recipe.places.groups, 2),
        groups_in_use=0,
    )
    return replace(recipe, training=training, mining=mining, places=places)


def corner(photos: Photos, cell: float = 20.0, count: int = _PHOTOS) -> Photos:
    """The photos nearest to the densest cell, a few of each cell: several places of several."""
    if len(photos) <= count:
        return photos
    positions = photos.points
    cells = np.floor(positions / cell).astype(np.int64)
    _, which, counts = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
    which = which.ravel()
    middle = positions[which == counts.argmax()].mean(axis=0)
    nearest = np.argsort(np.linalg.norm(positions - middle, axis=1), kind="stable")
    by_cell = nearest[np.argsort(which[nearest], kind="stable")]
    among = np.arange(len(photos)) - starts_of(counts)[which[by_cell]]
    few = np.zeros(len(photos), bool)
    few[by_cell[among < _A_CELL]] = True
    return photos[np.sort(nearest[few[nearest]][:count])]
