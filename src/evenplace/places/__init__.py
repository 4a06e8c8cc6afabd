"""The map cut into classes."""

from evenplace.places.focal import FocalGrid
from evenplace.places.given import Given
from evenplace.places.grid import Grid, GridGroups
from evenplace.places.intersection import Intersection
from evenplace.places.kdtree import KdTree
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
    "query_tiers",
    "tiers",
]
