"""Photos, or anybody's descriptors → an index, written whole or not at all.

N photos · C places · D descriptor
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import torch

from evenplace.arrays import Floats
from evenplace.describe.describer import Described
from evenplace.describe.descriptor_parts import Parts
from evenplace.errors import IndexFileError
from evenplace.networks.classifiers import GroupClassifiers, LevelClassifiers
from evenplace.networks.fingerprint import fingerprint
from evenplace.networks.network import PlaceNetwork
from evenplace.photos.table import Photos
from evenplace.places.table import Places
from evenplace.retrieval.array_files import Column, Rows
from evenplace.retrieval.codec import Codec, Descriptors
from evenplace.retrieval.codec_choice import choose_codec
from evenplace.retrieval.index import ROWS, Index, open_index
from evenplace.retrieval.index_writer import (
    Order,
    arrived,
    once,
    write_derived,
    write_descriptors,
    write_layout,
    write_prototypes,
    write_rows,
)
from evenplace.retrieval.learned_prototypes import find_prototypes
from evenplace.retrieval.level_scores import Levels
from evenplace.retrieval.manifest import Draft, Manifest, writing
from evenplace.retrieval.prototypes import MEANS, fill_means, mark_means, photo_spread, reach
from evenplace.retrieval.spectrum import draw_frequencies, write_spectra

SCALE = 30.0
_TURNED = ("descriptors", "exact")  # columns that say how descriptors are kept


class Laid(TypedDict, total=False):
    """What is laid out beside descriptors and how, whoever made them: `index_descriptors`."""

    spectra: Sequence[str]
    extra: Mapping[str, Any] | None
    keep: str | int | None
    whole: Callable[[int], None]


def index_described(
    network: PlaceNetwork,
    descriptors: Any,
    photos: Photos,
    places: Places,
    out: Path,
    *,
    prototypes: str = "cosine",
    **laid: Unpack[Laid],
) -> Index:
    """Lay out what a network has described.

    Its prototypes find the places; one that knows no places, and only ranks, gets their means, and
    so do cities that nobody trained in (`reach`).  prototypes: as a recipe's [search] has it.
    descriptors, photos, laid: as in `index_descriptors`.
    """
    known, made = None, prototypes not in ("cosine", "raw")
    if network.place_count and not made:
        with torch.no_grad():
            known = _prototypes(network, prototypes == "raw").cpu().numpy()
    found = reach(places, known, photos)
    return index_descriptors(
        descriptors,
        photos,
        found.places,
        out,
        prototypes=found.prototypes,
        model=fingerprint(network),
        scale=None if found.prototypes is None else network.scale,
        levels=_levels(network) if found.places is places and not made else None,
        learn=prototypes if made else MEANS,
        **laid,
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
    learn: str = MEANS,
    whole: Callable[[int], None] = lambda dim: None,
) -> Index:
    """Lay out descriptors from anywhere; without prototypes a place's is its photos' mean.

    descriptors: (N, D) unit, in the photos' order: an array, a memory map, what `read_descriptors`
    opens, a tensor, a table, or blocks of rows as they come.  scale: makes logits of the scores;
    without prototypes it is fitted to the photos (`fit_scale`).  extra: what else to keep of each
    photo, (N, W) by name, given like descriptors.  levels: classes whose sums score the places,
    instead of their prototypes.  keep: descriptors in fewer bytes: a codec's name (`codec`), or
    how many bytes a photo.  learn: without prototypes, what moves them from the means: "softmax"
    or "low-visit-bias".  whole: told D when all is written and before anybody sees it.
    """
    places = mark_means(places, learn == MEANS) if prototypes is None else places
    with writing(Path(out)) as draft:
        scale = SCALE if scale is None and prototypes is not None else scale or 0.0
        photos, order = once(photos, places)
        with arrived(descriptors, len(photos), draft.path) as values:
            codec, loss, fitted = _write_both(draft, values, order, prototypes, places, keep, learn)
            dim = int(values.shape[1])
        _write_extra(draft, extra or {}, len(photos), order)
        _write_levels(draft.path, levels, codec)
        ordered = Photos(photos[order.rows].table, photos.skipped)
        write_layout(draft.path, ordered, places, order.starts)
        scale, tuning = _derive(draft.path, scale or fitted, codec, ordered, order.starts, spectra)
        draft.manifest = Manifest(
            generation=draft.generation, model=model, scale=scale, tuning=tuning, loss=loss,
            prototypes=learn if prototypes is None else "classifier", codec=codec.name,
            spectra=tuple(spectra),
        )  # fmt: skip
        whole(dim)
    return open_index(out)


def index_again(
    index: Index, out: Path, *, keep: str, learn: str = MEANS, given: bool = False
) -> Index:
    """Lay out an index's photos from the descriptors it was given, kept in another way.

    Into its own folder that is the next generation.  given: keep those beside, to go back to.
    """
    extra: dict[str, Any] = {n: c for n, c in index.columns.items() if n not in _TURNED}
    extra |= {"exact": index.as_given} if given else {}
    places = replace(index.places, labels=index.labels)
    return index_descriptors(
        index.as_given, index.photos, places, out,
        model=index.model, spectra=index.manifest.spectra, extra=extra, keep=keep, learn=learn,
    )  # fmt: skip


def _derive(
    target: Path, scale: float, codec: Codec, photos: Photos, starts: Rows, spectra: Sequence[str]
) -> tuple[float, dict[str, Any]]:
    """Write what follows from descriptors and prototypes; the scale, and what codes lose."""
    values = Descriptors(Column(target / f"{ROWS}descriptors.npy", mapped=True), codec)
    found = write_derived(target, scale, values, photos, starts)
    for name in spectra:
        spread = photo_spread(values, starts)
        points = draw_frequencies(name, values.shape[1], spread=spread)
        write_spectra(target, name, values, starts, points)
    return found


def _write_both(
    draft: Draft,
    values: Any,
    order: Order,
    prototypes: Floats | None,
    places: Places,
    keep: str | int | None,
    learn: str,
) -> tuple[Codec, dict[str, float], float]:
    """Write descriptors and what finds their places; how they are kept, and what that loses.

    Prototypes are those given, along the axes that are kept and as long as they were; else means,
    or what was learned from there, and with which scale (0 for none).
    """
    codec, loss = choose_codec(keep, values, order, places.tiers)
    if prototypes is not None and codec.offset is not None:
        raise IndexFileError(
            f"{codec.name} moves descriptors, and these prototypes were trained where they were; "
            "keep pca256, int8 or float16, or take the means: [search] prototypes=means"
        )
    codec.write(draft.path)
    means = write_descriptors(draft, values, order, codec)
    if prototypes is not None and codec.axes is not None:
        prototypes = np.asarray(prototypes, np.float32) @ codec.axes
    scale = 0.0
    if prototypes is None:
        rows = Descriptors(Column(draft.path / f"{ROWS}descriptors.npy"), codec)
        prototypes, scale = find_prototypes(learn, rows, order.starts, means)
    else:
        prototypes = fill_means(prototypes, means.directions())
    write_prototypes(draft, [prototypes], *prototypes.shape)
    del means, prototypes  # of a city a third of a gigabyte
    if codec.refines:
        write_rows(draft, "exact", values, order, np.float16)
    return codec, loss, scale


def _write_extra(draft: Draft, extra: Mapping[str, Any], count: int, order: Order) -> None:
    """What else is kept of each photo.  count: rows that come, of photos that came twice too."""
    for name, given in extra.items():
        with arrived(given, count, draft.path) as values:
            write_rows(draft, name, values, order)


def _write_levels(target: Path, levels: Levels | None, codec: Codec) -> None:
    if levels is None:
        return
    if codec.axes is not None:
        raise IndexFileError(
            f"{codec.name} turns descriptors, and classes of several levels score these places "
            "as they were trained; keep int8 or float16"
        )
    levels.write(target)


def _prototypes(network: PlaceNetwork, raw: bool) -> torch.Tensor:
    if raw and isinstance(network.classifiers, GroupClassifiers):
        return network.classifiers.joint(raw=True)
    return network.classifiers.joint()
