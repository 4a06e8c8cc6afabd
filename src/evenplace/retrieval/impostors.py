"""How often a database photo looks like somewhere else: the price of being everybody's neighbour.

    r_i = mean of the `neighbours` largest <z_i, z_j> with |p_i - p_j| > apart

Photos nearby are left out because they show the same place: counting them would punish
well-covered streets.

N photos · C places, H of them with photos · D descriptor · m look-alike places
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Floats, evenly, ranges, unit
from evenplace.describe.onnx_engine import own_cores
from evenplace.retrieval.array_files import Rows, dots, widened
from evenplace.retrieval.shortlist_codes import Coarse, exact_pass, multiplied

Spots = NDArray[np.float64]
APART, NEIGHBOURS = 50.0, 10
EXACT = 20_000  # photos up to which all pairs are compared
_BLOCK = 2048
_TOGETHER = 64  # places compared at a time
_PROBES = 8  # lists of places that are looked through
_PLACES, _PHOTOS = 10, 3  # look-alike places of a place, and photos read of each
_SAMPLE, _THOROUGH = 256, 50  # photos that correct the others, and the places they are sought in


def impostor_similarity(
    descriptors: Any,
    positions: Spots,
    rows: Rows | None = None,
    *,
    neighbours: int = NEIGHBOURS,
    apart: float = APART,
) -> Floats:
    """r of some photos, or of each, against all others.

    A photo with fewer look-alikes far away averages those it has; with none, r = 0.
    descriptors: (N, D) unit, positions: (N, 2) metres -> (rows,).
    """
    vectors = np.asarray(descriptors, np.float32)
    chosen = np.arange(len(vectors)) if rows is None else rows
    found = np.empty(len(chosen), np.float32)
    for at in range(0, len(chosen), _BLOCK):
        part = chosen[at : at + _BLOCK]
        cosines = multiplied(vectors[part], vectors)
        near = _near(positions[part, None], positions[None], apart)
        found[at : at + _BLOCK] = _mean_of_best(cosines, near, neighbours)
    return found


@dataclass(frozen=True)
class Impostors:
    """The terms of a database whose photos lie place by place."""

    descriptors: Any  # (N, D)
    positions: Spots  # (N, 2), or (N, 3) with what keeps zones apart
    starts: Rows  # (C + 1,)
    prototypes: Floats  # (C, D)
    coarse: Coarse | None

    def terms(self, places: Rows, loose: Rows) -> Iterator[Floats]:
        """r of the photos of some places, place by place, and of some in no place, in blocks.

        Up to 20,000 photos against all others.  Of more, a place is compared with 3 photos of each
        of the 10 places that look most like it and lie elsewhere.  What that misses makes r too
        small by .04 to .06, so 256 photos are looked at thoroughly and the rest follows their
        line; the benchmark has figures.  All pairs of 2.8 million would be 6e15 products.
        """
        if len(self.descriptors) <= EXACT:
            rows = np.concatenate([self._rows_of(places)[0], loose])
            yield impostor_similarity(self.descriptors, self.positions, rows)
            return
        asked = np.flatnonzero(np.isin(self._held, places))
        if len(asked):
            slope, offset = self.line
            for block in self._against_look_alikes(asked):
                yield np.where(block == 0, 0, slope * block + offset).astype(np.float32)
        sample = evenly(len(self.descriptors), _BLOCK)
        theirs = widened(self.descriptors[sample])
        for at in range(0, len(loose), _BLOCK):  # photos in no place: against an even sample of all
            rows = loose[at : at + _BLOCK]
            near = _near(self.positions[rows, None], self.positions[None, sample])
            yield _mean_of_best(multiplied(widened(self.descriptors[rows]), theirs), near)

    @cached_property
    def _held(self) -> Rows:
        """Places with photos.  (H,)."""
        return np.flatnonzero(np.diff(self.starts))

    def _rows_of(self, places: Rows) -> tuple[Rows, Rows]:
        """Rows of their photos, and which of the places each is of."""
        return ranges(self.starts[places], self.starts[places + 1])

    @cached_property
    def line(self) -> tuple[float, float]:
        """The line from what is found among look-alikes to the truth, by a few photos of all.

        Codes keep it as long as their axes: terms of one index follow one line.
        """
        if self.coarse is not None and self.coarse.tuning.line is not None:
            return self.coarse.tuning.line
        few = evenly(len(self._held), _SAMPLE)
        rows = self._rows_of(self._held[few])[0]
        some = evenly(len(rows), _SAMPLE)
        true = self._thorough(rows[some])
        found = np.concatenate(list(self._against_look_alikes(few)))[some]
        spread = float(found.var())
        slope = float(np.cov(found, true, bias=True)[0, 1]) / spread if spread > 1e-8 else 1.0
        return slope, float(true.mean() - slope * found.mean())

    def _thorough(self, rows: Rows) -> Floats:
        """r of a few photos, against all photos of the 50 places most like each: nearly exact."""
        vectors = widened(self.descriptors[rows])
        found = exact_pass(
            self.prototypes, self._held, vectors, 1.0, _THOROUGH, multiply=multiplied
        )
        terms = np.empty(len(rows), np.float32)
        for number, places in enumerate(np.sort(found.places, axis=1)):
            others = self._rows_of(places)[0]
            cosines = dots(vectors[[number]], widened(self.descriptors[others]))
            near = _near(self.positions[rows[[number]], None], self.positions[None, others])
            terms[number] = _mean_of_best(cosines, near)[0]
        return terms

    def _against_look_alikes(self, asked: Rows) -> Iterator[Floats]:
        """r of the photos of some places, found among a few photos.  asked: numbers within H.

        A thread a core, each with its own places: sums so small gain nothing from being shared.
        """
        others = np.sort(self._some_photos(self._look_alikes(asked)), axis=1)  # (asked, 3 m)
        parts = [slice(at, at + _TOGETHER) for at in range(0, len(asked), _TOGETHER)]
        with ThreadPoolExecutor(own_cores()) as pool:
            yield from pool.map(
                lambda part: self._compare(self._held[asked[part]], others[part]), parts
            )

    def _compare(self, places: Rows, near: Rows) -> Floats:
        """r of the photos of a few places, against others.  near: (places, others) rows.

        A product a place and all else at once: places are many and small, and each call costs.
        """
        theirs = widened(self.descriptors[near.ravel()]).reshape(*near.shape, -1)
        again = np.diff(near, axis=1, prepend=-1) == 0  # places of few photos name them twice
        (rows, of), terms = self._rows_of(places), []
        for at in range(0, len(rows), _BLOCK):
            mine, place = rows[at : at + _BLOCK], of[at : at + _BLOCK]
            first = np.flatnonzero(np.diff(place, prepend=-1))
            own = np.split(widened(self.descriptors[mine]), first[1:])
            pairs = zip(own, (theirs[one] for one in place[first]), strict=True)
            hidden = _near(self.positions[mine, None], self.positions[near][place]) | again[place]
            terms.append(_mean_of_best(np.concatenate([dots(*pair) for pair in pairs]), hidden))
        return np.concatenate(terms)

    def _look_alikes(self, asked: Rows) -> Rows:
        """The places most like each that is asked about, those elsewhere first.  (asked, m)."""
        held, starts = self._held, self.starts
        centres = np.add.reduceat(self.positions[: starts[-1]], starts[held])
        centres /= np.diff(starts)[held, None]
        n, parts = min(4 * _PLACES, len(held)), []
        for start in range(0, len(asked), _BLOCK):
            block = asked[start : start + _BLOCK]
            found = self._nearest(np.array(self.prototypes[held[block]]), n)
            gap = np.linalg.norm(centres[found] - centres[block, None], axis=2)
            nearest_last = np.argsort(gap <= APART, axis=1, kind="stable")[:, :_PLACES]
            parts.append(held[np.take_along_axis(found, nearest_last, axis=1)])
        return np.concatenate(parts)

    def _some_photos(self, places: Rows) -> Rows:
        """Three photos of each place, spread over it; of fewer, some twice.  (P, m) -> (P, 3 m)."""
        first = self.starts[places]
        sizes = (self.starts[places + 1] - first)[..., None]
        rows = first[..., None] + np.arange(_PHOTOS) * np.maximum(sizes, 1) // _PHOTOS
        chosen: Rows = rows.reshape(len(places), -1)
        return chosen

    @cached_property
    def _nearest(self) -> Callable[[Floats, int], Rows]:
        """Finds the places most like some vectors, as numbers within H.

        Where there are codes, along their axes and by a few of many lists: the codes are made to
        be scanned whole, which for every place at once is quadratic.
        """
        held, coarse = self._held, self.coarse
        if coarse is None:

            def compare(asked: Floats, n: int) -> Rows:
                exact = exact_pass(self.prototypes, held, asked, 1.0, n, multiply=multiplied)
                return np.searchsorted(held, exact.places)

            return compare
        import faiss

        def reduced(rows: Floats) -> Floats:
            return unit(np.asarray((rows - coarse.mean) @ coarse.axes, np.float32))

        parts = (self.prototypes[held[at : at + _BLOCK]] for at in range(0, len(held), _BLOCK))
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


def _near(here: Spots, there: Spots, apart: float = APART) -> NDArray[np.bool_]:
    """Which photos show the same surroundings.  (N, 1, 3), (1, M, 3) -> (N, M)."""
    axes = range(here.shape[-1])
    squares = [np.square(here[..., axis] - there[..., axis]) for axis in axes]
    near: NDArray[np.bool_] = sum(squares[1:], squares[0]) <= apart**2
    return near


def _mean_of_best(cosines: Floats, hidden: NDArray[np.bool_], count: int = NEIGHBOURS) -> Floats:
    """Mean of the largest that are not hidden; 0 where all are.  (N, M) -> (N,)."""
    count = min(count, cosines.shape[1])
    if not count:
        return np.zeros(len(cosines), np.float32)
    best = np.partition(np.where(hidden, -np.inf, cosines), -count, axis=1)[:, -count:]
    found = np.isfinite(best)
    mean: Floats = np.where(found, best, 0).sum(axis=1) / np.maximum(found.sum(axis=1), 1)
    return mean.astype(np.float32)
