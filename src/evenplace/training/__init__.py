"""Photos + places → model."""

from evenplace.training.loop import Trained, train
from evenplace.training.recipe import Recipe, find_recipe, read_recipe, recipe_names

__all__ = ["Recipe", "Trained", "find_recipe", "read_recipe", "recipe_names", "train"]
