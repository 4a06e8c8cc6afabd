"""A town of coloured dots that trains in seconds, and a network to match."""

from pathlib import Path

import numpy as np

from evenplace.networks.methods import NetworkSpec
from evenplace.networks.network import PlaceNetwork, build_network
from evenplace.photos import Photos, read_photos
from evenplace.training.loop import Trained, train
from evenplace.training.recipe import Recipe, cut_places
from tests.drawn import draw_photos

SPEC = NetworkSpec(image_size=32, dim=16, cut=8)
QUICK = ["epochs=2", "batch=16", "lr=0.001"]


def draw_town(folder: Path, photos: int = 48, side: float = 80.0) -> Photos:
    """Photos at random spots of a square; a cell's photos share their colours."""
    draw_photos(folder, np.random.default_rng(0).uniform(0, side, (photos, 2)))
    return read_photos(folder)


def small_network(spec: NetworkSpec = SPEC) -> PlaceNetwork:
    return build_network(spec)


def quick_run(town: Photos, run: Path, *settings: str, name: str = "") -> Trained:
    """Train on the town with a recipe's settings changed."""
    recipe = Recipe().changed([*QUICK, *settings])
    return train(small_network(), town, cut_places(recipe.places, town), recipe, run)
