"""A run folder: every verb reads it, adds its files, and can be repeated or replaced.

run/recipe.toml  places.parquet  model.safetensors  log.jsonl      train
run/index/                                                         index
run/describer.safetensors  ranking/                                index, of a pair of networks
run/calibration.json  fused.json                                   train, where the recipe has folds
run/scores.json  predictions.parquet  scored_places.parquet         evaluate
run/abstention.json                                                evaluate
run/store.json                                                     index --store
run/report/index.html                                              report
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from evenplace.describe.describer import Described, Describer, Progress
from evenplace.describe.parts import Parts
from evenplace.errors import RunError, SettingError
from evenplace.evaluation import Predictions, Scores, evaluate
from evenplace.evaluation.abstention import Abstention, abstain
from evenplace.networks.checkpoints import save_checkpoint
from evenplace.networks.fingerprint import fingerprint
from evenplace.networks.methods import METHODS, build_model
from evenplace.photos.files import whole_file
from evenplace.photos.table import Photos, Skipped
from evenplace.places import Grid, Places
from evenplace.retrieval import (
    Index,
    Search,
    add_photos,
    index_descriptors,
    open_index,
    replace_photos,
)
from evenplace.retrieval.build import index_described, photos_of
from evenplace.retrieval.calibration import Rehearsal
from evenplace.retrieval.means import mean_prototypes
from evenplace.retrieval.rerank import spectra_for
from evenplace.retrieval.sources import read_descriptors
from evenplace.run.folder import (
    choose_describer,
    describer_of,
    open_describer,
    run_describer,
    run_network,
    run_places,
    run_recipe,
)
from evenplace.run.store import open_store
from evenplace.run.tune import hold_out, learn_search, read_fused
from evenplace.training.cache import describe_cached, holds_trunk
from evenplace.training.distributed import join_ranks, world_size
from evenplace.training.loop import Trained, Validated, train
from evenplace.training.partition import cut_places
from evenplace.training.progress import claim_foreign
from evenplace.training.recipe import PlacesSpec, Recipe
from evenplace.training.start import starting_network

Announce = Callable[[str], Progress]


def train_run(
    run: Path,
    photos: Photos,
    recipe: Recipe,
    *,
    cache_folder: Path | None = None,
    announce: Announce | None = None,
    device: str = "auto",
    on_validated: Callable[[Validated], None] | None = None,
) -> Trained:
    """Cut the photos into places as the recipe says and train its network on them.

    Where the recipe asks for folds, the search is tuned on photos held out in turn; several
    processes leave that out, since a fold is small.
    """
    places = cut_places(recipe.places, photos)
    trained = train(
        starting_network(recipe),
        photos,
        places,
        recipe,
        run,
        cache_folder=cache_folder,
        announce=announce,
        device=device,
        on_validated=on_validated,
    )
    if recipe.search.folds and not (run / "calibration.json").exists() and world_size() == 1:
        folds = hold_out(
            photos, places, recipe, run / "folds",
            cache_folder=cache_folder or run / "cache", announce=announce, device=device,
        )  # fmt: skip
        tuned = learn_search(folds, recipe.search)
        if tuned is not None:
            tuned.write(run)
        shutil.rmtree(run / "folds", ignore_errors=True)
    return trained


def index_run(
    run: Path,
    database: Photos,
    *,
    cache_folder: Path | None = None,
    announce: Announce | None = None,
    keep: str | int | None = None,
    **how: Any,
) -> Index:
    """Describe a database with the run's model and lay it out in run/index.

    Descriptors are kept part by part until the index is whole: a run that was stopped goes on.
    Of several processes each describes its share, and the first lays them out.  Photos it was
    trained on are not read again where training kept the trunk's output of them.  Where another
    network ranks, it describes them too, for run/ranking (`choose_describer`).
    keep: descriptors in fewer bytes, as in `index_descriptors`.  how: device, precision and
    batch of the `Describer`.
    """
    ranks = join_ranks(how.get("device", "auto"))
    network, paired = run_network(run), bool(describer_of(run))
    progress = announce("describing the database") if announce else None
    if paired and ranks.first:
        choose_describer(run)
    ranks.wait()
    if not paired and cache_folder is None and holds_trunk(network, database.paths, run / "cache"):
        cache_folder = run / "cache"
    described: Described | Parts
    if paired or cache_folder is None:
        describer = open_describer(run, local=ranks.local, **how)
        described = describer.parts(
            database.paths, run / "descriptors", rank=ranks.rank, ranks=ranks.count,
            progress=progress,
        )  # fmt: skip
        ranks.wait()
    elif ranks.first:
        described = describe_cached(network, database.paths, cache_folder, progress)
    if ranks.first:
        _lay_out(run, database, described, keep)
        shutil.rmtree(run / "descriptors", ignore_errors=True)
    ranks.wait()
    return open_index(run / "index")


def _lay_out(
    run: Path, database: Photos, described: Described | Parts, keep: str | int | None
) -> None:
    """Write run/ranking, where another network ranks, and then run/index, which others watch."""
    places, spectra = run_places(run), spectra_for(run_recipe(run).search.rerank)
    readable, (own, *other) = photos_of(described, database), described.split()
    for descriptors in other:
        index_described(
            run_describer(run), descriptors, readable, places, run / "ranking",
            spectra=spectra, keep=keep,
        )  # fmt: skip
    index_described(
        run_network(run),
        own,
        readable,
        places,
        run / "index",
        raw=run_recipe(run).search.prototypes == "raw",
        spectra=() if other else spectra,
        keep=keep,
    )


def index_foreign(
    run: Path,
    database: Photos,
    method: str,
    checkpoint: str,
    *,
    cell: float = 20.0,
    announce: Announce | None = None,
    keep: str | int | None = None,
    how: dict[str, Any] | None = None,
    **changes: Any,
) -> Index:
    """Make a run of somebody else's weights: no training, places and prototypes from the database.

    checkpoint: "official", "imagenet", or the path of a file its authors published.  changes:
    the network that file is of, where it is not the method's first: backbone=, dim=, image_size=.
    how: device, precision and batch of the `Describer`.
    """
    if METHODS.find(method).describer:
        raise SettingError(
            f"{method} is two networks, and nobody published its classifier's places; train it: "
            f"evenplace train PHOTOS --method {method} --run {run}"
        )
    network = build_model(method, weights=checkpoint, **changes)
    progress = announce("describing the database") if announce else None
    described = Describer(network, **(how or {})).describe(database.paths, progress=progress)
    readable = database[described.rows]
    photos = Photos(readable.table, database.skipped + described.skipped)
    places = Grid(cell).partition(photos)
    prototypes = mean_prototypes(described.descriptors, places.labels, len(places))
    network.cpu().attach_places(torch.zeros(len(places), dtype=torch.long))
    network.classifiers.set_prototypes(torch.from_numpy(prototypes))
    recipe = Recipe(method, network=network.spec, places=PlacesSpec(cell))
    claim_foreign(run, recipe, places)
    save_checkpoint(run / "model.safetensors", network, recipe.as_dict(), places.columns())
    return index_descriptors(
        described.descriptors,
        photos,
        places,
        run / "index",
        prototypes=prototypes,
        model=fingerprint(network),
        keep=keep,
    )


def index_files(
    run: Path,
    database: Photos,
    descriptors: Path,
    *,
    cell: float = 20.0,
    keep: str | int | None = None,
) -> Index:
    """Lay out descriptors that others computed; places and prototypes come from the database."""
    places = Grid(cell).partition(database)
    built = index_descriptors(
        read_descriptors(descriptors, database), database, places, run / "index", keep=keep
    )
    places.write(run / "places.parquet")
    return built


def add_to_run(
    run: Path,
    photos: Photos,
    *,
    replace: bool = False,
    announce: Announce | None = None,
    **how: Any,
) -> tuple[Index, tuple[Skipped, ...]]:
    """Describe photos with the run's model and add them to its index, or put them in anew.

    The index, and the photos that could not be read.
    """
    describer = open_describer(run, **how)
    progress = announce("describing the photos") if announce else None
    described = describer.describe(photos.paths, progress=progress)
    update, readable = replace_photos if replace else add_photos, photos[described.rows]
    own, *other = described.split()
    if other:
        update(run / "ranking", other[0], readable, model=describer.fingerprints[1])
    grown = update(run / "index", own, readable, model=describer.fingerprints[0])
    return grown, photos.skipped + described.skipped


def evaluate_run(
    run: Path,
    queries: Photos,
    *,
    radius: float = 25.0,
    heading: float | None = None,
    frames: int | None = None,
    cache_folder: Path | None = None,
    out: Path | None = None,
    announce: Announce | None = None,
    **changes: Any,
) -> Scores:
    """Ask the run's index every query; keep scores.json, predictions.parquet and the places.

    They go into the run, or to `out` where one run is asked in several ways.
    """
    engine = open_engine(run, radius=radius, heading=heading, **changes)
    found = evaluate(
        engine,
        queries,
        radius=radius,
        heading=heading,
        frames=frames,
        name=run_recipe(run).name,
        cache_folder=cache_folder,
        progress=announce("asking the queries") if announce else None,
    )
    write_scores(found, out or run)
    return found


def judge_abstention(run: Path, found: Scores, min_precision: float, **changes: Any) -> Abstention:
    """What the run delivers when a precision is asked for; keeps run/abstention.json.

    changes: the settings of the engine that found the answers.
    """
    truth = found.truth
    least = open_engine(
        run,
        radius=truth.radius,
        heading=truth.heading,
        min_precision=min_precision,
        **changes,
    ).least
    judged = abstain(found.predictions, min_precision, least)
    with whole_file(run / "abstention.json", RunError) as draft:
        draft.write_text(json.dumps(judged.as_dict(), indent=1))
    return judged


def write_scores(found: Scores, folder: Path) -> None:
    """Keep the figures and what they were counted from."""
    with whole_file(folder / "scores.json", RunError) as draft:
        draft.write_text(json.dumps(found.as_dict(), indent=1))
    found.predictions.write(folder / "predictions.parquet")
    found.places.write(folder / "scored_places.parquet")


def open_engine(
    run: Path,
    *,
    radius: float = 25.0,
    heading: float | None = None,
    how: dict[str, Any] | None = None,
    **changes: Any,
) -> Search:
    """Open a run for questions with its recipe's search settings, some of them changed.

    radius, heading: what makes an answer right, for its confidence to be that probability.  What
    was learned of the classifier's own ranking says nothing of one by another network.  how:
    device, precision and batch of the `Describer`.
    """
    spec = run_recipe(run).search
    settings: dict[str, Any] = {
        "shortlist": spec.shortlist,
        "rerank": spec.rerank,
        "confidence": spec.confidence,
        "exact": spec.exact,
        "facing": heading is not None,
    }
    settings |= changes
    if spec.describer:
        settings = {"ranked_by": open_index(run / "ranking")} | settings
    elif (run / "calibration.json").exists():
        rehearsed = Rehearsal.read(run / "calibration.json")
        if rehearsed.fits(settings["rerank"], settings["confidence"]):
            settings = {"calibration": rehearsed.calibrate(radius, heading)} | settings
    if "calibration" not in settings and settings["confidence"] == "evidence":
        settings["confidence"] = "mass"  # log odds that nobody has calibrated
    if settings["rerank"] == "fused" and (run / "fused.json").exists() and not spec.describer:
        settings["rerank"] = read_fused(run / "fused.json")
    index = open_index(run / "index")
    store = open_store(run, settings.get("ranked_by", index))
    return Search(index, open_describer(run, **(how or {})), store=store, **settings)


def run_scores(run: Path, folder: Path | None = None) -> Scores:
    """Read the scores of a run; folder: where `evaluate_run(out=…)` put them."""
    path = (folder or run) / "scores.json"
    if not path.exists():
        raise RunError(f"{path} does not exist; evaluate first: evenplace evaluate {run}")
    return Scores.from_dict(
        json.loads(path.read_text()),
        Predictions.read(path.with_name("predictions.parquet")),
        Places.read(path.with_name("scored_places.parquet")),
    )
