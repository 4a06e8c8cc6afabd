"""Query → hits: the classifier keeps a few places, a rule ranks their photos.

Q queries · C places · D descriptor · P candidates · n shortlisted places
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from evenplace.errors import IndexFileError, SettingError
from evenplace.index import Index, fingerprint
from evenplace.models.describe import Progress
from evenplace.models.loading import load_batches, picture_pixels
from evenplace.models.network import PlaceNetwork
from evenplace.photos.table import Skipped
from evenplace.search.confidence import Confidence, build_confidence
from evenplace.search.hits import STAGES, Hit, Hits
from evenplace.search.rerank import Database, Pool, Reranker, build_reranker

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class _Answer:
    rows: Rows
    distances: Floats
    shortlist: Rows
    confidence: float
    pool: Rows
    elapsed_ms: dict[str, float]


class Search:
    """An index opened for questions.

    shortlist: places the classifier keeps; all of them when there are fewer.  exact: rank the
    whole database instead, photos outside every place included.  Without a model it answers
    descriptors only.
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
    ) -> None:
        if shortlist < 1:
            raise SettingError(f"shortlist={shortlist} keeps no place; use 1 or more")
        if model is not None and fingerprint(model) != index.model:
            raise IndexFileError(
                f"{index.folder} was written by model {index.model}, this one is "
                f"{fingerprint(model)}; index the database again with this model"
            )
        self.index, self.model, self.exact = index, model, exact
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
        if self.model is None:
            raise SettingError("this engine has no model; ask it with descriptors: search()")
        pixels = picture_pixels(photo, self.model.image_size)
        with torch.inference_mode():
            descriptor = self.model.eval()(pixels[None]).numpy()
        return self.hits(self.search(descriptor, k), 0)

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
            )
            for path, row, distance in zip(paths, rows, found.distances[query], strict=False)
        ]

    def search(self, descriptors: Floats, k: int = 20, *, progress: Progress | None = None) -> Hits:
        """Answer queries that are already descriptors.  descriptors: (Q, D) unit."""
        self._check(descriptors, k)
        answers: list[_Answer] = []
        for number, query in enumerate(descriptors):
            answers.append(self._answer(np.asarray(query, np.float32), k))
            if progress:
                progress(number + 1, len(descriptors))
        return _stack(answers, k)

    def _answer(self, query: Floats, k: int) -> _Answer:
        clock = [time.perf_counter()]
        cosines = self.prototypes @ query  # (C',)
        logits = self.index.scale * cosines
        best = _largest(cosines, self.shortlist)
        places = self.reachable[best]
        log_posterior = logits - _log_sum(logits)
        clock.append(time.perf_counter())
        pool = self._gather(query, places, log_posterior)
        clock.append(time.perf_counter())
        ranking = self.rule.rank(pool)
        confidence = self.confidence(pool, ranking, self.positions[pool.rows])
        clock.append(time.perf_counter())
        spent = (np.diff(clock) * 1e3).tolist()
        return _Answer(
            pool.rows[ranking.order[:k]],
            ranking.distances[:k],
            places,
            confidence,
            pool.rows,
            dict(zip(("classify", "gather", "rank"), spent, strict=True)),
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
            answer = engine._answer(descriptor, k)
            answer.elapsed_ms["extract"] = spent
            answers.append(answer)
            rows.append(row)
        if progress:
            progress(len(rows) + len(skipped), len(paths))
    return Asked(_stack(answers, k), np.array(rows, dtype=np.int64), tuple(skipped))


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
    )


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
