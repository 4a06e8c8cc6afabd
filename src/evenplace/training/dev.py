"""A rehearsal: two iterations of everything, on a corner of the map, before the long run."""

from dataclasses import replace

import numpy as np

from evenplace.photos.table import Photos
from evenplace.training.recipe import Recipe

_PHOTOS = 96


def rehearsal(recipe: Recipe) -> Recipe:
    """The recipe cut down to two epochs of two steps; for SFRS, two generations."""
    training = replace(
        recipe.training,
        epochs=2,
        steps=2,
        batch=min(recipe.training.batch, 32),
        views=min(recipe.training.views, 2),
        milestones=(1.0,) if recipe.training.milestones else (),
    )
    mining = replace(recipe.mining, queries=16, refresh=8, pool=0, generations=2)
    places = replace(recipe.places, min_photos=1)
    return replace(recipe, training=training, mining=mining, places=places)


def corner(photos: Photos, count: int = _PHOTOS) -> Photos:
    """The photos nearest to the densest spot, so that places have several."""
    if len(photos) <= count:
        return photos
    positions = photos.points
    cells = np.floor(positions / 20).astype(np.int64)
    _, which, counts = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
    middle = positions[which.ravel() == counts.argmax()].mean(axis=0)
    away = np.linalg.norm(positions - middle, axis=1)
    return photos[np.sort(np.argsort(away, kind="stable")[:count])]
