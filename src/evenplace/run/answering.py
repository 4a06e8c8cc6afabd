"""A run that answers, as a box does too: one photo, many, or the queries of an evaluation.

Knows nothing of training and indexing, which need torch: `run.py` adds them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from evenplace.describe.describer import Progress
from evenplace.errors import SettingError
from evenplace.evaluation import Scores, Truth, evaluate, score
from evenplace.evaluation.abstention import Abstention, abstain
from evenplace.photos.asked import Asked, find_asked
from evenplace.photos.files import write_json
from evenplace.photos.table import Photos
from evenplace.retrieval import Answer, Search
from evenplace.retrieval.calibration import Calibration, find_shift, least_confidence
from evenplace.retrieval.descriptor_files import one_descriptor
from evenplace.retrieval.manifest import Manifest
from evenplace.retrieval.second_look import refuse_absent
from evenplace.run.locate_many import Located, locate_pictures
from evenplace.run.run_folder import RunFolder
from evenplace.run.search_settings import open_search, search_settings
from evenplace.training.recipe import Recipe

if TYPE_CHECKING:  # what trains is loaded by the stage that needs it: see `box`
    from evenplace.training.loop import Announce


class AnsweringRun:
    """A run folder with an index, asked.

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
        engine = self._newest({"min_precision": min_precision, "insist": insist, "verify": verify})
        if described is not None:
            return engine.answers(described[None], k)[0]
        self._check_describes(engine)
        return engine.answer(photo if isinstance(photo, bytes) else str(photo), k)

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

    def _newest(self, asked: dict[str, Any]) -> Search:
        """The engine of the last question, if it is the one for the next; else another."""
        found, newest = self._opened, self.files / "index"
        if (
            found is None
            or self._opened_for != asked
            or Manifest.read(newest).generation != found.index.manifest.generation
        ):
            found = self.search(**asked)
            self._opened, self._opened_for = found, asked
        return found

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
        else:
            self._check_describes(engine)
            show = announce("asking the queries") if announce else None
            found = evaluate(
                engine, queries, **asdict(truth), name=self.recipe.name,
                cache_folder=cache_folder, progress=show,
            )  # fmt: skip
        found.write(out or self.folder)
        return found

    def cautions(self, found: Scores, **changes: Any) -> list[str]:
        """What to know of an evaluation, in sentences: what its confidences are not, say.

        changes: the settings of the engine that found the answers.
        """
        said = []
        if found.moved:
            said.append(
                "all of these photos differ from the database in one way (by "
                f"{found.moved:.2f} of a descriptor's length), which was taken out before they "
                "were compared; --no-centre leaves it in"
            )
        learned = self.calibration(found.truth.radius, found.truth.heading, **changes)
        if learned is None:
            asked = (self.files / "calibration.json").exists()
            other = f" ({self.files.rehearsal.way})" if asked else ""
            return [*said, f"uncalibrated: nothing was rehearsed in this way of asking{other}"]
        if learned.doubt:
            said.append(f"uncalibrated: {learned.doubt}, so no other day could be rehearsed")
        away = found.predictions.sources["l2"]
        shifted = find_shift(1 - away**2 / 2, learned.likeness)
        return [*said, shifted] if shifted else said

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
