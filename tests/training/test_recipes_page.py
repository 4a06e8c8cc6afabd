"""The page of recipes says of each what its file says, and of every published system something."""

import re
from pathlib import Path

import pytest

from evenplace.networks.methods import METHODS
from evenplace.training.recipe import read_recipe

PAGE = (Path(__file__).parents[2] / "docs/recipes.md").read_text()
SECTIONS = {
    part.partition("\n")[0]: part.partition("\n")[2]
    for part in re.split(r"^## ", PAGE, flags=re.M)[1:]
}
OURS = {
    "dapr-m",
    "dapr-m-bands",
    "dapr-c",
    "dapr-c-salad",
    "dapr-c-boq",
    "cosface",
    "cross-entropy",
}


@pytest.mark.parametrize("name", SECTIONS)
def test_each_setting_of_the_page_is_the_recipe_s(name: str) -> None:
    recipe = read_recipe(name)
    rows = [row.split(" | ") for row in SECTIONS[name].splitlines() if row.startswith("| ")][1:]
    assert rows
    for _, settings, _ in rows:
        found = re.findall(r"`([^`]+)`", settings)
        assert found
        for setting in found:
            assert recipe.changed([setting]) == recipe, setting


def test_every_system_of_other_people_is_on_the_page() -> None:
    published = {name for name in METHODS if not name.endswith("-small")} - OURS
    assert published == set(SECTIONS)
