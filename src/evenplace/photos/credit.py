"""Whose photo it is, and under which licence: what open imagery asks to be said beside it."""

from evenplace.photos.table import Photos

PRODUCER, LICENCE = "producer", "licence"


def credit_of(photos: Photos, row: int) -> str:
    """As in "Jane, CC-BY-SA-4.0"; empty where nobody asks for it."""
    kept = photos.table.column_names
    told = (photos.table.column(name)[row].as_py() for name in (PRODUCER, LICENCE) if name in kept)
    return ", ".join(str(one) for one in told if one)
