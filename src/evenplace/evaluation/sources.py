"""Every source of confidence on the same answers, so that they can be judged side by side.

An engine answers with one source; here the others are computed for what it answered.

    Q queries · P candidates of a query · F frequencies
"""

import numpy as np
from numpy.typing import NDArray

from evenplace.retrieval import Hits, Index, Search, spectrum
from evenplace.retrieval.confidence import CONFIDENCES, same_answer
from evenplace.retrieval.rerank import Pool, Ranking

Floats = NDArray[np.float32]
POOLED = ("l2", "ratio", "sue", "posterior", "mass")  # from the candidates of a query
SOURCES = (*POOLED, "cfd", "r")
_FREQUENCIES = 1024
_ALPHA = 0.7


def find_sources(engine: Search, descriptors: Floats, hits: Hits) -> dict[str, Floats]:
    """The confidence of each answer by each source.  descriptors: (Q, D) -> (Q,) a source.

    cfd is minus the distance (Eq. 13, the paper's settings) between the query and the place of
    the answer, r that place's reliability (Eq. 10).  A query without an answer is less sure than
    every other.
    """
    answered = np.flatnonzero(hits.rows[:, 0] >= 0)
    found = {name: np.full(len(hits), np.nan, np.float32) for name in SOURCES}
    stored = _Stored(engine.index, engine.ranking)
    sought, compared = engine.split(descriptors)
    for query in answered.tolist():
        pool, ranking, spots = stored.pool(sought[query], compared[query], hits, query)
        same = same_answer(int(ranking.order[0]), spots)
        for name in POOLED:
            found[name][query] = CONFIDENCES[name](pool, ranking, spots, same)
    distance, reliable = stored.spectra(compared[answered], hits.rows[answered, 0])
    found["cfd"][answered], found["r"][answered] = -distance, reliable
    return {name: _refuse(values) for name, values in found.items()}


class _Stored:
    """What every query needs of an index, and of the one that ranks, looked up once."""

    def __init__(self, index: Index, ranking: Index) -> None:
        self.starts, self.scale = np.asarray(index.starts), index.scale
        self.labels, self.spots = index.labels, index.photos.positions
        self.descriptors = ranking.descriptors
        self.reachable = np.flatnonzero(index.sizes)  # (C',) places with database photos
        self.prototypes = np.asarray(index.prototypes[self.reachable], np.float32)  # (C', D)

    def pool(
        self, sought: Floats, compared: Floats, hits: Hits, query: int
    ) -> tuple[Pool, Ranking, NDArray[np.float64]]:
        """The candidates of one query as the engine ranked them.

        sought: what found their places; compared: what their photos were compared with.
        """
        rows = np.sort(hits.pools[query])
        ranked = hits.rows[query][hits.rows[query] >= 0]
        order = np.searchsorted(rows, ranked)
        logits = self.scale * (self.prototypes @ sought)  # (C',)
        top = logits.max(initial=0)
        shares = np.full(len(self.starts), logits.min(initial=0), np.float32)
        shares[self.reachable] = logits
        labels = self.labels[rows]
        log_posterior = shares[labels] - top - np.log(np.exp(logits - top).sum() + 1e-30)
        cosines = np.asarray(self.descriptors[rows], np.float32) @ compared
        pool = Pool(rows, labels, cosines, log_posterior.astype(np.float32), compared)
        return pool, Ranking(order, hits.distances[query, : len(order)]), self.spots[rows]

    def spectra(self, descriptors: Floats, answers: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """CFD and r between each query and its answer's place; a photo in no place stands alone."""
        draw = np.random.default_rng(0)
        points = spectrum.draw_frequencies("paper", _FREQUENCIES, descriptors.shape[1], draw)
        asked = spectrum.characteristic(descriptors, points)  # (Q, F)
        distance = np.empty(len(answers), np.float32)
        reliable = np.empty(len(answers), np.float32)
        for query, (row, place) in enumerate(zip(answers, self.labels[answers], strict=True)):
            first, last = (row, row + 1) if place < 0 else self.starts[place : place + 2]
            rows = np.asarray(self.descriptors[first:last], np.float32)
            phi = spectrum.characteristic(rows, points).mean(axis=0)[None]  # (1, F)
            amplitude = np.abs(phi)
            distance[query] = spectrum.cfd(asked[query], phi, amplitude, _ALPHA)[0]
            reliable[query] = spectrum.reliability(amplitude)[0]
        return distance, reliable


def _refuse(values: Floats) -> Floats:
    """Put queries without an answer below all others."""
    known = np.isfinite(values)
    least = values[known].min() if known.any() else np.float32(0)
    return np.where(known, values, least - abs(least) * np.float32(1e-3) - np.float32(1e-6))
