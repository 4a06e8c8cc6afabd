"""Feature maps → one vector a photo; one aggregator a file."""

from evenplace.models.aggregators.gem import GeM

__all__ = ["GeM"]
