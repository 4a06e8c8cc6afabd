"""Photos + places → model."""

from evenplace.training.loop import Trained, Validated, train
from evenplace.training.partition import cut_places
from evenplace.training.recipe import Recipe, find_recipe, read_recipe, recipe_names

__all__ = [
    "Recipe",
    "Trained",
    "Validated",
    "cut_places",
    "find_recipe",
    "read_recipe",
    "recipe_names",
    "train",
]
