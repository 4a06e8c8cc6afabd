"""Database → files on disk."""

from evenplace.index.build import build_index, fingerprint, index_descriptors
from evenplace.index.layout import Index, open_index, verify_index
from evenplace.index.update import add_photos, compact_index, remove_photos, replace_photos

__all__ = [
    "Index",
    "add_photos",
    "build_index",
    "compact_index",
    "fingerprint",
    "index_descriptors",
    "open_index",
    "remove_photos",
    "replace_photos",
    "verify_index",
]
