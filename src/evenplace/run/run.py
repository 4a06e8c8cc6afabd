"""A run: photos in, answers out, and one folder that every stage shares.

train → tune → index → locate, evaluate        each reads and writes `run_folder.py`'s files
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from evenplace.describe.describer import Progress
from evenplace.describe.engines import Tell
from evenplace.errors import SettingError, unknown_name
from evenplace.evaluation import Scores, Truth, evaluate, score
from evenplace.evaluation.abstention import Abstention, abstain
from evenplace.photos.asked import Asked, find_asked
from evenplace.photos.files import write_json
from evenplace.photos.table import Photos
from evenplace.places import Grid, Places
from evenplace.retrieval import Answer, Index, Search, verify_index
from evenplace.retrieval.calibration import Calibration, find_shift, least_confidence
from evenplace.retrieval.descriptor_files import one_descriptor
from evenplace.retrieval.local_features import build_local_features
from evenplace.retrieval.manifest import Manifest
from evenplace.retrieval.second_look import refuse_absent
from evenplace.run.answering import open_search, search_settings
from evenplace.run.box import export_box
from evenplace.run.checksums import check_files, sealing
from evenplace.run.located import Located, locate_pictures
from evenplace.run.run_folder import RunFolder
from evenplace.training.recipe import Recipe, parse_settings, read_recipe

if TYPE_CHECKING:  # what trains, tunes or indexes is loaded by the stage that needs it: see `box`
    from evenplace.run.indexing import Grown
    from evenplace.run.tune import Tuned
    from evenplace.training.loop import Announce, Trained, Validated


class Run:
    """A run folder, with a method for every stage.

    `Run(folder)` names one that need not exist yet; `Run.open(folder)` is for one that does.
    how: device, engine, precision and batch of whatever describes photos, as `Describer` has them.
    """

    def __init__(self, folder: str | Path, **how: Any) -> None:
        self.folder = Path(folder)
        self.files = RunFolder(self.folder, how)
        self._opened: Search | None = None
        self._opened_for: dict[str, Any] = {}

    @classmethod
    def open(cls, folder: str | Path, **how: Any) -> Self:
        """A run that is there already."""
        run = cls(folder, **how)
        _ = run.recipe
        return run

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    @property
    def recipe(self) -> Recipe:
        return self.files.recipe

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
        from evenplace.training.loop import train
        from evenplace.training.recipe import cut_places, spec_of
        from evenplace.training.start import starting_network

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
        from evenplace.run.choice import renew_index
        from evenplace.run.labelled import rehearse_labelled
        from evenplace.run.tune import rehearse, tuned_recipe

        if queries is not None:
            learned = rehearse_labelled(self.files, queries, descriptors, announce)
            learned.write(self.folder)
            self._opened = None
            return learned
        known = self.recipe.as_dict()["search"]
        for key in parse_settings(settings):
            if key.removeprefix("search.") not in known:  # the network is trained, and stays
                raise unknown_name("setting of [search]", key, known)
        recipe = tuned_recipe(self.recipe, self.files.trained, settings)
        found = rehearse(
            self.files, recipe, cache_folder=cache_folder, announce=announce, device=device
        )
        if found is not None:
            recipe = recipe.changed([f"{one.setting}={one.kind}" for one in found.choices])
            renew_index(self.files, recipe.search)
            if recipe != self.recipe:
                self.files.write_recipe(recipe)
            found.write(self.folder)
            self._opened = None
        return found

    def index(
        self,
        database: Photos,
        *,
        cache_folder: Path | None = None,
        announce: "Announce | None" = None,
        keep: str | int | None = None,
        verify: int | None = None,
    ) -> Index:
        """Describe a database with the run's model and lay it out for search.

        keep: descriptors in fewer bytes, as in `index_descriptors`.  verify: candidates to look at
        a second time, for which the points of the photos are kept too; the recipe's if left out.
        """
        self.files.refuse_box()
        from evenplace.run.indexing import index_database

        self._opened = None
        return index_database(
            self.files, database, cache_folder=cache_folder, announce=announce, keep=keep,
            verify=verify,
        )  # fmt: skip

    def index_method(
        self,
        database: Photos,
        method: str,
        weights: str = "official",
        *,
        cell: float = 20.0,
        announce: "Announce | None" = None,
        keep: str | int | None = None,
        verify: int = 0,
        **changes: Any,
    ) -> Index:
        """Index a database with published weights: a run without any training."""
        self.files.refuse_box()
        from evenplace.run.indexing import index_by_method

        return index_by_method(
            self.files, database, method, weights, cell=cell, announce=announce, keep=keep,
            verify=verify, **changes,
        )  # fmt: skip

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

    def search(
        self,
        *,
        radius: float = 25.0,
        heading: float | None = None,
        expected: int = 1,
        **changes: Any,
    ) -> Search:
        """The engine behind `locate` and `evaluate`, some of its settings changed.

        radius, heading: what makes an answer right, for its confidence to be that probability.
        expected: photos it will be asked with, which decides what describes them.
        """
        return open_search(self.files, radius, heading, expected, **changes)

    def calibration(
        self, radius: float = 25.0, heading: float | None = None, **changes: Any
    ) -> Calibration | None:
        """What makes probabilities of confidences; None for settings that were not rehearsed."""
        found: Calibration | None = search_settings(self.files, radius, heading, changes)[
            "calibration"
        ]
        return found

    def locate(
        self,
        photo: str | Path | bytes | NDArray[np.float32] | Any,
        k: int = 5,
        *,
        min_precision: float | None = None,
        insist: bool = False,
        verify: int | None = None,
    ) -> Answer:
        """Say where a photo was taken, how sure that is, and from what it was concluded.

        photo: a file, its bytes, or its descriptor (an array, a tensor, a list), which cannot be
        looked at a second time.
        min_precision: rather say nothing than what would be right less often; insist: also where
        the run is uncalibrated.  verify: candidates to look at a second time; the recipe's if
        left out.
        """
        described = None
        if not isinstance(photo, str | Path | bytes):
            described = one_descriptor(photo)
            if verify:
                raise SettingError(
                    f"verify={verify} looks at pictures; ask with a photo, or leave it out"
                )
            verify = 0
        asked: dict[str, Any] = {
            "min_precision": min_precision, "insist": insist, "verify": verify,
        }  # fmt: skip
        if not self._asks_newest(asked):
            self._opened, self._opened_for = self.search(**asked), asked
        assert self._opened is not None
        if described is not None:
            return self._opened.answers(described[None], k)[0]
        self._check_describes(self._opened)
        return self._opened.answer(photo if isinstance(photo, bytes) else str(photo), k)

    def locate_many(
        self,
        photos: Asked | Sequence[str | Path],
        k: int = 5,
        *,
        min_precision: float | None = None,
        insist: bool = False,
        verify: int | None = None,
        centre: bool | None = None,
        every: float = 1.0,
        done: frozenset[str] = frozenset(),
        progress: Progress | None = None,
    ) -> Iterator[list[Located]]:
        """Say where many photos were taken, a block at a time and in their order.

        photos: files, folders, patterns, lists and videos; every: seconds between a video's
        frames.  done: names that need no answer any more.  centre: take out what sets all of them
        apart from the database, from 20 photos on; the recipe's if left out.
        """
        asked = photos if isinstance(photos, Asked) else find_asked(photos)
        engine = self.search(
            min_precision=min_precision, insist=insist, verify=verify, centre=centre,
            expected=len(asked.paths),
        )  # fmt: skip
        self._check_describes(engine)
        return locate_pictures(engine, asked.blocks(every, done), k, progress)

    def _check_describes(self, engine: Search) -> None:
        """Refuse photos where no network is to describe them, and say what the run needs."""
        if engine.describer is None:
            self.files.open_describer()

    def _asks_newest(self, asked: dict[str, Any]) -> bool:
        """Whether the engine of the last question is the one for the next."""
        opened = self._opened
        if opened is None or self._opened_for != asked:
            return False
        return Manifest.read(self.files / "index").generation == opened.index.manifest.generation

    def evaluate(
        self,
        queries: Photos,
        descriptors: Any = None,
        *,
        radius: float = 25.0,
        heading: float | None = None,
        frames: int | None = None,
        cache_folder: Path | None = None,
        out: Path | None = None,
        announce: "Announce | None" = None,
        **changes: Any,
    ) -> Scores:
        """Ask every query; keep scores.json, predictions.parquet and the places.

        They go into the run, or to `out` where one run is asked in several ways.  descriptors: of
        the queries, (Q, D), where others computed them; files are opened for a second look alone.
        """
        truth = Truth(radius, heading, frames)
        engine = self.search(radius=radius, heading=heading, expected=len(queries), **changes)
        if descriptors is not None:
            if engine.look is not None:
                refuse_absent(queries.paths, "photos of the queries")
            found = score(engine, queries, descriptors, truth, name=self.recipe.name)
            found.write(out or self.folder)
            return found
        self._check_describes(engine)
        found = evaluate(
            engine,
            queries,
            radius=radius,
            heading=heading,
            frames=frames,
            name=self.recipe.name,
            cache_folder=cache_folder,
            progress=announce("asking the queries") if announce else None,
        )
        found.write(out or self.folder)
        return found

    def cautions(self, found: Scores, **changes: Any) -> list[str]:
        """What to know of an evaluation, in sentences: what its confidences are not, say.

        changes: the settings of the engine that found the answers.
        """
        moved = (
            f"all of these photos differ from the database in one way (by {found.moved:.2f} of a "
            "descriptor's length), which was taken out before they were compared; --no-centre "
            "leaves it in"
        )
        return [moved] * bool(found.moved) + self._doubts(found, changes)

    def _doubts(self, found: Scores, changes: dict[str, Any]) -> list[str]:
        learned = self.calibration(found.truth.radius, found.truth.heading, **changes)
        if learned is None:
            asked = (self.files / "calibration.json").exists()
            other = f" ({self.files.rehearsal.way})" if asked else ""
            return [f"uncalibrated: nothing was rehearsed in this way of asking{other}"]
        said = f"uncalibrated: {learned.doubt}, so no other day could be rehearsed"
        away = found.predictions.sources["l2"]
        shifted = find_shift(1 - away**2 / 2, learned.likeness)
        return ([said] if learned.doubt else []) + ([shifted] if shifted else [])

    def judge(
        self, found: Scores, min_precision: float, *, insist: bool = False, **changes: Any
    ) -> Abstention:
        """What the run delivers when a precision is asked for; keeps abstention.json.

        insist: also where the run is uncalibrated.  changes: the settings of the engine that
        found the answers.
        """
        learned = self.calibration(found.truth.radius, found.truth.heading, **changes)
        least = least_confidence(min_precision, learned, insist)
        judged = abstain(found.predictions, min_precision, least)
        write_json(self.files / "abstention.json", asdict(judged), indent=1)
        return judged

    def scores(self, folder: Path | None = None) -> Scores:
        """The scores of the last evaluation; folder: where `evaluate(out=…)` put them."""
        return Scores.read(folder or self.folder)


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
