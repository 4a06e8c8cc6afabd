"""How finely to look for places, measured against the exact pass on queries made of the database.

C places with photos · D descriptor · Q made-up queries · n shortlisted places
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from evenplace.arrays import Floats, draw_pairs, unit
from evenplace.retrieval.array_files import Rows
from evenplace.retrieval.shortlist_codes import (
    FEWEST,
    Coarse,
    Found,
    compare_places,
    exact_pass,
    fit_coarse,
    log_sum,
    multiplied,
)

QUERIES = 512
TARGET = 5e-4  # share of the exact shortlist that may be lost: half of what is promised
_AXES = (64, 128, 256)
_MOST = 1024  # places worth refining
_MORE = 1.1  # times as many places as axes were fitted to
_LASTS = 0.01  # share of the places that may change before all is measured anew


def build_coarse(
    prototypes: Floats,
    places: Rows,
    queries: Floats,
    scale: float,
    known: Coarse | None = None,
    changed: int | None = None,
) -> Coarse | None:
    """Codes with as few axes as keep the exact shortlist; None when the exact pass does better.

    That is so for few places, without faiss, and for prototypes no few axes describe.  known:
    codes of the places as they were, whose axes will do while they keep the shortlist and there
    are hardly more places than they were fitted to: fitting is most of the work.  changed: places
    that photos came to or went from; while they are few, what was measured lasts too.
    """
    try:
        import faiss  # noqa: F401
    except ImportError:
        return None
    if len(places) < FEWEST:
        return None
    if known is not None and changed is not None:
        since = known.tuning.changed + changed
        if since <= _LASTS * len(places):
            lasting = replace(known.tuning, changed=since)
            return replace(known.renewed(prototypes, places), tuning=lasting)
    truth = exact_pass(prototypes, places, queries, scale, multiply=multiplied)
    tries: Iterator[Coarse] = (
        fit_coarse(prototypes, places, axes, np.random.default_rng(0)) for axes in _AXES
    )
    if known is not None and len(places) <= _MORE * known.tuning.fitted:
        tries = chain([known.renewed(prototypes, places)], tries)
    tuned = (tune(coarse, prototypes, queries, truth, scale) for coarse in tries)
    return next((coarse for coarse in tuned if coarse is not None), None)


def made_up_queries(
    descriptors: Any, starts: Rows, generator: np.random.Generator, count: int = QUERIES
) -> Floats:
    """Photos moved by what parts two other photos of one place: as far off as queries are.

        q = z_i + z_a - z_b, to unit length;   a, b of one place

    Where no place has two photos, the photos themselves.  -> (Q, D).
    """
    held = descriptors[np.sort(generator.integers(starts[-1], size=count))].astype(np.float32)
    first, second = draw_pairs(starts, count, generator)
    if len(first):
        for rows, sign in ((first, 1), (second, -1)):
            held = held + sign * descriptors[rows].astype(np.float32)
    return unit(held)


def tune(
    coarse: Coarse, prototypes: Floats, queries: Floats, truth: Found, scale: float
) -> Coarse | None:
    """Refine as few places as keep the exact shortlist; None when too many would be needed."""
    _, ranked = coarse.codes.search(queries @ coarse.axes, min(_MOST, len(coarse.members)))
    found = coarse.members[ranked]  # best first
    ranks = np.array([_ranks(a, b) for a, b in zip(found, truth.places, strict=True)])
    beyond = int(TARGET * ranks.size)  # so many may lie beyond what is refined
    refine = max(int(np.sort(ranks, axis=None)[-1 - beyond]) + 1, 64)
    if refine > found.shape[1]:
        return None
    lost = float((ranks >= refine).mean())  # what is refined is compared in full
    tuning = replace(coarse.tuning, refine=refine, lost=lost, changed=0)
    return _weigh(replace(coarse, tuning=tuning), prototypes, queries, truth, scale)


def _ranks(found: Rows, wanted: Rows) -> Rows:
    """Rank of each wanted place among those found; beyond the last where it is missing."""
    order = np.argsort(found)
    at = order[np.minimum(np.searchsorted(found, wanted, sorter=order), len(found) - 1)]
    return np.where(found[at] == wanted, at, len(found))


def _weigh(
    tuned: Coarse, prototypes: Floats, queries: Floats, truth: Found, scale: float
) -> Coarse:
    """Correct the part of the posterior that is estimated."""
    reduced, n = queries @ tuned.axes, truth.places.shape[1]
    exact = compare_places(prototypes, queries, tuned.candidates(reduced, n))
    summed = log_sum(exact, scale)
    rest = tuned.log_rest(queries @ tuned.mean, reduced, exact.min(axis=1), scale)
    gains = np.linspace(-2, 2, 81)
    errors = np.percentile(
        np.abs(np.logaddexp(summed, rest + gains[:, None]) - truth.log_total), 95, axis=1
    )  # (gains,)
    at = int(np.argmin(errors))
    measured = replace(tuned.tuning, far=float(gains[at]), doubt=float(errors[at]))
    return replace(tuned, tuning=measured)
