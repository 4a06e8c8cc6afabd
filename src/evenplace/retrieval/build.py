"""Photos, or anybody's descriptors → an index, written whole or not at all.

N photos · C places · D descriptor
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evenplace.describe.describer import Described
from evenplace.describe.parts import Parts
from evenplace.networks.classifiers import GroupClassifiers, LevelClassifiers
from evenplace.networks.fingerprint import fingerprint
from evenplace.networks.network import PlaceNetwork
from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.retrieval.generation import write_first
from evenplace.retrieval.index import Index, open_index
from evenplace.retrieval.levels import Levels
from evenplace.retrieval.manifest import Manifest, next_generation, writing
from evenplace.retrieval.prototypes import mark_means, reach

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
SCALE = 30.0


def index_described(
    network: PlaceNetwork,
    descriptors: Any,
    photos: Photos,
    places: Places,
    out: Path,
    *,
    raw: bool = False,
    own: bool = False,
    spectra: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
    keep: str | int | None = None,
) -> Index:
    """Lay out what a network has described.

    Its prototypes find the places; one that knows no places, and only ranks, gets their means, and
    so do cities that nobody trained in (`reach`).  own: the database's places everywhere.
    descriptors, photos, extra, keep: as in `index_descriptors`.
    """
    prototypes = None
    if network.place_count:
        with torch.no_grad():
            prototypes = _prototypes(network, raw).cpu().numpy()
    found = reach(places, prototypes, photos, own=own)
    return index_descriptors(
        descriptors,
        photos,
        found.places,
        out,
        prototypes=found.prototypes,
        model=fingerprint(network),
        scale=None if found.prototypes is None else network.scale,
        spectra=spectra,
        extra=extra,
        levels=_levels(network) if found.places is places else None,
        keep=keep,
    )


def _levels(network: PlaceNetwork) -> Levels | None:
    """A product of levels is a prototype's cosine; a sum needs the levels themselves."""
    known = network.classifiers
    return (
        Levels.of(known) if isinstance(known, LevelClassifiers) and known.combine == "sum" else None
    )


def photos_of(described: Described | Parts, photos: Photos) -> Photos:
    """The photos that were described, and why the others were not."""
    return Photos(photos[described.rows].table, photos.skipped + described.skipped)


def index_descriptors(
    descriptors: Any,
    photos: Photos,
    places: Places,
    out: str | Path,
    *,
    prototypes: Floats | None = None,
    model: str = "foreign",
    scale: float | None = None,
    spectra: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
    levels: Levels | None = None,
    keep: str | int | None = None,
) -> Index:
    """Lay out descriptors from anywhere; without prototypes a place's is its photos' mean.

    descriptors: (N, D) unit, in the order of the photos: an array, a memory map, what
    `read_descriptors` opens (rows are read as they are needed), or blocks of rows as they come.
    scale: makes logits of the scores; without prototypes it is fitted to the photos
    (`fit_scale`).  extra: what else to keep of each photo, (N, W) by name, given like descriptors.
    levels: classes whose sums score the places, instead of their prototypes.
    keep: descriptors in fewer bytes: a codec's name (`codec`), or how many bytes a photo.
    """
    folder = Path(out)
    places = mark_means(places) if prototypes is None else places
    with writing(folder):
        manifest = Manifest(
            generation=next_generation(folder),
            model=model,
            scale=SCALE if scale is None and prototypes is not None else scale or 0.0,
            prototypes="means" if prototypes is None else "classifier",
            spectra=tuple(spectra),
        )
        write_first(
            folder,
            manifest,
            {"descriptors": descriptors, **(extra or {})},
            photos,
            places,
            prototypes,
            levels,
            keep,
        )
    return open_index(folder)


def _prototypes(network: PlaceNetwork, raw: bool) -> torch.Tensor:
    if raw and isinstance(network.classifiers, GroupClassifiers):
        return network.classifiers.joint(raw=True)
    return network.classifiers.joint()
