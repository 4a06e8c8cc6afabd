"""Database → files on disk."""

from evenplace.index.build import build_index, fingerprint, index_descriptors
from evenplace.index.layout import Index, open_index, verify_index

__all__ = ["Index", "build_index", "fingerprint", "index_descriptors", "open_index", "verify_index"]
