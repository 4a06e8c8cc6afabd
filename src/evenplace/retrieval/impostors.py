"""How often a database photo looks like somewhere else: the price of being everybody's neighbour.

    r_i = mean of the `neighbours` largest <z_i, z_j> with |p_i - p_j| > apart

Photos nearby are left out because they show the same place: counting them would punish
well-covered streets.

N photos · C places · D descriptor · m look-alike places
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenplace.retrieval.coarse import Coarse
from evenplace.retrieval.tuning import exact_pass, multiplied

if TYPE_CHECKING:
    from evenplace.retrieval.layout import Index

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
APART, NEIGHBOURS = 50.0, 10
EXACT = 20_000  # photos up to which all pairs are compared
_BLOCK = 2048
_FEW = 128  # photos that come later and share their look-alikes
_TILE, _TILES = 16, 128  # photos of one place compared at once, and such tiles
_PROBES = 8  # lists of places that are looked through
_PLACES, _PHOTOS = 10, 3  # look-alike places of a place, and photos read of each


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

    A place is compared with 3 photos of each of the 10 places that look most like it and lie
    elsewhere.  What that misses makes r too small, by little: the tests and the benchmark have
    figures.  All pairs of 2.8 million photos would be 6e15 products.
    """
    held = np.flatnonzero(np.diff(starts))
    centres = np.add.reduceat(positions[: starts[-1]], starts[held]) / np.diff(starts)[held, None]
    alike = _look_alikes(prototypes, held, centres, coarse)  # (places, m)
    sizes = np.diff(starts)[held]
    tiles = -(-sizes // _TILE)
    whose = np.repeat(np.arange(len(held)), tiles)  # place of each tile
    first = starts[held][whose] + _TILE * (
        np.arange(len(whose)) - (np.cumsum(tiles) - tiles)[whose]
    )
    ends = starts[held + 1][whose]
    spots = torch.from_numpy((positions - positions[0]).astype(np.float32))
    for at in range(0, len(whose), _TILES):
        part = slice(at, at + _TILES)
        others = _some_photos(alike[whose[part]], starts)  # (tiles, others)
        yield _compare_tiles(descriptors, spots, first[part], ends[part], others)
    if starts[-1] < len(descriptors):  # photos in no place: against an even sample of all
        sample = np.linspace(0, len(descriptors) - 1, min(len(descriptors), _BLOCK))
        for row in range(int(starts[-1]), len(descriptors), _BLOCK):
            rows = slice(row, min(row + _BLOCK, len(descriptors)))
            yield _compare(descriptors, positions, rows, sample.astype(np.int64))


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
        others = np.unique(_some_photos(np.unique(alike)[None], base.starts))
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
    return _mean_of_best(cosines, neighbours)


def _mean_of_best(cosines: Tensor, count: int) -> Tensor:
    """Mean of the largest along the last axis, -inf left out; 0 where there is nothing else."""
    best = cosines.topk(min(count, cosines.shape[-1]), dim=-1, sorted=False).values
    found = best.isfinite()
    return best.where(found, 0.0).sum(dim=-1) / found.sum(dim=-1).clamp(min=1)


def _compare_tiles(
    descriptors: NDArray[Any], spots: Tensor, first: Rows, ends: Rows, others: Rows
) -> Floats:
    """r of runs of up to 16 rows, each run against its own others.  others: (tiles, others)."""
    others = np.sort(others, axis=1)
    again = np.diff(others, axis=1, prepend=-1) == 0  # places of few photos name them twice
    rows = first[:, None] + np.arange(_TILE)  # (tiles, 16)
    there = torch.from_numpy(rows < ends[:, None])
    low, high = int(first[0]), min(int(ends[-1]), int(first[-1]) + _TILE)
    own = torch.from_numpy(np.minimum(rows, high - 1))
    halves, chosen = torch.from_numpy(descriptors), torch.from_numpy(others)
    mine = halves[low:high].float()[own - low]  # (tiles, 16, D)
    theirs = halves.index_select(0, chosen.ravel()).float().view(*others.shape, -1)
    cosines = torch.bmm(mine, theirs.transpose(1, 2))  # (tiles, 16, others)
    gap = spots[own][:, :, None] - spots[chosen][:, None]
    hidden = (gap.square().sum(dim=3) <= APART**2) | torch.from_numpy(again)[:, None]
    best = _mean_of_best(cosines.masked_fill_(hidden, -torch.inf), NEIGHBOURS)
    found: Floats = best[there].numpy()
    return found


def _look_alikes(
    prototypes: Floats, held: Rows, centres: NDArray[np.float64], coarse: Coarse | None
) -> Rows:
    """The places most like each that holds photos, those elsewhere first.  (places, m)."""
    n = min(4 * _PLACES, len(held))
    search = None if coarse is None else _lists_of_places(prototypes, held, coarse)
    parts = []
    for start in range(0, len(held), _BLOCK):
        asked = np.array(prototypes[held[start : start + _BLOCK]])
        if search is None:
            exact = exact_pass(prototypes, held, asked, 1.0, n, multiply=multiplied)
            found = np.searchsorted(held, exact.places)
        else:
            found = search(asked, n)
        gap = np.linalg.norm(centres[found] - centres[start : start + _BLOCK, None], axis=2)
        nearest_last = np.argsort(gap <= APART, axis=1, kind="stable")[:, :_PLACES]
        parts.append(held[np.take_along_axis(found, nearest_last, axis=1)])
    return np.concatenate(parts)


def _lists_of_places(
    prototypes: Floats, held: Rows, coarse: Coarse
) -> Callable[[Floats, int], Rows]:
    """Nearest places along the axes of the codes, by a few of many lists.

    The codes are made to be scanned whole, which for every place at once is quadratic.
    """
    import faiss

    def reduced(rows: Floats) -> Floats:
        short = (rows - coarse.mean) @ coarse.axes
        length = np.maximum(np.linalg.norm(short, axis=1, keepdims=True), 1e-12)
        return np.asarray(short / length, np.float32)

    parts = [prototypes[held[at : at + _BLOCK]] for at in range(0, len(held), _BLOCK)]
    short = np.concatenate([reduced(part) for part in parts])
    lists = faiss.IndexIVFFlat(
        faiss.IndexFlatIP(short.shape[1]), short.shape[1], int(len(held) ** 0.5),
        faiss.METRIC_INNER_PRODUCT,
    )  # fmt: skip
    lists.cp.niter, lists.cp.seed = 6, 0
    lists.train(short[:: max(1, len(short) // (40 * lists.nlist))])
    lists.add(short)
    lists.nprobe = _PROBES

    def search(asked: Floats, n: int) -> Rows:
        found: Rows = lists.search(reduced(asked), n)[1]
        near: Rows = np.where(found < 0, found[:, :1], found)  # lists may hold fewer than n
        return near

    return search


def _some_photos(places: Rows, starts: Rows) -> Rows:
    """Three photos of each place, spread over it; of fewer, some twice.  (P, m) -> (P, 3 m)."""
    sizes = (starts[places + 1] - starts[places])[..., None]
    rows = starts[places][..., None] + np.arange(_PHOTOS) * np.maximum(sizes, 1) // _PHOTOS
    chosen: Rows = rows.reshape(len(places), -1)
    return chosen
