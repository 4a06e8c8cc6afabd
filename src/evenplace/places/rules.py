"""Every way to cut a map, by name: what a file of places says it was made with."""

from typing import Any

from evenplace.errors import unknown_name
from evenplace.places.focal import FocalGrid
from evenplace.places.given import Given
from evenplace.places.grid import Grid
from evenplace.places.intersection import Intersection
from evenplace.places.kdtree import KdTree
from evenplace.places.quadtree import Quadtree
from evenplace.places.table import Places, Rule

RULES: dict[str, type] = {
    rule.name: rule for rule in (Grid, FocalGrid, KdTree, Quadtree, Intersection, Given)
}


def make_rule(about: dict[str, Any]) -> Rule:
    """Make a rule again from what `Places.write` wrote about it."""
    settings = {key: value for key, value in about.items() if key != "name"}
    if about["name"] not in RULES:
        raise unknown_name("partition", about["name"], RULES)
    if "parents" in settings:
        settings["parents"] = tuple(Places.from_plain(one) for one in settings["parents"])
    rule: Rule = RULES[about["name"]](**settings)
    return rule


def make_partition(name: str, **settings: Any) -> Any:
    """A partition by name, for the command line: `make_partition("kd-tree", max_photos=100)`."""
    if name not in RULES:
        raise unknown_name("partition", name, RULES)
    return RULES[name](**settings)
