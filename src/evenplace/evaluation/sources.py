"""Every source of confidence on the same answers, so that they can be judged side by side.

An engine answers with one source; here the others are computed from what it looked at.

    Q queries · S places of answers · F frequencies
"""

import numpy as np

from evenplace.arrays import Floats, Ints, ranges
from evenplace.retrieval import Batch, Index, Search
from evenplace.retrieval.arrays import dots
from evenplace.retrieval.confidence import CONFIDENCES, same_answer
from evenplace.retrieval.spectrum import PolarSpectra, as_turns, draw_frequencies

POOLED = ("l2", "ratio", "sue", "posterior", "mass")  # from the candidates of a query
SOURCES = (*POOLED, "cfd", "r")
_ALPHA = 0.7


def find_sources(engine: Search, batch: Batch) -> dict[str, Floats]:
    """The confidence of each answer by each source; nan without an answer.  (Q,) a source.

    cfd is minus the distance (Eq. 13, the paper's settings) between the query and the place of
    the answer, r that place's reliability (Eq. 10).  inliers only where candidates were looked at.
    """
    pooled = POOLED if engine.look is None else (*POOLED, "inliers")
    answered = np.flatnonzero(batch.hits.rows[:, 0] >= 0)
    found = {name: np.full(len(batch.hits), np.nan, np.float32) for name in (*pooled, "cfd", "r")}
    for query in answered.tolist():
        pool, ranking = batch.pools[query], batch.rankings[query]
        spots = batch.spots[batch.pools.cuts[query] : batch.pools.cuts[query + 1]]
        same = same_answer(int(ranking.order[0]), spots)
        for name in pooled:
            found[name][query] = CONFIDENCES[name](pool, ranking, spots, same)
    if len(answered):
        asked, rows = batch.pools.queries[answered], batch.hits.rows[answered, 0]
        found["cfd"][answered], found["r"][answered] = _spectral(engine.ranking, asked, rows)
    return found


def refuse(values: Floats) -> Floats:
    """Put queries without an answer below all others."""
    known = np.isfinite(values)
    least = values[known].min() if known.any() else np.float32(0)
    return np.where(known, values, least - abs(least) * np.float32(1e-3) - np.float32(1e-6))


def _spectral(index: Index, asked: Floats, answers: Ints) -> tuple[Floats, Floats]:
    """Minus CFD, and r, of each query and its answer's place; a photo in no place stands alone."""
    place = index.places_of(answers)
    keys, which = np.unique(np.where(place < 0, -1 - answers, place), return_inverse=True)
    inside = np.maximum(keys, 0)
    first = np.where(keys < 0, -1 - keys, index.starts[inside])
    last = np.where(keys < 0, -keys, index.starts[inside + 1])
    rows, of = ranges(first, last)
    points = draw_frequencies("paper", index.dim)
    starts = np.searchsorted(of, np.arange(len(keys) + 1))
    spectra = PolarSpectra.measure(index.vectors(rows), starts, points)
    turns = as_turns(dots(asked, points))  # (Q, F)
    distance = spectra.distances(turns, which, _ALPHA, phase="wrapped", unbiased=False)
    return -distance, 1 / np.maximum(spectra.levels[which, 0, 0], np.float32(1e-6))
