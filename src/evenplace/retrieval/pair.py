"""A database laid out twice, in the same order: for the network that finds places, and for the
one that ranks their photos.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evenplace.describe.describer import Progress
from evenplace.describe.paired import PairedNetwork
from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.retrieval.build import (
    describe_database,
    fingerprint,
    index_described,
    index_descriptors,
    photos_of,
)
from evenplace.retrieval.layout import Index


def index_pair(
    pair: PairedNetwork,
    photos: Photos,
    places: Places,
    out: Path,
    ranking: Path,
    *,
    spectra: Sequence[str] = (),
    parts_folder: Path | None = None,
    progress: Progress | None = None,
) -> Index:
    """Describe a database with both networks at once; a photo is in both indexes or in neither.

    The index that ranks is written first, so whoever waits for the other finds both new.
    spectra, parts_folder: as in `build_index`.
    """
    described = describe_database(pair, photos.paths, parts_folder=parts_folder, progress=progress)
    first, second = pair.split(described.descriptors)
    index_descriptors(
        second,
        photos_of(described, photos),
        places,
        ranking,
        model=fingerprint(pair.describer),
        spectra=spectra,
    )
    return index_described(
        pair.classifier, replace(described, descriptors=first), photos, places, out
    )
