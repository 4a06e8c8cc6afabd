"""Query → hits."""

from evenplace.search.engine import Asked, Search, ask_photos
from evenplace.search.hits import Hit, Hits

__all__ = ["Asked", "Hit", "Hits", "Search", "ask_photos"]
