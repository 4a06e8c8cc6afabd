"""How to weigh evidence and how far to trust an answer, learned from held-out photos alone.

What the folds ask (`folds.py`, `rehearsal.py`) fits the fused score (`retrieval.fusion`), and the
answers are kept for calibration (`retrieval.rehearsal`).  Four weights and a curve of three
numbers: beyond some thousand photos more teach nothing, so some of them are drawn, and memory
stays bounded.

    V photos that ask · K folds
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import SettingError
from evenplace.evaluation.evaluate import query_places
from evenplace.photos.nearby import turn
from evenplace.retrieval import Search, open_index
from evenplace.retrieval.answers import join_hits
from evenplace.retrieval.calibration import Way
from evenplace.retrieval.candidates import Pools
from evenplace.retrieval.fusion import Evidence, count_queries, fit_fused
from evenplace.retrieval.rehearsal import KINDS, Rehearsal
from evenplace.retrieval.rerank import Fused, build_reranker
from evenplace.run.checksums import sealing
from evenplace.run.folds import RIGHT, Fold, Ints, stored_folds, trained_folds
from evenplace.run.learned_look import LearnedLook
from evenplace.run.looks import learn_look
from evenplace.run.points import cached_points, indexed_points
from evenplace.run.prototype_choice import BEST, Choice, choose_prototypes, with_prototypes
from evenplace.run.rehearsal import (
    in_other_light,
    no_other_day,
    off_the_map,
    on_other_days,
    on_other_passes,
)
from evenplace.run.run_folder import RunFolder
from evenplace.training.loop import Announce
from evenplace.training.recipe import Recipe
from evenplace.training.specs import SearchSpec

FOLDS = 3
_ASK = 5_000  # photos that rehearse, over all folds, each in several ways
LOOK = 600  # of them, those that look twice, a tenth of a second each
_WEIGH = 4_000  # of them, those whose candidates fit the weights
_CANDIDATES = 1 << 24  # and so many candidates at most: 17 bytes each
_NOWHERE = 1e6  # metres off, of no answer


@dataclass(frozen=True)
class Tuned:
    """What the folds taught: the fused score's weights if that is the rule, and the answers."""

    rehearsal: Rehearsal
    fused: Fused | None
    look: LearnedLook | None = None
    choice: Choice | None = None  # of prototypes, where the folds were asked for it

    def write(self, run: Path) -> None:
        with sealing(run, "fused.json", "look.json", "calibration.json"):
            (run / "look.json").unlink(missing_ok=True)
            if self.look is not None:
                self.look.write(run / "look.json")
            if self.fused is not None:
                self.fused.write(run / "fused.json")
            self.rehearsal.write(run / "calibration.json")  # last: where it is, tuning is over


def tuned_recipe(recipe: Recipe, trained: bool) -> Recipe:
    """The recipe with the search that tuning is for: folds, and of fixed descriptors the rule."""
    spec = recipe.search
    if spec.describer:
        raise SettingError(
            f"{recipe.name} ranks by {spec.describer}, which was not trained on these photos; "
            "tuning is for runs of one network, or of descriptors"
        )
    if not spec.folds:
        spec = replace(spec, folds=FOLDS)
        if not trained:  # fixed descriptors answer by the fused score once it is learned
            spec = replace(spec, rerank="fused", confidence="evidence")
    return replace(recipe, search=spec)


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
    cache = cache_folder or run / "cache"
    if run.trained:
        photos = run.trained_on
        folds = trained_folds(
            photos, run.places, recipe, home,
            cache_folder=cache, announce=announce, device=device,
        )  # fmt: skip
        known = cached_points(cache, spec.features)
    else:
        index = open_index(run / "index")
        photos, folds = index.photos, stored_folds(index, spec.folds, seed, home, announce)
        cache, known = home, indexed_points(index, spec.features)
    look = partial(learn_look, folder=cache, known=known, announce=announce)
    doubt, choice = no_other_day(photos), None
    if spec.prototypes == BEST:
        show = announce("kinds of prototypes") if announce else None
        choice = choose_prototypes(folds, partial(_answer, spec=spec, seed=seed, doubt=doubt), show)
        spec = replace(spec, prototypes=choice.kind)
    folds = with_prototypes(folds, spec.prototypes)
    learned = learn_search(folds, spec, seed, look, doubt=doubt)
    shutil.rmtree(home, ignore_errors=True)
    return learned and replace(learned, choice=choice)


def _answer(folds: list[Fold], spec: SearchSpec, seed: int, doubt: str) -> NDArray[np.bool_]:
    """Whether each photo that asks finds its match, with weights learned for these folds."""
    folds, dice = folds if doubt else on_other_days(folds), np.random.default_rng(seed)
    rule = _fit_weights(folds, spec, dice) if spec.rerank == "fused" else spec.rerank
    parts = []
    for fold in folds:
        asked = fold.only(draw(fold, int(_ASK / len(folds)), dice))
        found = rehearsed(asked, spec, rule, KINDS.index("taken"))
        parts.append(found["metres"] <= RIGHT.radius)
    return np.concatenate(parts)


def learn_search(
    folds: list[Fold],
    spec: SearchSpec,
    seed: int,
    look: Callable[..., LearnedLook],
    *,
    doubt: str = "",
) -> Tuned | None:
    """Learn from what the folds ask; None without any.

    look: `learn_look`, which knows where points are.  doubt: why no other day can be rehearsed.
    Where it is empty, own days are hidden; where it is not, guessed passes, and only from what
    confidence is worth: the weights have not been shown to gain by that.
    """
    if not folds:
        return None
    folds, fused = folds if doubt else on_other_days(folds), None
    harder = on_other_passes(folds) if doubt else None
    dice = np.random.default_rng(seed)
    if spec.rerank == "fused":
        fused = _fit_weights(folds, spec, dice)
    tuned = rehearse_folds(harder or folds, spec, fused, dice, doubt)
    if not spec.verify:
        return tuned
    drawn = [draw(fold, int(LOOK / len(folds)), dice) for fold in folds]
    asked = fused or build_reranker(spec.rerank)
    learned = look(folds, spec, asked, drawn, harder=harder)
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
    parts = [_ask_all_ways(fold, spec, rule, int(_ASK / len(folds)), dice) for fold in folds]
    answers = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    way = Way(
        repr(fused or build_reranker(spec.rerank)), spec.confidence, spec.shortlist, spec.exact
    )
    return Tuned(Rehearsal.of(answers, way, doubt), fused)


def _fit_weights(folds: list[Fold], spec: SearchSpec, dice: np.random.Generator) -> Fused:
    share = 1 / len(folds)
    drawn = [draw(fold, int(_WEIGH * share), dice) for fold in folds]
    most = int(_CANDIDATES * share)
    parts = [evidence(fold, spec, some, most) for fold, some in zip(folds, drawn, strict=True)]
    return fit_fused(Evidence.join(parts), without=spec.without)


def _ask_all_ways(
    fold: Fold, spec: SearchSpec, rule: str | Fused, most: int, dice: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    """What one fold answers, photo by photo, in every way of asking that it has."""
    asked = fold.only(draw(fold, most, dice))
    lit = in_other_light(asked)
    ways = [("taken", asked), ("away", off_the_map(asked))]
    ways += [] if lit is None else [("light", lit)]
    parts = [rehearsed(way, spec, rule, KINDS.index(kind)) for kind, way in ways if len(way.rows)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def draw(fold: Fold, most: int, dice: np.random.Generator) -> Ints:
    """All queries in their order, or some at random where there are more."""
    many = len(fold.rows)
    return np.arange(many) if many <= most else dice.permutation(many)[:most]


def rehearsed(
    fold: Fold, spec: SearchSpec, rule: str | Fused, kind: int
) -> dict[str, NDArray[np.float64]]:
    """The answers of one way of asking, column by column as a `Rehearsal` has them."""
    engines = [
        Search(
            fold.index,
            shortlist=spec.shortlist,
            rerank=rule,
            confidence=spec.confidence,
            exact=spec.exact,
            facing=facing,
        )
        for facing in (False, True)
    ]
    found, facing = (
        join_hits([batch.hits for _, batch in fold.search(engine)]) for engine in engines
    )
    rows = found.rows[:, 0]
    answer = fold.index.photos[np.maximum(rows, 0)]
    metres = np.linalg.norm(answer.positions - fold.queries.positions, axis=1)
    metres[(rows < 0) | (answer.zone != fold.queries.zone)] = _NOWHERE
    columns = {
        "confidence": found.confidence,
        "facing": facing.confidence,
        "metres": metres,
        "degrees": np.nan_to_num(turn(answer.heading, fold.queries.heading)),
        "likeness": np.nan_to_num(found.cosines[:, 0]),
        "tier": query_places(engines[0], fold.queries, RIGHT.radius)[1],
        "kind": np.full(len(rows), kind),
    }
    return {name: np.asarray(column, np.float64) for name, column in columns.items()}


def evidence(
    fold: Fold, spec: SearchSpec, chosen: Ints | None = None, most: int = _CANDIDATES
) -> Evidence:
    """What the fused score would weigh for each photo that asks, of `most` candidates or so."""
    engine = Search(fold.index, shortlist=spec.shortlist, exact=spec.exact)
    places = query_places(engine, fold.queries, RIGHT.radius)[0]
    counts = count_queries(places, spec.favour)
    parts, held = [], 0
    for some, batch in fold.search(engine, chosen):
        parts.append(_weigh(fold, some, batch.pools, counts[some]))
        held += len(parts[-1].right)
        if held > most:
            break
    return Evidence.join(parts)


def _weigh(fold: Fold, asked: Ints, pools: Pools, counts: NDArray[np.float32]) -> Evidence:
    log_sizes = np.log(np.maximum(fold.index.sizes, 1)).astype(np.float32)
    return Evidence(
        cosines=pools.cosines,
        impostors=np.asarray(fold.index.impostors[pools.rows], np.float32),
        log_posterior=pools.log_posterior,
        log_sizes=np.append(log_sizes, np.float32(0))[pools.places],  # place -1 finds the last
        right=RIGHT.right(fold.queries, fold.index.photos, asked[pools.of], pools.rows),
        cuts=pools.cuts,
        counts=counts,
    )
