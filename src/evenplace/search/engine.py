"""Query → hits: the classifier keeps a few places, a rule ranks their photos.

Q queries · C places · D descriptor · P candidates · n shortlisted places
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from evenplace.errors import IndexFileError, SettingError
from evenplace.index import Index, fingerprint
from evenplace.models.describe import Progress
from evenplace.models.loading import load_batches, picture_pixels
from evenplace.models.network import PlaceNetwork
from evenplace.photos.table import Skipped
from evenplace.places.tiers import TIERS
from evenplace.search.calibration import Calibration
from evenplace.search.confidence import Confidence, build_confidence
from evenplace.search.hits import STAGES, Answer, Hit, Hits, PlaceGuess, Position
from evenplace.search.position import NOWHERE, fuse_position
from evenplace.search.rerank import Database, Pool, Ranking, Reranker, build_reranker

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
_NOTHING = Ranking(np.empty(0, np.int64), np.empty(0, np.float32))


@dataclass(frozen=True)
class _Answer:
    rows: Rows
    distances: Floats
    shortlist: Rows
    confidence: float
    pool: Rows
    elapsed_ms: dict[str, float]
    posterior: Floats
    position: Position


class Search:
    """An index opened for questions.

    shortlist: places the classifier keeps; all of them when there are fewer.  exact: rank the
    whole database instead, photos outside every place included.  Without a model it answers
    descriptors only.  min_precision: abstain from answers less sure than the calibration asks
    for that share of right ones.
    """

    def __init__(
        self,
        index: Index,
        model: PlaceNetwork | None = None,
        *,
        shortlist: int = 20,
        rerank: str | Reranker = "l2",
        confidence: str | Confidence = "mass",
        exact: bool = False,
        min_precision: float | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        if shortlist < 1:
            raise SettingError(f"shortlist={shortlist} keeps no place; use 1 or more")
        if model is not None and fingerprint(model) != index.model:
            raise IndexFileError(
                f"{index.folder} was written by model {index.model}, this one is "
                f"{fingerprint(model)}; index the database again with this model"
            )
        self.index, self.model, self.exact = index, model, exact
        self.calibration = calibration
        self.min_precision, self.least = min_precision, _least(min_precision, calibration)
        rule = build_reranker(rerank) if isinstance(rerank, str) else rerank
        self.rule = rule.fit(Database(index.descriptors, index.starts, index.impostors))
        self.confidence: Confidence = (
            build_confidence(confidence) if isinstance(confidence, str) else confidence
        )
        self.reachable = np.flatnonzero(index.sizes)  # (C',) places with database photos
        if not exact and not len(self.reachable):
            raise IndexFileError(
                f"{index.folder} holds no photo in a place the model knows; "
                "check that database and training photos are of one city, or pass exact=True"
            )
        self.prototypes = np.ascontiguousarray(index.prototypes[self.reachable])  # (C', D)
        self.shortlist = min(shortlist, len(self.reachable))
        self.positions = index.photos.positions
        self.labels = index.labels

    def locate(self, photo: str | bytes, k: int = 5) -> list[Hit]:
        """Say where a photo was taken: the k best database photos, best first."""
        return self.hits(self.search(self._describe(photo), k), 0)

    def answer(self, photo: str | bytes, k: int = 5) -> Answer:
        """Say where a photo was taken, how sure that is, and what else it might be."""
        began = time.perf_counter()
        descriptor = self._describe(photo)
        spent = (time.perf_counter() - began) * 1e3
        answer = self.answers(descriptor, k)[0]
        answer.elapsed_ms["extract"] = spent
        return answer

    def answers(self, descriptors: Floats, k: int = 5) -> list[Answer]:
        """The same for queries that are already descriptors.  descriptors: (Q, D) unit."""
        found = self.search(descriptors, k)
        return [self._explain(found, query) for query in range(len(found))]

    def _describe(self, photo: str | bytes) -> Floats:
        if self.model is None:
            raise SettingError("this engine has no model; ask it with descriptors: search()")
        pixels = picture_pixels(photo, self.model.image_size)
        with torch.inference_mode():
            descriptor: Floats = self.model.eval()(pixels[None]).numpy()
        return descriptor

    def _explain(self, found: Hits, query: int) -> Answer:
        hits, confidence = self.hits(found, query), float(found.confidence[query])
        reason = self._doubt(hits, confidence)
        return Answer(
            tuple(hits),
            self._guesses(found, query),
            found.positions[query],
            confidence,
            bool(reason),
            reason,
            {stage: float(spent[query]) for stage, spent in found.elapsed_ms.items()},
        )

    def _doubt(self, hits: list[Hit], confidence: float) -> str:
        if not hits:
            return "the shortlisted places hold no photo to compare with"
        if confidence >= self.least:
            return ""
        return (
            f"confidence {confidence:.2f} is below the {min(self.least, 1):.2f} that "
            f"{self.min_precision:.0%} precision needs"
        )

    def _guesses(self, found: Hits, query: int) -> tuple[PlaceGuess, ...]:
        places, sizes = self.index.places, self.index.sizes
        return tuple(
            PlaceGuess(
                int(place),
                float(chance),
                (float(places.centres[place, 0]), float(places.centres[place, 1])),
                int(sizes[place]),
                TIERS[places.tiers[place]],
            )
            for place, chance in zip(found.shortlist[query], found.posterior[query], strict=True)
        )

    def hits(self, found: Hits, query: int) -> list[Hit]:
        """The answers to one of several queries, as a person reads them."""
        rows = found.rows[query][found.rows[query] >= 0]
        paths = self.index.photos[rows].paths
        return [
            Hit(
                path,
                (float(self.positions[row, 0]), float(self.positions[row, 1])),
                float(distance),
                int(self.labels[row]),
                float(found.confidence[query]),
                int(row),
            )
            for path, row, distance in zip(paths, rows, found.distances[query], strict=False)
        ]

    def search(
        self,
        descriptors: Floats,
        k: int = 20,
        *,
        without: Sequence[Rows] | None = None,
        progress: Progress | None = None,
    ) -> Hits:
        """Answer queries that are already descriptors.

        descriptors: (Q, D) unit.  without: for each query, rows of the index it must not see.
        """
        self._check(descriptors, k)
        hidden = [np.empty(0, np.int64)] * len(descriptors) if without is None else without
        answers: list[_Answer] = []
        for number, (query, unseen) in enumerate(zip(descriptors, hidden, strict=True)):
            answers.append(self._answer(np.asarray(query, np.float32), k, unseen))
            if progress:
                progress(number + 1, len(descriptors))
        return self._calibrated(_stack(answers, k))

    def _calibrated(self, found: Hits) -> Hits:
        if self.calibration is None:
            return found
        answered = (found.rows[:, 0] >= 0) if len(found) else np.empty(0, bool)
        sure = np.where(answered, self.calibration(found.confidence), 0).astype(np.float32)
        return replace(found, confidence=sure)

    def _answer(self, query: Floats, k: int, unseen: Rows) -> _Answer:
        clock = [time.perf_counter()]
        cosines = self.prototypes @ query  # (C',)
        logits = self.index.scale * cosines
        best = _largest(cosines, self.shortlist)
        places = self.reachable[best]
        log_posterior = logits - _log_sum(logits)
        clock.append(time.perf_counter())
        pool = self._gather(query, places, log_posterior)
        if len(unseen):
            pool = pool[~np.isin(pool.rows, unseen)]
        clock.append(time.perf_counter())
        ranking = self.rule.rank(pool) if len(pool) else _NOTHING
        spots = self.positions[pool.rows]
        confidence = self.confidence(pool, ranking, spots) if len(pool) else 0.0
        position = (
            fuse_position(spots, pool.cosines, int(ranking.order[0])) if len(pool) else NOWHERE
        )
        clock.append(time.perf_counter())
        spent = (np.diff(clock) * 1e3).tolist()
        return _Answer(
            pool.rows[ranking.order[:k]],
            ranking.distances[:k],
            places,
            confidence,
            pool.rows,
            dict(zip(("classify", "gather", "rank"), spent, strict=True)),
            np.exp(log_posterior[best]),
            position,
        )

    def _gather(self, query: Floats, places: Rows, log_posterior: Floats) -> Pool:
        """Collect the photos of the places, and how each resembles the query."""
        starts = self.index.starts
        if self.exact:
            rows = np.arange(len(self.index))
        else:
            rows = np.concatenate([np.arange(starts[p], starts[p + 1]) for p in places])
        labels = self.labels[rows]
        everywhere = np.full(len(starts), log_posterior.min(initial=0), np.float32)
        everywhere[self.reachable] = log_posterior
        cosines = self.index.descriptors[rows].astype(np.float32) @ query
        return Pool(rows, labels, cosines, everywhere[labels], query)

    def _check(self, descriptors: Floats, k: int) -> None:
        if k < 1:
            raise SettingError(f"k={k} asks for no hit; use 1 or more")
        dim = self.index.descriptors.shape[1]
        if descriptors.ndim != 2 or descriptors.shape[1] != dim:
            raise SettingError(
                f"queries have shape {descriptors.shape}, the index holds {dim} numbers a photo; "
                "describe them with the model that wrote the index"
            )
        norms = np.linalg.norm(descriptors, axis=1)
        bad = np.flatnonzero(~(np.abs(norms - 1) < 1e-2))
        if len(bad):
            raise SettingError(
                f"query {bad[0]} has length {norms[bad[0]]:.3g}; queries must have unit length"
            )


@dataclass(frozen=True)
class Asked:
    """Queries answered from their files: hits, the rows that could be read, and the rest."""

    hits: Hits
    rows: Rows
    skipped: tuple[Skipped, ...]


def ask_photos(
    engine: Search, paths: Sequence[str], k: int = 20, *, progress: Progress | None = None
) -> Asked:
    """Answer photo files one by one, so that each stage's time is what one query costs."""
    if engine.model is None:
        raise SettingError("this engine has no model; ask it with descriptors: search()")
    answers: list[_Answer] = []
    rows: list[int] = []
    skipped: list[Skipped] = []
    for batch in load_batches(paths, engine.model.image_size, batch=1):
        skipped += batch.skipped
        for row in batch.rows:
            began = time.perf_counter()
            with torch.inference_mode():
                descriptor = engine.model.eval()(batch.pixels)[0].numpy()
            spent = (time.perf_counter() - began) * 1e3
            answer = engine._answer(descriptor, k, np.empty(0, np.int64))
            answer.elapsed_ms["extract"] = spent
            answers.append(answer)
            rows.append(row)
        if progress:
            progress(len(rows) + len(skipped), len(paths))
    return Asked(
        engine._calibrated(_stack(answers, k)), np.array(rows, dtype=np.int64), tuple(skipped)
    )


def _stack(answers: list[_Answer], k: int) -> Hits:
    rows = np.full((len(answers), k), -1, dtype=np.int64)
    distances = np.full((len(answers), k), np.inf, dtype=np.float32)
    for number, answer in enumerate(answers):
        rows[number, : len(answer.rows)] = answer.rows
        distances[number, : len(answer.rows)] = answer.distances
    stages = [stage for stage in STAGES if answers and stage in answers[0].elapsed_ms]
    return Hits(
        rows,
        distances,
        np.stack([a.shortlist for a in answers]) if answers else np.empty((0, 0), np.int64),
        np.array([a.confidence for a in answers], np.float32),
        tuple(a.pool for a in answers),
        {stage: np.array([a.elapsed_ms[stage] for a in answers]) for stage in stages},
        np.stack([a.posterior for a in answers]) if answers else np.empty((0, 0), np.float32),
        tuple(a.position for a in answers),
    )


def _least(min_precision: float | None, calibration: Calibration | None) -> float:
    """The confidence below which an engine abstains."""
    if min_precision is None:
        return -np.inf
    if calibration is None:
        raise SettingError(
            f"min_precision={min_precision} needs a calibration, which says how sure is sure "
            "enough; pass calibration=, or open a run that has one"
        )
    return calibration.threshold(min_precision)


def _largest(values: Floats, count: int) -> Rows:
    """Indices of the largest values, largest first; ties by index."""
    if count < len(values):
        kept = np.argpartition(-values, count - 1)[:count]
    else:
        kept = np.arange(len(values))
    return kept[np.lexsort((kept, -values[kept]))]


def _log_sum(logits: Floats) -> np.float32:
    if not len(logits):
        return np.float32(0)
    top = logits.max()
    return np.float32(top + np.log(np.exp(logits - top).sum()))
