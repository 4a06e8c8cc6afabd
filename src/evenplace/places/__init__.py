"""The map cut into classes."""

from evenplace.places.grid import Grid, GridGroups
from evenplace.places.table import Places
from evenplace.places.tiers import TIERS, query_tiers, tiers

__all__ = ["TIERS", "Grid", "GridGroups", "Places", "query_tiers", "tiers"]
