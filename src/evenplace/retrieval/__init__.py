"""A database to files on disk, and a query to hits."""

from evenplace.retrieval import spectrum
from evenplace.retrieval.asking import Asked, ask_photos
from evenplace.retrieval.build import build_index, index_descriptors
from evenplace.retrieval.engine import Batch, Search
from evenplace.retrieval.hits import Answer, Ellipse, Hit, Hits, PlaceGuess, Position
from evenplace.retrieval.index import Index, open_index, verify_index
from evenplace.retrieval.update import add_photos, remove_photos, replace_photos

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
    "add_photos",
    "ask_photos",
    "build_index",
    "index_descriptors",
    "open_index",
    "remove_photos",
    "replace_photos",
    "spectrum",
    "verify_index",
]
