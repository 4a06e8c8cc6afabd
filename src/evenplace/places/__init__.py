"""The map cut into classes; every way to cut it, by name."""

from typing import Any

from evenplace.errors import PlaceError, unknown_name
from evenplace.places.given import Given
from evenplace.places.grid import FocalGrid, Grid, GridGroups
from evenplace.places.intersection import Intersection
from evenplace.places.kdtree import KdTree
from evenplace.places.quadtree import Quadtree
from evenplace.places.table import Places, Rule
from evenplace.places.tiers import TIERS, query_tiers, tiers

__all__ = [
    "TIERS",
    "FocalGrid",
    "Given",
    "Grid",
    "GridGroups",
    "Intersection",
    "KdTree",
    "Places",
    "Quadtree",
    "make_partition",
    "make_rule",
    "query_tiers",
    "tiers",
]

RULES: dict[str, type] = {
    rule.name: rule for rule in (Grid, FocalGrid, KdTree, Quadtree, Intersection, Given)
}


def make_rule(about: dict[str, Any]) -> Rule:
    """Make a rule again from what `Places.write` wrote about it."""
    settings = {key: value for key, value in about.items() if key != "name"}
    if "parents" in settings:
        settings["parents"] = tuple(Places.from_plain(one) for one in settings["parents"])
    try:
        rule: Rule = make_partition(about["name"], **settings)
    except TypeError:
        raise PlaceError(
            f"the places were cut by another version's {about['name']}; cut them again"
        ) from None
    return rule


def make_partition(name: str, **settings: Any) -> Any:
    """A partition by name, for the command line: `make_partition("kd-tree", max_photos=100)`."""
    if name not in RULES:
        raise unknown_name("partition", name, RULES)
    return RULES[name](**settings)
