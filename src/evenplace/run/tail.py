"""The tail layer: what is learned of the places where descriptors are given and no network trains.

Today a place's prototype is the mean direction of its photos, however many, and the scale that
makes probabilities of them is fitted.  Folds and the database go through the same function, so
whatever is learned here is rehearsed as it will be used.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.retrieval import Index
from evenplace.retrieval.build import index_descriptors


def lay_out(
    descriptors: Any,
    photos: Photos,
    places: Places,
    out: Path,
    *,
    model: str = "foreign",
    extra: Mapping[str, Any] | None = None,
    keep: str | int | None = None,
) -> Index:
    """Write an index of given descriptors.

    descriptors: (N, D) unit, read as they are needed.  extra, keep: as in `index_descriptors`.
    """
    return index_descriptors(descriptors, photos, places, out, model=model, extra=extra, keep=keep)
