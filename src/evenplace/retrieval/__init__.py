"""A database to files on disk (`build`, `update`), and a query to hits, which needs no torch."""

from evenplace.retrieval import spectrum
from evenplace.retrieval.engine import Batch, Search
from evenplace.retrieval.hits import Answer, Ellipse, Hit, Hits, PlaceGuess, Position
from evenplace.retrieval.index import Index, open_index, verify_index
from evenplace.retrieval.photo_queries import Asked, ask_photos

__all__ = [
    "Answer",
    "Asked",
    "Batch",
    "Ellipse",
    "Hit",
    "Hits",
    "Index",
    "PlaceGuess",
    "Position",
    "Search",
    "ask_photos",
    "open_index",
    "spectrum",
    "verify_index",
]
