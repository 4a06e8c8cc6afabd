"""Declared systems → runs: trained once, asked as often as needed, taken up where they stopped.

    out/data/       drawn towns
    out/cache/      the frozen trunk's output, shared by all runs
    out/runs/       one folder a training: model, index
    out/answers/    one folder a system and seed: scores.json, predictions.parquet
    out/NAME-DATA/  tables.md and figures/ of one study (`write`); several studies share the rest

Folders are named by a digest of everything that made them, so a changed setting is another folder
and nothing stale is ever read.
"""

import hashlib
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenplace.describe.describer import Progress
from evenplace.evaluation import Scores, evaluate, join_scores
from evenplace.evaluation.scores import VERSION
from evenplace.networks.network import build_network
from evenplace.retrieval.rerank import build_reranker
from evenplace.run.run import Run, write_scores
from evenplace.study.data import Split
from evenplace.study.spec import Study, System
from evenplace.training.cache import ViewSettings, cache_trunk
from evenplace.training.loop import Announce
from evenplace.training.recipe import Recipe, find_recipe

SPENT = "seconds.txt"
ENGINE = ("shortlist", "exact", "neighbours", "confidence", "min_precision", "verify", "features")


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

    def minutes(self) -> float:
        """Minutes of one core that its trainings and answers took, shared ones once."""
        folders = {folder for one in self.outcomes for folder in (*one.runs, *one.answers)}
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
        tell = _prefixed(announce, system.name)
        parts, runs, answers = [], [], []
        for split in splits:
            recipe = system.build_recipe(settings, split.seed)
            _share_cache(recipe, splits, out, tell)
            run = _train(recipe, split, out, tell)
            runs.append(run)
            answers.append(_answers(system, run, split, out, study.timed))
            parts.append(_ask(system, run, split, answers[-1], out, study.timed, tell))
        joint = parts[0] if len(parts) == 1 else join_scores(parts, one_map=one_map)
        outcomes.append(Outcome(system, tuple(parts), tuple(runs), joint, tuple(answers)))
    return Findings(study, tuple(splits), tuple(outcomes))


def _share_cache(
    recipe: Recipe, splits: Sequence[Split], out: Path, announce: Announce | None
) -> None:
    """Run the frozen trunk once over all photos: every split is a part of them."""
    parts = [part for one in splits for part in (one.train, one.database, one.queries)]
    paths = sorted({path for part in parts for path in part.paths})
    mark = out / "cache" / f"{_digest(recipe.network.as_dict(), paths)}.done"
    if recipe.training.cached and not mark.exists():
        show = announce("frozen trunk") if announce else None
        network = build_network(recipe.network)
        cache_trunk(network, paths, ViewSettings(), out / "cache", show)
        mark.touch()


def _train(recipe: Recipe, split: Split, out: Path, announce: Announce | None) -> Path:
    """Train once, whatever is asked of it afterwards."""
    run = out / "runs" / f"{_slug(recipe.name)}-{_digest(recipe.as_dict(), split.trained_on)}"
    if not (run / "trained.txt").exists():
        began = time.process_time()
        Run(run).train(split.train, recipe=recipe, cache_folder=out / "cache", announce=announce)
        _note_time(run, began)
        (run / "trained.txt").write_text(split.trained_on)
    return run


def _note_time(folder: Path, began: float) -> None:
    """Seconds of one core: what a study costs however busy the machine was."""
    (folder / SPENT).write_text(f"{time.process_time() - began:.1f}")


def _index(run: Path, split: Split, out: Path, announce: Announce | None) -> None:
    """Lay out the split's database, unless it is the one the run has.

    Where a second network ranks, it is trained by its own recipe first.
    """
    mark = run / "indexed.txt"
    if not mark.exists() or mark.read_text() != split.searched_in:
        mark.unlink(missing_ok=True)
        if ranker := Run(run).recipe.search.describer:
            recipe = find_recipe(ranker).changed([f"seed={split.seed}"])
            Run(run).files.choose_describer(str(_train(recipe, split, out, announce)))
        Run(run).index(split.database, cache_folder=out / "cache", announce=announce)
        mark.write_text(split.searched_in)


def _answers(system: System, run: Path, split: Split, out: Path, timed: int) -> Path:
    key = _digest(run.name, dict(system.search), split.digest, VERSION, timed)
    return out / "answers" / f"{_slug(system.name)}-{split.seed}-{key}"


def _ask(
    system: System,
    run: Path,
    split: Split,
    folder: Path,
    out: Path,
    timed: int,
    announce: Announce | None,
) -> Scores:
    if (folder / "scores.json").exists():
        return replace(Run(run).scores(folder), name=system.name)
    began = time.process_time()
    _index(run, split, out, announce)
    found = evaluate(
        Run(run).search(
            radius=split.truth.radius,
            heading=split.truth.heading,
            **engine_settings(system.search),
        ),
        split.queries,
        radius=split.truth.radius,
        heading=split.truth.heading,
        frames=split.truth.frames,
        name=system.name,
        timed=timed,
        cache_folder=out / "cache",
        progress=announce("asking") if announce else None,
    )
    write_scores(found, folder)
    _note_time(folder, began)
    return found


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
