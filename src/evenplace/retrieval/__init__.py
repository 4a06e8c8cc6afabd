"""A database to files on disk (`build`, `update`), and a query to hits, which needs no torch."""

from evenplace.retrieval import spectrum
from evenplace.retrieval.answers import Answer, Batch, Hit, Hits, PlaceGuess
from evenplace.retrieval.index import Index, open_index, verify_index
from evenplace.retrieval.positions import Ellipse, Position
from evenplace.retrieval.search import Search

__all__ = [
    "Answer",
    "Batch",
    "Ellipse",
    "Hit",
    "Hits",
    "Index",
    "PlaceGuess",
    "Position",
    "Search",
    "open_index",
    "spectrum",
    "verify_index",
]
