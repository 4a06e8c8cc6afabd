"""A rehearsal: two iterations of everything, on a corner of the map, before the long run."""

from dataclasses import replace

import numpy as np

from evenplace.photos.table import Photos
from evenplace.training.recipe import Recipe

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
    among = np.arange(len(photos)) - np.append(0, np.cumsum(counts))[which[by_cell]]
    few = np.zeros(len(photos), bool)
    few[by_cell[among < _A_CELL]] = True
    return photos[np.sort(nearest[few[nearest]][:count])]
