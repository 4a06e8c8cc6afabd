"""How often a database photo looks like somewhere else: the price of being everybody's neighbour.

    r_i = mean of the `neighbours` largest <z_i, z_j> with |p_i - p_j| > apart

Photos nearby are left out because they show the same place: counting them would punish
well-covered streets.

N photos · C places · D descriptor · m look-alike places
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenplace.index.coarse import Coarse
from evenplace.index.tuning import exact_pass

if TYPE_CHECKING:
    from evenplace.index.layout import Index

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
APART, NEIGHBOURS = 50.0, 10
EXACT = 20_000  # photos up to which all pairs are compared
_BLOCK = 2048
_FEW = 128  # photos of neighbouring places that share their look-alikes
_PLACES, _PHOTOS = 6, 6  # look-alike places of a place, and photos read of each


def impostor_similarity(
    descriptors: NDArray[Any],
    positions: NDArray[np.float64],
    *,
    neighbours: int = NEIGHBOURS,
    apart: float = APART,
) -> Floats:
    """r of each photo against all others.

    A photo with fewer look-alikes far away averages those it has; with none, r = 0.
    descriptors: (N, D) unit, positions: (N, 2) metres -> (N,).
    """
    vectors = torch.from_numpy(np.asarray(descriptors, np.float32))
    spots = torch.from_numpy(positions)
    parts = [
        _similarity(
            vectors[b : b + _BLOCK], spots[b : b + _BLOCK], vectors, spots, neighbours, apart
        )
        for b in range(0, len(vectors), _BLOCK)
    ]
    return torch.cat(parts).numpy() if parts else np.empty(0, np.float32)


def impostors_at_scale(
    descriptors: NDArray[Any],
    positions: NDArray[np.float64],
    starts: Rows,
    prototypes: Floats,
    coarse: Coarse | None,
) -> Iterator[Floats]:
    """r against photos of the places that look alike, block by block in the order of the rows.

    A place is compared with 6 photos of each of the 6 places that look most like it and lie
    elsewhere; places beside each other share theirs.  What that misses makes r too small, by
    little: the tests and the benchmark have figures.  All pairs of 2.8 million photos would be
    6e15 products.
    """
    held = np.flatnonzero(np.diff(starts))
    centres = np.add.reduceat(positions[: starts[-1]], starts[held]) / np.diff(starts)[held, None]

    def block(places: slice) -> Floats:
        rows = slice(int(starts[held[places.start]]), int(starts[held[places.stop - 1] + 1]))
        alike = _look_alikes(prototypes, held, centres, places, coarse)  # (places, m)
        return _compare(descriptors, positions, rows, _some_photos(np.unique(alike), starts))

    with ThreadPoolExecutor(os.cpu_count()) as workers:
        yield from workers.map(block, _neighbouring(held, starts))
    if starts[-1] < len(descriptors):  # photos in no place: against an even sample of all
        others = np.linspace(0, len(descriptors) - 1, min(len(descriptors), _BLOCK)).astype(
            np.int64
        )
        for first in range(int(starts[-1]), len(descriptors), _BLOCK):
            rows = slice(first, min(first + _BLOCK, len(descriptors)))
            yield _compare(descriptors, positions, rows, others)


def impostors_of(
    descriptors: NDArray[Any], positions: NDArray[np.float64], index: "Index"
) -> Floats:
    """r of photos that come later, against photos of the bulk's look-alike places.  (M,)."""
    base = index.base
    held = np.flatnonzero(np.diff(base.starts))
    found = np.zeros(len(descriptors), np.float32)
    if not len(held):
        return found
    spots = base.photos.positions
    for first in range(0, len(descriptors), _FEW):
        asked = np.asarray(descriptors[first : first + _FEW], np.float32)
        n = min(4 * _PLACES, len(held))
        if index.coarse is not None:
            alike = index.coarse.candidates(asked @ index.coarse.axes, n)
        else:
            alike = exact_pass(index.base_prototypes, held, asked, 1.0, n).places
        others = _some_photos(np.unique(alike), base.starts)
        mine = torch.from_numpy(asked), torch.from_numpy(positions[first : first + _FEW])
        theirs = torch.from_numpy(base.descriptors[others]).float(), torch.from_numpy(spots[others])
        found[first : first + _FEW] = _similarity(*mine, *theirs, NEIGHBOURS, APART).numpy()
    return found


def _compare(
    descriptors: NDArray[Any], positions: NDArray[np.float64], rows: slice, others: Rows
) -> Floats:
    mine = torch.from_numpy(np.array(descriptors[rows])).float()
    theirs = torch.from_numpy(descriptors[others]).float()
    spots = torch.from_numpy(positions[rows]), torch.from_numpy(positions[others])
    found: Floats = _similarity(mine, spots[0], theirs, spots[1], NEIGHBOURS, APART).numpy()
    return found


def _similarity(
    mine: Tensor, here: Tensor, theirs: Tensor, there: Tensor, neighbours: int, apart: float
) -> Tensor:
    cosines = mine @ theirs.T
    cosines.masked_fill_(torch.cdist(here, there) <= apart, -torch.inf)
    best = cosines.topk(min(neighbours, cosines.shape[1]), dim=1).values
    found = best.isfinite()
    return best.where(found, 0.0).sum(dim=1) / found.sum(dim=1).clamp(min=1)


def _neighbouring(held: Rows, starts: Rows) -> Iterator[slice]:
    """Places side by side in the files, about 128 photos at a time."""
    ends = starts[held + 1]
    first = 0
    while first < len(held):
        last = int(np.searchsorted(ends, starts[held[first]] + _FEW, "right"))
        last = max(last, first + 1)
        yield slice(first, last)
        first = last


def _look_alikes(
    prototypes: Floats,
    held: Rows,
    centres: NDArray[np.float64],
    places: slice,
    coarse: Coarse | None,
) -> Rows:
    """The places most like each of some, those elsewhere first.  (places, m)."""
    asked, n = np.array(prototypes[held[places]]), min(4 * _PLACES, len(held))
    if coarse is not None:
        found = coarse.candidates(asked @ coarse.axes, n)[:, : 4 * _PLACES]
    else:
        found = exact_pass(prototypes, held, asked, 1.0, n).places
    at = np.searchsorted(held, found)
    gap = np.linalg.norm(centres[at] - centres[places][:, None], axis=2)
    nearest_last = np.argsort(gap <= APART, axis=1, kind="stable")[:, :_PLACES]
    return np.take_along_axis(found, nearest_last, axis=1)


def _some_photos(places: Rows, starts: Rows) -> Rows:
    """Up to 6 photos of each place, spread over it."""
    sizes = (starts[places + 1] - starts[places])[:, None]
    steps = np.arange(_PHOTOS)[None]
    rows = starts[places][:, None] + steps * np.maximum(sizes, 1) // _PHOTOS
    return np.unique(rows)
