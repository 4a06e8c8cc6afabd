"""Query → hits."""

from evenplace.index import spectrum
from evenplace.search.asking import Asked, ask_photos
from evenplace.search.engine import Search
from evenplace.search.hits import Answer, Ellipse, Hit, Hits, PlaceGuess, Position

__all__ = [
    "Answer",
    "Asked",
    "Ellipse",
    "Hit",
    "Hits",
    "PlaceGuess",
    "Position",
    "Search",
    "ask_photos",
    "spectrum",
]
