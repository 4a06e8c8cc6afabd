"""What matches in the pictures are worth, and how sure they make an answer, learned on the folds.

Photos that ask look at their best candidates once; the weights of the second look are fitted to
that (`retrieval.second_look`), then the witnesses of each answer are weighed
(`retrieval.confidence`).  Some ask again with all that is near them hidden: they stand
for photos taken off the map, and whatever they are answered is wrong.

    V photos that ask · P candidates · N candidates looked at
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Floats, Ints
from evenplace.describe.decoding import in_order
from evenplace.describe.onnx_engine import own_cores
from evenplace.evaluation.evaluate import query_places
from evenplace.photos.nearby import turn
from evenplace.retrieval import Search
from evenplace.retrieval.calibration import Way
from evenplace.retrieval.candidates import Pool, Ranking
from evenplace.retrieval.confidence import (
    LearnedConfidence,
    build_confidence,
    fit_confidence,
    same_answer,
    witnesses,
)
from evenplace.retrieval.learned_weights import Looked, fit_look
from evenplace.retrieval.local_features import build_local_features
from evenplace.retrieval.packed_features import KnownRows, Packing
from evenplace.retrieval.point_matching import verify
from evenplace.retrieval.rehearsal import KINDS, Rehearsal
from evenplace.retrieval.rerank import Reranker
from evenplace.retrieval.second_look import FIRST, LookWeights, say_look
from evenplace.run.folds import RIGHT, Fold
from evenplace.run.point_cache import cached_points, keep_points
from evenplace.run.scenarios import off_the_map
from evenplace.run.search_settings import LearnedLook
from evenplace.training.loop import Announce
from evenplace.training.specs import SearchSpec

_OFTEN = 4  # every fourth photo that asks asks again off the map
_NOWHERE = 1e6  # metres off, of no answer


@dataclass(frozen=True)
class _Case:
    """A photo that asked: its candidates, and how far off each is."""

    path: str
    pool: Pool
    ranking: Ranking  # by the rule alone
    looked: list[str]  # paths of the N best
    spots: NDArray[np.float64]  # (P, 3)
    headings: Floats  # (P,)
    metres: NDArray[np.float64]  # (P,) from the photo to each candidate
    degrees: NDArray[np.float64]  # (P,)
    tier: int  # of the photo's place
    kind: str = "taken"  # of KINDS


@dataclass(frozen=True)
class LookTuner:
    """Learns and rehearses the second look of a recipe's [search].

    known: points of photos; folder: where those of others are kept.
    """

    spec: SearchSpec
    folder: Path
    known: KnownRows
    announce: Announce | None = None

    def learn(
        self,
        folds: list[Fold],
        rule: Reranker,
        chosen: list[Ints],
        harder: list[Fold] | None = None,
    ) -> LearnedLook:
        """Learn the second look, and rehearse it.

        chosen: the queries of each fold that ask.  harder: the same queries, seeing less; they
        rehearse there instead.
        """
        looked = self.look(folds, rule, chosen)
        weights = fit_look([_looked(*one) for one in looked if one[0].kind == "taken"])
        answers = rank(looked, weights)
        heard = np.array([_hear(witnesses, *one, facing=False) for one in answers])
        right = np.array([_off(*one)[0] <= RIGHT.radius for one in answers], bool)
        learned = fit_confidence(heard, right)
        found = LearnedLook(weights, learned, self._rehearsal(answers, rule, weights, learned))
        if harder is None:
            return found
        known = self.known | cached_points(self.folder, self.spec.features)  # those just found
        return replace(self, known=known).rehearse(found, harder, rule, chosen)

    def rehearse(
        self, look: LearnedLook, folds: list[Fold], rule: Reranker, chosen: list[Ints]
    ) -> LearnedLook:
        """The same look with what it answers to these queries."""
        answers = rank(self.look(folds, rule, chosen, look.weights), look.weights)
        rehearsal = self._rehearsal(answers, rule, look.weights, look.confidence)
        return replace(look, rehearsal=rehearsal)

    def look(
        self,
        folds: list[Fold],
        rule: Reranker,
        chosen: list[Ints],
        weights: LookWeights | None = None,
    ) -> list[tuple[_Case, Floats]]:
        """Photos that ask, some of them again off the map, and the points they share with the best.

        weights: look no further than these would; at all that is to be looked at unless told.
        nan: not looked at.
        """
        asked = list(zip(folds, chosen, strict=True))
        cases = [case for fold, some in asked for case in _ask(fold, self.spec, rule, some)]
        away = [off_the_map(fold.only(some[::_OFTEN])) for fold, some in asked]
        lost = [case for fold in away for case in _ask(fold, self.spec, rule)]  # none can be right
        cases += [replace(c, metres=np.full(len(c.metres), _NOWHERE), kind="away") for c in lost]
        kind, announce = build_local_features(self.spec.features), self.announce
        packing = Packing(kind.dim)
        paths = sorted({path for case in cases for path in (case.path, *case.looked)})
        show = announce("finding points in the photos") if announce else None
        packed = keep_points(self.spec.features, paths, self.known, self.folder, show)
        show = announce("comparing their points") if announce else None
        found: list[tuple[_Case, Floats]] = []

        def count(case: _Case) -> Floats:
            own, looked = packing.unpack(packed[case.path]), case.looked
            inliers = np.full(len(looked), np.nan, np.float32)
            for row, path in enumerate(looked):
                if row % FIRST == 0 and weights is not None and weights.settles(inliers):
                    break
                inliers[row] = verify(own, packing.unpack(packed[path]), kind).inliers
            return inliers

        for inliers in in_order(count, cases, own_cores()):
            found.append((cases[len(found)], inliers))
            if show:
                show(len(found), len(cases))
        return found

    def _rehearsal(
        self,
        answers: Sequence[tuple[_Case, Ranking]],
        rule: Reranker,
        weights: LookWeights,
        learned: LearnedConfidence,
    ) -> Rehearsal:
        """How sure each answer is, how far off, and the way in which it was found."""
        spec, evidence = self.spec, self.spec.confidence == "evidence"
        judge = learned if evidence else build_confidence(spec.confidence)
        way = Way(
            rule=repr(rule),
            source=repr(learned) if evidence else spec.confidence,
            shortlist=spec.shortlist,
            exact=spec.exact,
            look=say_look(spec.features, spec.verify, weights),
        )
        sure, facing = ([_hear(judge, *one, facing=f) for one in answers] for f in (False, True))
        off = np.array([_off(*one) for one in answers]).reshape(-1, 2)
        columns = {
            "confidence": sure,
            "facing": facing,
            "metres": off[:, 0],
            "degrees": off[:, 1],
            "likeness": [case.pool.cosines[answer.order[0]] for case, answer in answers],
            "tier": [case.tier for case, _ in answers],
            "kind": [KINDS.index(case.kind) for case, _ in answers],
        }
        return Rehearsal.of({n: np.array(c, np.float64) for n, c in columns.items()}, way)


def rank(
    looked: Sequence[tuple[_Case, Floats]], weights: LookWeights
) -> list[tuple[_Case, Ranking]]:
    return [(case, weights.rank(case.ranking, inliers)) for case, inliers in looked]


def _ask(fold: Fold, spec: SearchSpec, rule: Reranker, chosen: Ints | None = None) -> list[_Case]:
    """What the rule makes of each query; those without a candidate are left out."""
    engine = Search(fold.index, shortlist=spec.shortlist, rerank=rule, exact=spec.exact)
    tiers = query_places(engine, fold.queries, RIGHT.radius)[1]
    return [
        _case(fold, query, batch.pools[at], batch.rankings[at], spec.verify, int(tiers[query]))
        for some, batch in fold.search(engine, chosen)
        for at, query in enumerate(some.tolist())
        if batch.pools.sizes[at]
    ]


def _case(fold: Fold, query: int, pool: Pool, ranking: Ranking, count: int, tier: int) -> _Case:
    index, rows, asked = fold.index, pool.rows, fold.queries[[query]]
    spots, headings = index.spots(rows), index.photos.heading[rows]
    metres = fold.metres_off(query, np.linalg.norm(spots - asked.points, axis=1))
    return _Case(
        path=asked.paths[0],
        pool=pool,
        ranking=ranking,
        looked=index.paths(rows[ranking.order[:count]]),
        spots=spots,
        headings=headings,
        metres=np.minimum(metres, _NOWHERE),
        degrees=np.nan_to_num(turn(headings, asked.heading)).astype(np.float64),
        tier=tier,
    )


def _looked(case: _Case, inliers: Floats) -> Looked:
    best = slice(len(inliers))
    right = case.metres[case.ranking.order[best]] <= RIGHT.radius
    return Looked(case.ranking.distances[best], inliers, right)


def _off(case: _Case, answer: Ranking) -> tuple[float, float]:
    """Metres and degrees from the photo to its answer."""
    best = answer.order[0]
    return float(case.metres[best]), float(case.degrees[best])


def _hear(judge: Callable[..., Any], case: _Case, answer: Ranking, *, facing: bool) -> Any:
    """What a judge says of an answer; facing: where headings matter."""
    headings = case.headings if facing else None
    same = same_answer(int(answer.order[0]), case.spots, headings)
    return judge(case.pool, answer, case.spots, same)
