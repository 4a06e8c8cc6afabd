"""How often a database photo looks like somewhere else: the price of being everybody's neighbour.

    r_i = mean of the `neighbours` largest <z_i, z_j> with |p_i - p_j| > apart

Photos nearby are left out because they show the same place: counting them would punish
well-covered streets.

N photos · C places · D descriptor · m look-alike places
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenplace.retrieval.arrays import Floats, Rows, ranges, widened
from evenplace.retrieval.coarse import Coarse, compare_places
from evenplace.retrieval.shortlist_effort import exact_pass, multiplied

APART, NEIGHBOURS = 50.0, 10
EXACT = 20_000  # photos up to which all pairs are compared
_BLOCK = 2048
_TOGETHER = 64  # places compared at a time
_PROBES = 8  # lists of places that are looked through
_PLACES, _PHOTOS = 10, 3  # look-alike places of a place, and photos read of each
_SAMPLE, _THOROUGH = 256, 50  # photos that correct the others, and the places they are sought in


def impostor_similarity(
    descriptors: Any,
    positions: NDArray[np.float64],
    rows: Rows | None = None,
    *,
    neighbours: int = NEIGHBOURS,
    apart: float = APART,
) -> Floats:
    """r of some photos, or of each, against all others.

    A photo with fewer look-alikes far away averages those it has; with none, r = 0.
    descriptors: (N, D) unit, positions: (N, 2) metres -> (rows,).
    """
    vectors = torch.from_numpy(np.asarray(descriptors, np.float32))
    spots = torch.from_numpy(positions)
    chosen = torch.arange(len(vectors)) if rows is None else torch.from_numpy(rows)
    parts = [
        _similarity(vectors[part], spots[part], vectors, spots, neighbours, apart)
        for part in torch.split(chosen, _BLOCK)
    ]
    return torch.cat(parts).numpy() if parts else np.empty(0, np.float32)


def impostor_terms(
    descriptors: Any,
    positions: NDArray[np.float64],
    starts: Rows,
    prototypes: Floats,
    coarse: Coarse | None,
    places: Rows,
    loose: Rows,
) -> Iterator[Floats]:
    """r of the photos of some places, place by place, and of some in no place, block by block.

    Up to 20,000 photos against all others.  Of more, a place is compared with 3 photos of each of
    the 10 places that look most like it and lie elsewhere.  What that misses makes r too small by
    .04 to .06, so 256 photos are looked at thoroughly and the rest follows their line; the
    benchmark has figures.  All pairs of 2.8 million photos would be 6e15 products.
    """
    if len(descriptors) <= EXACT:
        rows = np.concatenate([ranges(starts[places], starts[places + 1])[0], loose])
        yield impostor_similarity(descriptors, positions, rows)
        return
    yield from _against_look_alikes(descriptors, positions, starts, prototypes, coarse, places)
    sample = np.unique(np.linspace(0, len(descriptors) - 1, _BLOCK).astype(np.int64))
    theirs = torch.from_numpy(descriptors[sample]).float(), torch.from_numpy(positions[sample])
    for at in range(0, len(loose), _BLOCK):  # photos in no place: against an even sample of all
        rows = loose[at : at + _BLOCK]
        mine = torch.from_numpy(descriptors[rows]).float(), torch.from_numpy(positions[rows])
        yield _similarity(*mine, *theirs, NEIGHBOURS, APART).numpy()


def _against_look_alikes(
    descriptors: Any,
    positions: NDArray[np.float64],
    starts: Rows,
    prototypes: Floats,
    coarse: Coarse | None,
    places: Rows,
) -> Iterator[Floats]:
    held = np.flatnonzero(np.diff(starts))
    asked = np.flatnonzero(np.isin(held, places))
    if not len(asked):
        return
    centres = np.add.reduceat(positions[: starts[-1]], starts[held]) / np.diff(starts)[held, None]
    spots = torch.from_numpy((positions - positions[0]).astype(np.float32))
    search = _nearest_places(prototypes, held, coarse)

    def terms(asked: Rows) -> Iterator[Floats]:
        alike = _look_alikes(prototypes, held, asked, centres, search)  # (asked, m)
        others = np.sort(_some_photos(alike, starts), axis=1)  # (asked, 3 m)
        for at in range(0, len(asked), _TOGETHER):
            own = held[asked[at : at + _TOGETHER]]
            near = _Others.of(descriptors, spots, others[at : at + _TOGETHER])
            rows, whose = ranges(starts[own], starts[own + 1])
            for first in range(0, len(rows), _BLOCK):
                part = slice(first, first + _BLOCK)
                yield near.compare(
                    widened(descriptors[rows[part]]),
                    spots[torch.from_numpy(rows[part])],
                    whose[part],
                )

    few = np.unique(np.linspace(0, len(held) - 1, _SAMPLE).astype(np.int64))
    rows = ranges(starts[held[few]], starts[held[few] + 1])[0]
    some = np.unique(np.linspace(0, len(rows) - 1, _SAMPLE).astype(np.int64))
    true = _looked_for(descriptors, positions, starts, prototypes, held, rows[some])
    found = np.concatenate(list(terms(few)))[some]
    spread = float(found.var())
    slope = float(np.cov(found, true, bias=True)[0, 1]) / spread if spread > 1e-8 else 1.0
    offset = float(true.mean() - slope * found.mean())
    for block in terms(asked):
        yield np.where(block == 0, 0, slope * block + offset).astype(np.float32)


def _looked_for(
    descriptors: Any,
    positions: NDArray[np.float64],
    starts: Rows,
    prototypes: Floats,
    held: Rows,
    rows: Rows,
) -> Floats:
    """r of a few photos, against all photos of the 50 places most like each: as good as exact."""
    vectors = descriptors[rows].astype(np.float32)
    found = exact_pass(prototypes, held, vectors, 1.0, _THOROUGH, multiply=multiplied)
    terms = np.empty(len(rows), np.float32)
    for number, (row, places) in enumerate(zip(rows, np.sort(found.places, axis=1), strict=True)):
        others = ranges(starts[places], starts[places + 1])[0]
        theirs = torch.from_numpy(descriptors[others]).float(), torch.from_numpy(positions[others])
        mine = torch.from_numpy(vectors[number : number + 1]), torch.from_numpy(positions[[row]])
        terms[number] = _similarity(*mine, *theirs, NEIGHBOURS, APART)
    return terms


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


@dataclass(frozen=True)
class _Others:
    """Photos that look like those of a few places, the same number for each place."""

    vectors: Floats  # (places · others, D)
    spots: Tensor  # (places, others, 3)
    again: Tensor  # (places, others) places of few photos name them twice

    @classmethod
    def of(cls, descriptors: Any, spots: Tensor, rows: Rows) -> Self:
        """rows: (places, others), ascending."""
        again = torch.from_numpy(np.diff(rows, axis=1, prepend=-1) == 0)
        return cls(widened(descriptors[rows.ravel()]), spots[torch.from_numpy(rows)], again)

    def compare(self, mine: Floats, here: Tensor, whose: Rows) -> Floats:
        """r of photos of the places, each against the others of its own.

        mine: (N, D), here: (N, 3), whose: (N,) which of the places each is of -> (N,).
        """
        count, own = self.again.shape[1], torch.from_numpy(whose)
        theirs = whose[:, None] * count + np.arange(count)  # (N, others)
        cosines = torch.from_numpy(compare_places(self.vectors, mine, theirs))
        gap = here[:, None] - self.spots[own]
        hidden = (gap.square_().sum(dim=2) <= APART**2) | self.again[own]
        found: Floats = _mean_of_best(cosines.masked_fill_(hidden, -torch.inf), NEIGHBOURS).numpy()
        return found


def _look_alikes(
    prototypes: Floats,
    held: Rows,
    asked: Rows,
    centres: NDArray[np.float64],
    search: Callable[[Floats, int], Rows],
) -> Rows:
    """The places most like each that is asked about, those elsewhere first.

    asked: numbers within held.  (asked, m).
    """
    n = min(4 * _PLACES, len(held))
    parts = []
    for start in range(0, len(asked), _BLOCK):
        block = asked[start : start + _BLOCK]
        found = search(np.array(prototypes[held[block]]), n)
        gap = np.linalg.norm(centres[found] - centres[block, None], axis=2)
        nearest_last = np.argsort(gap <= APART, axis=1, kind="stable")[:, :_PLACES]
        parts.append(held[np.take_along_axis(found, nearest_last, axis=1)])
    return np.concatenate(parts)


def _nearest_places(
    prototypes: Floats, held: Rows, coarse: Coarse | None
) -> Callable[[Floats, int], Rows]:
    """Finds the places most like some vectors, as numbers within held.

    Where there are codes, along their axes and by a few of many lists: the codes are made to be
    scanned whole, which for every place at once is quadratic.
    """
    if coarse is None:

        def compare(asked: Floats, n: int) -> Rows:
            exact = exact_pass(prototypes, held, asked, 1.0, n, multiply=multiplied)
            return np.searchsorted(held, exact.places)

        return compare
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
