"""A run folder: every verb reads it, adds its files, and can be repeated or replaced.

run/recipe.toml  places.parquet  model.safetensors  log.jsonl      train
run/index/                                                         index
run/describer.safetensors  ranking/                                index, of a pair of networks
run/calibration.json  fused.json                                   train, where the recipe has folds
run/scores.json  predictions.parquet  abstention.json              evaluate
run/report/index.html                                              report
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from evenplace.describe.describer import Progress, describe_photos
from evenplace.describe.extraction import extract_photos
from evenplace.describe.paired import PairedNetwork
from evenplace.errors import RunError, SettingError
from evenplace.evaluation import Predictions, Scores, evaluate
from evenplace.evaluation.abstention import Abstention, abstain
from evenplace.networks.checkpoints import save_checkpoint
from evenplace.networks.methods import METHODS, build_model
from evenplace.networks.network import PlaceNetwork, build_network
from evenplace.photos.files import whole_file
from evenplace.photos.table import Photos
from evenplace.places import Grid
from evenplace.retrieval import (
    Index,
    Search,
    add_photos,
    build_index,
    fingerprint,
    index_descriptors,
    open_index,
    replace_photos,
)
from evenplace.retrieval.build import mean_prototypes
from evenplace.retrieval.calibration import Rehearsal
from evenplace.retrieval.pair import index_pair
from evenplace.retrieval.rerank import spectra_for
from evenplace.retrieval.sources import read_descriptors
from evenplace.run.folder import (
    choose_describer,
    describer_of,
    run_describer,
    run_model,
    run_network,
    run_places,
    run_recipe,
)
from evenplace.run.tune import hold_out, learn_search, read_fused
from evenplace.training.cache import holds_trunk
from evenplace.training.devices import choose_device
from evenplace.training.distributed import Ranks, world_size
from evenplace.training.loop import Trained, Validated, train
from evenplace.training.partition import cut_places
from evenplace.training.progress import claim_run
from evenplace.training.recipe import PlacesSpec, Recipe

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
        build_network(recipe.network, seed=recipe.training.seed),
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
) -> Index:
    """Describe a database with the run's model and lay it out in run/index.

    Descriptors are kept part by part until the index is whole: a run that was stopped goes on.
    Photos it was trained on are not read again where training kept the trunk's output of them.
    Where another network ranks, it describes them too, for run/ranking (`choose_describer`).
    """
    if describer_of(run):
        return _index_pair(run, database, announce)
    network = run_network(run)
    if cache_folder is None and holds_trunk(network, database.paths, run / "cache"):
        cache_folder = run / "cache"
    parts = None if cache_folder else run / "descriptors"
    if parts is not None:
        describe_run(run, database, announce=announce)
    built = build_index(
        network,
        database,
        run_places(run),
        run / "index",
        spectra=spectra_for(run_recipe(run).search.rerank),
        cache_folder=cache_folder,
        parts_folder=parts,
        progress=announce("describing the database") if announce and cache_folder else None,
    )
    if parts is not None:
        shutil.rmtree(parts, ignore_errors=True)
    return built


def _index_pair(run: Path, database: Photos, announce: Announce | None) -> Index:
    choose_describer(run)
    describe_run(run, database, announce=announce)
    built = index_pair(
        PairedNetwork(run_network(run), run_describer(run)),
        database,
        run_places(run),
        run / "index",
        run / "ranking",
        spectra=spectra_for(run_recipe(run).search.rerank),
        parts_folder=run / "descriptors",
    )
    shutil.rmtree(run / "descriptors", ignore_errors=True)
    return built


def describe_run(
    run: Path, database: Photos, ranks: Ranks | None = None, *, announce: Announce | None = None
) -> None:
    """Describe this process's share of a database to run/descriptors, on the fastest device."""
    ranks = ranks or Ranks()
    network = run_model(run).to(choose_device("auto", ranks.local))
    extract_photos(
        network,
        database.paths,
        run / "descriptors",
        rank=ranks.rank,
        ranks=ranks.count,
        progress=announce("describing the database") if announce else None,
    )


def index_foreign(
    run: Path,
    database: Photos,
    method: str,
    checkpoint: str,
    *,
    cell: float = 20.0,
    announce: Announce | None = None,
    **changes: Any,
) -> Index:
    """Make a run of somebody else's weights: no training, places and prototypes from the database.

    checkpoint: "official", "imagenet", or the path of a file its authors published.  changes:
    the network that file is of, where it is not the method's first: backbone=, dim=, image_size=.
    """
    if METHODS.find(method).describer:
        raise SettingError(
            f"{method} is two networks, and nobody published its classifier's places; train it: "
            f"evenplace train PHOTOS --method {method} --run {run}"
        )
    network = build_model(method, weights=checkpoint, **changes)
    progress = announce("describing the database") if announce else None
    described = describe_photos(network, database.paths, progress=progress)
    readable = database[described.rows]
    photos = Photos(readable.table, database.skipped + described.skipped)
    places = Grid(cell).partition(photos)
    prototypes = mean_prototypes(described.descriptors, places.labels, len(places))
    network.attach_places(torch.zeros(len(places), dtype=torch.long))
    network.classifiers.set_prototypes(torch.from_numpy(prototypes))
    recipe = Recipe(method, network=network.spec, places=PlacesSpec(cell))
    claim_run(run, recipe, places)
    save_checkpoint(run / "model.safetensors", network, recipe.as_dict(), places.columns())
    return index_descriptors(
        described.descriptors,
        photos,
        places,
        run / "index",
        prototypes=prototypes,
        model=fingerprint(network),
    )


def index_files(run: Path, database: Photos, descriptors: Path, *, cell: float = 20.0) -> Index:
    """Lay out descriptors that others computed; places and prototypes come from the database."""
    places = Grid(cell).partition(database)
    built = index_descriptors(
        read_descriptors(descriptors, database), database, places, run / "index"
    )
    places.write(run / "places.parquet")
    return built


def add_to_run(
    run: Path, photos: Photos, *, replace: bool = False, announce: Announce | None = None
) -> Index:
    """Describe photos with the run's model and add them to its index, or put them in anew."""
    model = run_model(run)
    progress = announce("describing the photos") if announce else None
    described = describe_photos(model, photos.paths, progress=progress)
    update, readable = replace_photos if replace else add_photos, photos[described.rows]
    if isinstance(model, PlaceNetwork):
        own, network = described.descriptors, model
    else:
        (own, other), network = model.split(described.descriptors), model.classifier
        update(run / "ranking", other, readable, model=fingerprint(model.describer))
    return update(run / "index", own, readable, model=fingerprint(network))


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
    """Ask the run's index every query; keep scores.json and predictions.parquet.

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


def open_engine(
    run: Path, *, radius: float = 25.0, heading: float | None = None, **changes: Any
) -> Search:
    """Open a run for questions with its recipe's search settings, some of them changed.

    radius, heading: what makes an answer right, for its confidence to be that probability.  What
    was learned of the classifier's own ranking says nothing of one by another network.
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
    return Search(open_index(run / "index"), run_model(run), **settings)


def run_scores(run: Path, folder: Path | None = None) -> Scores:
    """Read the scores of a run; folder: where `evaluate_run(out=…)` put them."""
    path = (folder or run) / "scores.json"
    if not path.exists():
        raise RunError(f"{path} does not exist; evaluate first: evenplace evaluate {run}")
    return Scores.from_dict(
        json.loads(path.read_text()),
        Predictions.read(path.with_name("predictions.parquet")),
        run_places(run),
    )
