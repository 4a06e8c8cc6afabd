"""Every way to cut a map, by name: what a file of places says it was made with."""

from typing import Any

from evenplace.errors import unknown_name
from evenplace.places.grid import Grid
from evenplace.places.table import Rule

RULES: dict[str, type] = {"grid": Grid}


def make_rule(about: dict[str, Any]) -> Rule:
    """Make a rule again from what `Places.write` wrote about it."""
    settings = {key: value for key, value in about.items() if key != "name"}
    if about["name"] not in RULES:
        raise unknown_name("partition", about["name"], RULES)
    rule: Rule = RULES[about["name"]](**settings)
    return rule
