"""How to weigh evidence and how far to trust an answer, learned from held-out photos alone.

What the folds ask (`folds.py`, `scenarios.py`) fits the fused score
(`retrieval.learned_weights`), and the answers are kept for calibration (`retrieval.rehearsal`).
Four weights and a curve of three numbers: beyond some thousand photos more teach nothing, so some
of them are drawn, and memory stays bounded.

    V photos that ask · K folds
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache as once
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import SettingError, unknown_name
from evenplace.retrieval import Index, open_index
from evenplace.retrieval.calibration import Way
from evenplace.retrieval.learned_weights import Evidence, fit_fused
from evenplace.retrieval.rehearsal import KINDS, Rehearsal
from evenplace.retrieval.rerank import Fused, build_reranker
from evenplace.run.best_settings import (
    BEST,
    CHOICES,
    GIVEN,
    Choice,
    choose,
    kept_along,
    renew_index,
    with_axes,
    with_prototypes,
)
from evenplace.run.checksums import sealing
from evenplace.run.fold_answers import (
    CANDIDATES,
    ask_all_ways,
    draw_queries,
    evidence,
    limit_queries,
    rehearsed,
)
from evenplace.run.folds import RIGHT, Fold, stored_folds, trained_folds
from evenplace.run.point_cache import cached_points, indexed_points
from evenplace.run.run_folder import RunFolder
from evenplace.run.scenarios import no_other_day, on_other_days, on_other_passes
from evenplace.run.search_settings import LearnedLook
from evenplace.run.tune_second_look import LookTuner
from evenplace.training.loop import Announce
from evenplace.training.recipe import Recipe, parse_settings
from evenplace.training.specs import SearchSpec

FOLDS = 3
_ASK = 5_000  # photos that rehearse, over all folds, each in several ways
LOOK = 2_000  # of them, those that look twice, a tenth of a second each
_WEIGH = 4_000  # of them, those whose candidates fit the weights


@dataclass(frozen=True)
class Tuned:
    """What the folds taught: the fused score's weights if that is the rule, and the answers."""

    rehearsal: Rehearsal
    fused: Fused | None
    look: LearnedLook | None = None
    choices: tuple[Choice, ...] = ()  # of axes and prototypes, where the folds were asked for it

    def write(self, run: Path) -> None:
        with sealing(run, "fused.json", "look.json", "calibration.json"):
            (run / "look.json").unlink(missing_ok=True)
            if self.look is not None:
                self.look.write(run / "look.json")
            if self.fused is not None:
                self.fused.write(run / "fused.json")
            self.rehearsal.write(run / "calibration.json")  # last: where it is, tuning is over


def tuned_recipe(recipe: Recipe, trained: bool, settings: Sequence[str] = ()) -> Recipe:
    """The recipe with the search that tuning is for: folds, and of fixed descriptors the rule.

    settings: what was asked for, which comes before what is usual.
    """
    if recipe.search.describer:
        raise SettingError(
            f"{recipe.name} ranks by {recipe.search.describer}, which was not trained on these "
            "photos; tuning is for runs of one network, or of descriptors"
        )
    usual = [] if recipe.search.folds else [f"folds={FOLDS}"]
    told = {key.removeprefix("search.") for key in parse_settings(settings)}
    if usual and not trained and "rerank" not in told:
        usual += ["rerank=fused", "confidence=evidence"]  # which is about to be learned
    recipe = recipe.changed(usual).changed(settings)
    spec = recipe.search
    if not spec.folds:
        raise SettingError("folds=0 holds no photo out to learn from; use 2 or more")
    if trained and spec.axes != GIVEN and spec.prototypes not in (*CHOICES["prototypes"], BEST):
        raise SettingError(
            f"axes={spec.axes} moves descriptors, and prototypes={spec.prototypes} were trained "
            "where those were; add --set prototypes=means"
        )
    return recipe


def tune_search(run: RunFolder, settings: Sequence[str], **how: Any) -> Tuned | None:
    """Learn the search with some settings changed; recipe and index then follow what was found.

    how: as in `rehearse`.
    """
    known = run.recipe.as_dict()["search"]
    for key in parse_settings(settings):
        if key.removeprefix("search.") not in known:  # the network is trained, and stays
            raise unknown_name("setting of [search]", key, known)
    recipe = tuned_recipe(run.recipe, run.trained, settings)
    found = rehearse(run, recipe, **how)
    if found is not None:
        recipe = recipe.changed([f"{one.setting}={one.kind}" for one in found.choices])
        renew_index(run, recipe.search)
        if recipe != run.recipe:
            run.write_recipe(recipe)
    return found


def rehearse(
    run: RunFolder,
    recipe: Recipe,
    *,
    cache_folder: Path | None = None,
    announce: Announce | None = None,
    device: str = "auto",
) -> Tuned | None:
    """Hold photos out in turn, ask with them, learn; what was stopped goes on.

    A network that trains is trained without them; fixed descriptors are laid out without them.
    None where there is nothing to learn from: a town of two places.
    """
    home, spec, seed = run / "folds", recipe.search, recipe.training.seed
    cache, choices = cache_folder or run / "cache", []
    along: Callable[[str], list[Fold]]
    if run.trained:
        photos = run.trained_on
        trained = trained_folds(
            photos, run.places, recipe, home,
            cache_folder=cache, announce=announce, device=device,
        )  # fmt: skip
        known, along = cached_points(cache, spec.features), once(partial(with_axes, trained))
    else:
        index = open_index(run / "index")
        along = once(partial(_stored_along, index, spec, seed, home, announce))
        photos = index.photos
        cache, known = home, indexed_points(index, spec.features)
    doubt = no_other_day(photos)
    if spec.axes == BEST:
        choices.append(choose("axes", lambda kind: _answer(along(kind), spec, seed, doubt)))
        spec = replace(spec, axes=choices[-1].kind)
    folds = along(spec.axes)
    if spec.prototypes == BEST:

        def answer(kind: str) -> NDArray[np.bool_]:
            return _answer(with_prototypes(folds, kind), spec, seed, doubt)

        choices.append(choose("prototypes", answer))
        spec = replace(spec, prototypes=choices[-1].kind)
    folds = with_prototypes(folds, spec.prototypes)
    look = LookTuner(spec, cache, known, announce)
    learned = learn_search(folds, spec, seed, look, doubt=doubt)
    shutil.rmtree(home, ignore_errors=True)
    return learned and replace(learned, choices=tuple(choices))


def _stored_along(
    index: Index, spec: SearchSpec, seed: int, home: Path, announce: Announce | None, axes: str
) -> list[Fold]:
    keep = None if axes == GIVEN else kept_along(index, axes)
    return stored_folds(index, spec.folds, seed, home / axes, announce, keep)


def _answer(folds: list[Fold], spec: SearchSpec, seed: int, doubt: str) -> NDArray[np.bool_]:
    """Whether each photo that asks finds its match, with weights learned for these folds."""
    dice = np.random.default_rng(seed)
    folds = limit_queries(folds, dice)
    folds = folds if doubt else on_other_days(folds)
    rule = _fit_weights(folds, spec, dice) if spec.rerank == "fused" else spec.rerank
    parts = []
    for fold in folds:
        asked = fold.only(draw_queries(fold, int(_ASK / len(folds)), dice))
        found = rehearsed(asked, spec, rule, KINDS.index("taken"))
        parts.append(found["metres"] <= RIGHT.radius)
    return np.concatenate(parts)


def learn_search(
    folds: list[Fold],
    spec: SearchSpec,
    seed: int,
    look: LookTuner,
    *,
    doubt: str = "",
) -> Tuned | None:
    """Learn from what the folds ask; None without any.

    doubt: why no other day can be rehearsed.  Where it is empty, own days are hidden; where it is
    not, guessed passes, and only from what confidence is worth: the weights have not been shown to
    gain by that.
    """
    if not folds:
        return None
    dice, fused = np.random.default_rng(seed), None
    folds = limit_queries(folds, dice)
    folds = folds if doubt else on_other_days(folds)
    harder = on_other_passes(folds) if doubt else None
    if spec.rerank == "fused":
        fused = _fit_weights(folds, spec, dice)
    tuned = rehearse_folds(harder or folds, spec, fused, dice, doubt)
    if not spec.verify:
        return tuned
    drawn = [draw_queries(fold, int(LOOK / len(folds)), dice) for fold in folds]
    asked = fused or build_reranker(spec.rerank)
    learned = look.learn(folds, asked, drawn, harder)
    return replace(tuned, look=replace(learned, rehearsal=replace(learned.rehearsal, doubt=doubt)))


def rehearse_folds(
    folds: list[Fold],
    spec: SearchSpec,
    fused: Fused | None,
    dice: np.random.Generator,
    doubt: str = "",
) -> Tuned:
    """Keep what the folds answer with the weights there are."""
    rule = fused or spec.rerank
    parts = [ask_all_ways(fold, spec, rule, int(_ASK / len(folds)), dice) for fold in folds]
    answers = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    way = Way(
        repr(fused or build_reranker(spec.rerank)), spec.confidence, spec.shortlist, spec.exact
    )
    return Tuned(Rehearsal.of(answers, way, doubt), fused)


def _fit_weights(folds: list[Fold], spec: SearchSpec, dice: np.random.Generator) -> Fused:
    share = 1 / len(folds)
    drawn = [draw_queries(fold, int(_WEIGH * share), dice) for fold in folds]
    most = int(CANDIDATES * share)
    parts = [evidence(fold, spec, some, most) for fold, some in zip(folds, drawn, strict=True)]
    return fit_fused(Evidence.join(parts), without=spec.without)
