"""A run: photos in, answers out, and one folder that every stage shares.

train → tune → index → locate, evaluate        each reads and writes `run_folder.py`'s files
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from evenplace.describe.engines import Tell
from evenplace.photos.table import Photos
from evenplace.places import Grid, Places
from evenplace.retrieval import Index, verify_index
from evenplace.retrieval.local_features import build_local_features
from evenplace.retrieval.manifest import Manifest
from evenplace.run.answering import AnsweringRun
from evenplace.run.box import export_box
from evenplace.run.checksums import check_files, sealing
from evenplace.training.recipe import Recipe, read_recipe

if TYPE_CHECKING:  # what trains, tunes or indexes is loaded by the stage that needs it: see `box`
    from evenplace.run.indexing import Grown, IndexOptions
    from evenplace.run.tune import Tuned
    from evenplace.training.loop import Announce, Trained, Validated


class Run(AnsweringRun):
    """A run folder, with a method for every stage.

    `Run(folder)` names one that need not exist yet; `Run.open(folder)` is for one that does.
    """

    def train(
        self,
        photos: Photos,
        places: Places | None = None,
        recipe: Recipe | str | Path = "dapr-m",
        *,
        cache_folder: Path | None = None,
        announce: "Announce | None" = None,
        device: str = "auto",
        on_validated: "Callable[[Validated], None] | None" = None,
    ) -> "Trained":
        """Train the recipe's network on photos, and tune the search where the recipe has folds.

        places: the map, cut; as the recipe says if left out.  What was stopped goes on.  Several
        processes leave tuning out, since a fold is small.
        """
        self.files.refuse_box()
        from evenplace.training.distributed import rank_of_process, world_size
        from evenplace.training.initialisation import starting_network
        from evenplace.training.loop import train
        from evenplace.training.recipe import cut_places, spec_of

        recipe = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
        if recipe.search.verify:
            build_local_features(recipe.search.features)  # before hours of training
        if places is None:
            places = cut_places(recipe.places, photos)
        else:
            recipe = replace(recipe, places=spec_of(places))
        trained = train(
            starting_network(recipe), photos, places, recipe, self.folder,
            cache_folder=cache_folder, announce=announce, device=device, on_validated=on_validated,
        )  # fmt: skip
        if rank_of_process() == 0:
            with sealing(self.folder, "model.safetensors", "places.parquet", "photos.parquet"):
                photos.write(self.files / "photos.parquet")
        untuned = recipe.search.folds and not (self.files / "calibration.json").exists()
        if untuned and world_size() == 1:
            self.tune(cache_folder=cache_folder, announce=announce, device=device)
        return trained

    def tune(
        self,
        settings: Sequence[str] = (),
        *,
        queries: Photos | None = None,
        descriptors: Any = None,
        cache_folder: Path | None = None,
        announce: "Announce | None" = None,
        device: str = "auto",
    ) -> "Tuned | None":
        """Learn the weights of the score and what confidence is worth, from held-out photos.

        A run that trained a network trains it without them (`train` does this where the recipe
        has folds); a run of somebody else's descriptors needs only its index.  settings: of the
        recipe's [search], as "folds=5"; the recipe keeps them.  queries: calibrate on these
        photos instead, whose place is known (descriptors: theirs, where others computed them);
        the weights of the score stay.  None: nothing to learn from.
        """
        self.files.refuse_box()
        from evenplace.run.tune import tune_search
        from evenplace.run.tune_on_queries import rehearse_labelled

        learned: Tuned | None
        if queries is not None:
            learned = rehearse_labelled(self.files, queries, descriptors, announce)
        else:
            learned = tune_search(
                self.files, settings, cache_folder=cache_folder, announce=announce, device=device
            )
        if learned is not None:
            learned.write(self.folder)
            self._opened = None
        return learned

    def index(
        self,
        database: Photos,
        *,
        cache_folder: Path | None = None,
        **how: "Unpack[IndexOptions]",
    ) -> Index:
        """Describe a database with the run's model and lay it out for search.

        how: announce=, keep=, verify= (`IndexOptions`).
        """
        self.files.refuse_box()
        from evenplace.run.indexing import index_database

        self._opened = None
        return index_database(self.files, database, cache_folder, **how)

    def index_method(
        self,
        database: Photos,
        method: str,
        weights: str = "official",
        *,
        cell: float = 20.0,
        **changes: Any,
    ) -> Index:
        """Index a database with published weights: a run without any training.

        changes: those of the network, beside announce=, keep= and verify= (`IndexOptions`).
        """
        self.files.refuse_box()
        from evenplace.run.indexing import index_by_method

        return index_by_method(self.files, database, method, weights, cell=cell, **changes)

    def index_descriptors(
        self,
        descriptors: Any,
        photos: Photos,
        places: Places | None = None,
        *,
        keep: str | int | None = None,
        verify: int = 0,
    ) -> Index:
        """Index a database by descriptors that others computed: (N, D) unit, read as needed.

        places: the map, cut; squares of 20 m if left out.  verify: candidates to look at a second
        time, if the photos are at hand.
        """
        self.files.refuse_box()
        from evenplace.run.indexing import index_given

        self._opened = None
        places = Grid().partition(photos) if places is None else places
        return index_given(self.files, descriptors, photos, places, keep, verify)

    def add(
        self, photos: Photos, *, replace: bool = False, announce: "Announce | None" = None
    ) -> "Grown":
        """Add photos to the index, or describe anew those it has, while others read it."""
        self.files.refuse_box()
        from evenplace.run.indexing import add_to_indexes

        return add_to_indexes(self.files, photos, anew=replace, announce=announce)

    def remove(self, paths: Sequence[str]) -> Index:
        """Take photos out of the index while others read it."""
        from evenplace.retrieval.update import half_done, remove_photos

        *second, first = self.files.indexes
        if second and not half_done([*second, first], list(paths)):
            remove_photos(second[0], paths)
        return remove_photos(first, paths)

    def verify(self) -> dict[Path, Manifest]:
        """Read what was learned and every file of the indexes, and compare with the checksums."""
        check_files(self.folder)
        return {folder: verify_index(folder) for folder in self.files.indexes}

    def export_box(self, folder: str | Path, tell: Tell = lambda text: None) -> int:
        """Write what answering needs, for a machine without torch; its bytes.  See `box`."""
        return export_box(self.files, Path(folder), tell)


def train(
    photos: Photos,
    places: Places | None = None,
    recipe: Recipe | str | Path = "dapr-m",
    *,
    run: str | Path,
    **options: Any,
) -> Run:
    """Train a recipe on photos and their places; what comes back answers once it has an index.

    options: as in `Run.train`.
    """
    made = Run(run)
    made.train(photos, places, recipe, **options)
    return made


def from_descriptors(
    descriptors: Any,
    photos: Photos,
    places: Places | None = None,
    *,
    run: str | Path,
    settings: Sequence[str] = (),
) -> Run:
    """Give anybody's descriptors the tail's treatment: prototypes, a learned score, calibration.

    descriptors: (N, D) unit, in the order of the photos.  settings: as `Run.tune` takes them.  What
    comes back is a run like any other; ask it with descriptors: `run.locate(descriptor)`,
    `run.evaluate(queries, descriptors)`.
    """
    made = Run(run)
    made.index_descriptors(descriptors, photos, places)
    made.tune(settings)
    return made
