"""A database → the indexes of a run: by its own networks, by somebody else's, from a file."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from evenplace.describe.describer import Described, Describer
from evenplace.describe.descriptor_parts import Parts, describe_parts
from evenplace.errors import SettingError
from evenplace.networks.build_model import build_model
from evenplace.networks.checkpoints import save_checkpoint
from evenplace.networks.methods import METHODS, NetworkSpec
from evenplace.photos.table import Photos, Skipped
from evenplace.places import Grid, Places
from evenplace.retrieval import Index, open_index
from evenplace.retrieval.build import index_described, index_descriptors, photos_of
from evenplace.retrieval.codec import ALONG
from evenplace.retrieval.local_features import LOCAL_FEATURES, build_local_features
from evenplace.retrieval.packed_features import KnownRows, kept_points, pack_photos
from evenplace.retrieval.rerank import spectra_for
from evenplace.retrieval.second_look import refuse_absent
from evenplace.retrieval.update import add_photos, find_changed, half_done, replace_photos
from evenplace.run.checksums import sealing
from evenplace.run.point_cache import cached_points
from evenplace.run.run_folder import NO_NETWORK, RunFolder
from evenplace.training.distributed import Ranks, join_ranks
from evenplace.training.loop import Announce
from evenplace.training.progress import claim_foreign, refuse_trained
from evenplace.training.recipe import Recipe, spec_of
from evenplace.training.specs import SearchSpec, TrainingSpec
from evenplace.training.trunk_cache import describe_cached, holds_trunk


class IndexOptions(TypedDict, total=False):
    """How a database is laid out, and who hears how far that is.

    announce: told of each stage.  keep: descriptors in fewer bytes, by the name of a codec or so
    many bytes a photo.  verify: candidates to look at a second time, for which the points of the
    photos are kept too; the recipe's if left out.
    """

    announce: Announce | None
    keep: str | int | None
    verify: int | None


def index_database(
    run: RunFolder,
    database: Photos,
    cache_folder: Path | None = None,
    *,
    announce: Announce | None = None,
    keep: str | int | None = None,
    verify: int | None = None,
) -> Index:
    """Describe a database with the run's networks and lay it out in run/index.

    Descriptors are kept part by part until the index is whole: a run that was stopped goes on.
    Of several processes each describes its share, and the first lays them out.  Photos it was
    trained on are not read again where training kept the trunk's output of them.  Where another
    network ranks, it describes them too, for run/ranking.  verify: the recipe's from now on.
    """
    ranks = join_ranks(run.how.get("device", "auto"))
    paired, progress = bool(run.second), announce("describing the database") if announce else None
    if paired and ranks.first:
        run.choose_describer()
    ranks.wait()
    own = run / "cache"  # where training may have kept the trunk's output of all these photos
    if not paired and cache_folder is None and holds_trunk(run.network, database.paths, own):
        cache_folder = own
    described: Described | Parts
    if paired or cache_folder is None:
        described = describe_parts(
            open_in_turn(run, ranks, len(database)), database.paths, run / "descriptors",
            rank=ranks.rank, ranks=ranks.count, progress=progress,
        )  # fmt: skip
        ranks.wait()
    elif ranks.first:
        described = describe_cached(run.network, database.paths, cache_folder, progress)
    if ranks.first:
        known = cached_points(cache_folder or run / "cache", run.recipe.search.features)
        recipe = run.recipe if verify is None else run.recipe.changed([f"verify={verify}"])
        _lay_out(run, recipe, database, described, keep, known, announce)
        shutil.rmtree(run / "descriptors", ignore_errors=True)
    ranks.wait()
    return open_index(run / "index")


def open_in_turn(run: RunFolder, ranks: Ranks, photos: int) -> Describer:
    """The first process exports the network, where that pays; the others find what it made."""
    opened: list[Describer] = []
    ranks.lead(lambda: opened.append(run.open_describer(local=ranks.local, expected=photos)))
    return opened[0] if opened else run.open_describer(local=ranks.local, expected=min(photos, 2))


def _lay_out(
    run: RunFolder,
    recipe: Recipe,
    database: Photos,
    described: Described | Parts,
    keep: str | int | None,
    known: KnownRows,
    announce: Announce | None,
) -> None:
    """Write run/ranking, where another network ranks, and then run/index, which others watch."""
    places, spectra = run.places, spectra_for(recipe.search.rerank)
    readable, (own, *other) = photos_of(described, database), described.split()
    for descriptors in other:
        index_described(
            run.describer, descriptors, readable, places, run / "ranking",
            spectra=spectra, keep=keep,
        )  # fmt: skip
    spectra, spec = () if other else spectra, recipe.search
    if run.trained:
        keep = ALONG.get(spec.axes, keep)
    index_described(
        run.network, own, readable, places, run / "index",
        prototypes=spec.prototypes, spectra=spectra, keep=keep,
        extra=_points(spec, readable, announce, known),
        whole=lambda dim: run.write_recipe(recipe),
    )  # fmt: skip


def _points(
    spec: SearchSpec,
    photos: Photos,
    announce: Announce | None = None,
    known: KnownRows | None = None,
) -> dict[str, Iterator[Any]]:
    """Local features for a second look, where one is taken, by the name of their kind."""
    if not spec.verify:
        return {}
    show = announce("finding points in the photos") if announce else None
    kind = build_local_features(spec.features)
    return {spec.features: pack_photos(kind, photos.paths, known=known, progress=show)}


def index_by_method(
    run: RunFolder,
    database: Photos,
    method: str,
    weights: str,
    *,
    cell: float,
    announce: Announce | None = None,
    keep: str | int | None = None,
    verify: int = 0,
    **changes: Any,
) -> Index:
    """Make a run of somebody else's weights: no training, places and prototypes from the database.

    weights: "official", "imagenet", or the path of a file its authors published.  changes: the
    network that file is of, where it is not the method's first: backbone=, dim=, image_size=.
    """
    if METHODS.find(method).describer:
        raise SettingError(
            f"{method} is two networks, and nobody published its classifier's places; train it: "
            f"evenplace train PHOTOS --method {method} --run {run.path}"
        )

    def begin() -> None:
        network = build_model(method, weights=weights, **changes)
        places = Grid(cell).partition(database)
        recipe = untrained(method, network.spec, places, verify)
        begin_untrained(run, recipe, places)
        with sealing(run.path, "model.safetensors", "places.parquet"):
            save_checkpoint(run / "model.safetensors", network, recipe.as_dict())

    join_ranks(run.how.get("device", "auto")).lead(begin)
    return index_database(run, database, announce=announce, keep=keep)


def index_given(
    run: RunFolder,
    descriptors: Any,
    photos: Photos,
    places: Places,
    keep: str | int | None = None,
    verify: int = 0,
) -> Index:
    """Make a run of descriptors that others computed: (N, D) unit, in the order of the photos."""
    refuse_trained(run.path)
    if verify:
        refuse_absent(photos.paths, "photos of the database")
    extra = _points(SearchSpec(verify=verify), photos)

    def begin(dim: int) -> None:
        network = replace(NO_NETWORK, dim=dim)
        begin_untrained(run, untrained("descriptors", network, places, verify), places)

    return index_descriptors(
        descriptors, photos, places, run / "index", keep=keep, extra=extra, whole=begin
    )


def begin_untrained(run: RunFolder, recipe: Recipe, places: Places) -> None:
    """Write recipe and places; what was tuned for other descriptors is gone."""
    claim_foreign(run.path, recipe, places)
    learned = ("calibration.json", "fused.json", "look.json")
    with sealing(run.path, *learned):
        for name in learned:
            (run / name).unlink(missing_ok=True)


def untrained(name: str, network: NetworkSpec, places: Places, verify: int = 0) -> Recipe:
    """The recipe of a run in which nothing is trained."""
    nothing, search = TrainingSpec(epochs=0), SearchSpec(verify=verify)
    cut = spec_of(places)
    return Recipe(name, network=network, places=cut, training=nothing, search=search)


@dataclass(frozen=True)
class Grown:
    """An index after photos were added, and those that could not be read."""

    index: Index
    skipped: tuple[Skipped, ...]


def add_to_indexes(
    run: RunFolder, photos: Photos, *, anew: bool = False, announce: Announce | None = None
) -> Grown:
    """Describe photos with the run's networks and add them to its indexes, or put them in anew."""
    describer = run.open_describer(expected=len(photos))
    find_changed(open_index(run / "index"), photos.paths, known=anew)  # refused before the work
    progress = announce("describing the photos") if announce else None
    described = describer.describe(photos.paths, progress=progress)
    update, readable = replace_photos if anew else add_photos, photos[described.rows]
    own, *other = described.split()
    if other and not half_done(run.indexes, readable.paths):
        update(run / "ranking", other[0], readable, model=describer.fingerprints[1])
    seen = _same_points(open_index(run / "index"), readable)
    grown = update(run / "index", own, readable, model=describer.fingerprints[0], extra=seen)
    return Grown(grown, photos.skipped + described.skipped)


def _same_points(index: Index, photos: Photos) -> dict[str, NDArray[np.uint8]]:
    """Local features of photos to add, of the kinds that the index keeps."""
    kinds = [build_local_features(name) for name in index.columns if name in LOCAL_FEATURES]
    return {
        kind.name: np.concatenate([kept[:0], *pack_photos(kind, photos.paths)])
        for kind in kinds
        if (kept := kept_points(index, kind)) is not None
    }
