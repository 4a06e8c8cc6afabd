"""Declared systems → runs: trained once, asked as often as needed, taken up where they stopped.

    out/data/       drawn towns
    out/cache/      the frozen trunk's output, shared by all runs
    out/runs/       one folder a training: model, index
    out/answers/    one folder a way to ask a training: scores.json, predictions.parquet
    out/NAME-DATA/  tables.md and figures/ of one study (`write`); several studies share the rest

Folders are named by a digest of everything that made them, so a changed setting is another folder
and nothing stale is ever read.
"""

import hashlib
import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from evenplace.describe.describer import Progress
from evenplace.evaluation import Scores, evaluate, join_scores
from evenplace.evaluation.scores import VERSION
from evenplace.networks.network import build_network
from evenplace.retrieval.rerank import build_reranker
from evenplace.run.run import Run
from evenplace.study.data import Split
from evenplace.study.spec import Study, System
from evenplace.training.loop import Announce
from evenplace.training.recipe import Recipe, find_recipe
from evenplace.training.trunk_cache import ViewSettings, cache_trunk

SPENT, TRAINED = "seconds.txt", "trained.txt"
ENGINE = ("shortlist", "exact", "confidence", "min_precision", "verify", "features", "centre")


@dataclass(frozen=True)
class Outcome:
    """A system with its scores: one a seed, and all queries together."""

    system: System
    parts: tuple[Scores, ...]
    runs: tuple[Path, ...]  # the training behind each part
    joint: Scores
    answers: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Findings:
    """Everything a study found."""

    study: Study
    splits: tuple[Split, ...]
    outcomes: tuple[Outcome, ...]

    def of(self, name: str) -> Outcome:
        return next(one for one in self.outcomes if one.system.name == name)

    def only(self, names: Sequence[str]) -> "Findings":
        """What was found of some systems; of all if none is named."""
        if not names:
            return self
        study = self.study.exactly(names)
        outcomes = (replace(self.of(one.name), system=one) for one in study.systems)
        return replace(self, study=study, outcomes=tuple(outcomes))

    @property
    def folders(self) -> set[Path]:
        """Of its trainings and of its answers; studies share some."""
        return {folder for one in self.outcomes for folder in (*one.runs, *one.answers)}


def minutes(folders: Iterable[Path]) -> float:
    """Minutes of one core that trainings and answers took, trunk passes included."""
    files = [folder / SPENT for folder in folders]
    return sum(float(file.read_text()) for file in files if file.exists()) / 60


def run_study(
    study: Study,
    splits: Sequence[Split],
    out: Path,
    *,
    settings: Sequence[str] = (),
    announce: Announce | None = None,
) -> Findings:
    """Train, index and ask every system on every split; what is there already is used again."""
    one_map = len({split.map for split in splits}) == 1
    outcomes = []
    for system in study.systems:
        work = _Work(out, tuple(splits), tuple(settings), _prefixed(announce, system.name))
        runs = [work.train(system.build_recipe(settings, split.seed), split) for split in splits]
        asked = [work.ask(system, run, split, study.timed)
                 for run, split in zip(runs, splits, strict=True)]  # fmt: skip
        parts = [replace(Run(run).scores(answers), name=system.name)
                 for run, answers in zip(runs, asked, strict=True)]  # fmt: skip
        joint = parts[0] if len(parts) == 1 else join_scores(parts, one_map=one_map)
        outcomes.append(Outcome(system, tuple(parts), tuple(runs), joint, tuple(asked)))
    return Findings(study, tuple(splits), tuple(outcomes))


@dataclass(frozen=True)
class _Work:
    """The folder that studies share, and what all systems of one have in common."""

    out: Path
    splits: tuple[Split, ...]
    settings: tuple[str, ...]
    announce: Announce | None

    @property
    def cache(self) -> Path:
        return self.out / "cache"

    def train(self, recipe: Recipe, split: Split) -> Path:
        """Train once, whatever is asked of it afterwards."""
        name = f"{_slug(recipe.name)}-{_digest(recipe.as_dict(), split.trained_on)}"
        run = self.out / "runs" / name
        if not (run / TRAINED).exists():
            with _timed(run):
                self._share_trunk(recipe)
                Run(run).train(
                    split.train, recipe=recipe, cache_folder=self.cache, announce=self.announce
                )
            (run / TRAINED).write_text(split.trained_on)
        return run

    def ask(self, system: System, run: Path, split: Split, timed: int) -> Path:
        """Ask once, whatever systems are called that are asked alike; the folder of the answers.

        What was answered without times is asked again where times are wanted.
        """
        usual, truth = asdict(Run(run).recipe.search), split.truth
        asked = {key: value for key, value in system.search.items() if usual.get(key) != value}
        folder = self.out / "answers" / f"{run.name}-{_digest(asked, split.digest, VERSION)}"
        if (folder / ("timed.txt" if timed else "scores.json")).exists():
            return folder
        with _timed(folder):
            self._index(run, split)
            engine = Run(run).search(
                radius=truth.radius, heading=truth.heading, **engine_settings(system.search)
            )
            found = evaluate(
                engine,
                split.queries,
                radius=truth.radius,
                heading=truth.heading,
                frames=truth.frames,
                name=system.name,
                timed=timed,
                cache_folder=self.cache,
                progress=self.announce("asking") if self.announce else None,
            )
            found.write(folder)
        if timed:
            (folder / "timed.txt").write_text(f"{timed}")
        return folder

    def _share_trunk(self, recipe: Recipe) -> None:
        """Run the frozen trunk once over all photos: every split is a part of them."""
        parts = [part for one in self.splits for part in (one.train, one.database, one.queries)]
        if recipe.training.cached:
            show = self.announce("frozen trunk") if self.announce else None
            paths = sorted({path for part in parts for path in part.paths})
            cache_trunk(build_network(recipe.network), paths, ViewSettings(), self.cache, show)

    def _index(self, run: Path, split: Split) -> None:
        """Lay out the split's database, unless it is the one the run has.

        Where a second network ranks, it is trained by its own recipe first.
        """
        mark = run / "indexed.txt"
        if mark.exists() and mark.read_text() == split.searched_in:
            return
        mark.unlink(missing_ok=True)
        if ranker := Run(run).recipe.search.describer:
            second = find_recipe(ranker).changed([*self.settings, f"seed={split.seed}"])
            Run(run).files.choose_describer(str(self.train(second, split)))
        Run(run).index(split.database, cache_folder=self.cache, announce=self.announce)
        mark.write_text(split.searched_in)


@contextmanager
def _timed(folder: Path) -> Iterator[None]:
    """Note the seconds of one core: what a study costs however busy the machine was."""
    began = time.process_time()
    yield
    (folder / SPENT).write_text(f"{time.process_time() - began:.1f}")


def engine_settings(search: Any) -> dict[str, Any]:
    """Settings of the engine; those of the reranker go into one built with them."""
    engine = {key: value for key, value in search.items() if key in ENGINE}
    own = {key: value for key, value in search.items() if key not in (*ENGINE, "rerank")}
    if "rerank" in search:
        engine["rerank"] = build_reranker(search["rerank"], **own) if own else search["rerank"]
    return engine


def _prefixed(announce: Announce | None, name: str) -> Announce | None:
    if announce is None:
        return None

    def tell(what: str) -> Progress:
        return announce(f"{name}: {what}")

    return tell


def _digest(*parts: Any) -> str:
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "system"
