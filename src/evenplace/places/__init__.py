"""The map cut into classes; every way to cut it, by name."""

from evenplace.places.given import Given
from evenplace.places.grid import FocalGrid, Grid, GridGroups
from evenplace.places.intersection import Intersection
from evenplace.places.kdtree import KdTree
from evenplace.places.maps import RULES, make_partition
from evenplace.places.quadtree import Quadtree
from evenplace.places.table import Places
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
    "query_tiers",
    "tiers",
]

RULES |= {rule.name: rule for rule in (Grid, FocalGrid, KdTree, Quadtree, Intersection, Given)}
