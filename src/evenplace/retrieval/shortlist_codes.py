"""The best places without reading every prototype: four bits a number, then the best in full.

All prototypes are scanned as 4-bit codes along a few principal axes (faiss's fast scan: 110,000
places are 3.5 MB and a fraction of a millisecond), and the `refine` best of them are read whole.
How many axes and how many to refine is measured when the index is built
(`shortlist_tuning.tune`), so that at most 0.1 % of the exact shortlist is lost.

The posterior needs a sum over all places.  The refined ones are added up exactly; scores of the
others are taken as Gaussian below the lowest refined score t, with the mean m and variance v that
the prototypes' mean and covariance give for this query:

    sum_c exp(s x_c)  ≈  C exp(s m + s² v / 2) Φ((t - m - s v) / √v)

    C places with photos · D descriptor · Q queries · R refined places · d axes
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from evenplace.arrays import Floats
from evenplace.retrieval.array_files import Rows, dots, map_array, write_array
from evenplace.retrieval.codec import principal_axes
from evenplace.retrieval.top_k import TopK

FEWEST = 4096  # places from which on it pays
SHORTLIST = 20
_SAMPLE, _FEWEST_SAMPLED = 20_000, 4096  # prototypes the axes are fitted to: fewer of wide ones,
_NUMBERS = 1 << 25  # so many numbers at most, or 8,448 of 20,000 would take 2 GB
_BLOCK = 8192
_ARRAYS = ("mean", "axes", "covariance", "members")


class Found(NamedTuple):
    """The best places of each query, best first, and the log of the sum over all places."""

    places: Rows  # (Q, n)
    scores: Floats  # (Q, n) <query, prototype>
    log_total: Floats  # (Q,) log sum_c exp(scale score_c)


@dataclass(frozen=True)
class Tuning:
    """What was measured when the index was built, for shortlists of 20."""

    refine: int = 256
    lost: float = 0.0  # share of the exact shortlist
    far: float = 0.0  # log of true over estimated sum, places that were not refined
    doubt: float = 0.0  # 95th percentile of the error of log_total
    floor: float = 0.0  # variance of a prototype along a direction beside the axes
    fitted: int = 0  # places that the axes were fitted to
    changed: int = 0  # places that photos came to or went from since
    line: tuple[float, float] | None = None  # that corrects impostor terms (`Impostors.line`)


@dataclass(frozen=True)
class Coarse:
    """Prototypes of the places with photos, as codes along a few axes."""

    mean: Floats  # (D,)
    axes: Floats  # (D, d) principal, then turned at random so that all matter alike
    covariance: Floats  # (d, d) of the prototypes along the axes
    members: Rows  # (C,) places
    codes: Any  # faiss.IndexPQFastScan
    tuning: Tuning = Tuning()

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the files into a folder of an index; what `open` needs besides is returned."""
        import faiss

        for part in _ARRAYS:
            write_array(folder / f"coarse-{part}.npy", getattr(self, part))
        (folder / "coarse.faiss").write_bytes(faiss.serialize_index(self.codes).tobytes())
        return asdict(self.tuning)

    @classmethod
    def open(cls, folder: Path, tuning: dict[str, Any]) -> Self | None:
        """None when faiss is not installed: then every prototype is read."""
        try:
            import faiss
        except ImportError:
            return None
        mean, axes, covariance, members = (
            np.array(map_array(folder / f"coarse-{part}.npy")) for part in _ARRAYS
        )
        codes = faiss.deserialize_index(np.fromfile(folder / "coarse.faiss", np.uint8))
        return cls(mean, axes, covariance, members, codes, Tuning(**tuning))

    def renewed(self, prototypes: Floats, places: Rows) -> Self:
        """The prototypes of `places` (those with photos) as they are now, along the same axes."""
        import faiss

        codes = faiss.clone_index(self.codes)
        codes.reset()
        for part in np.array_split(places, max(1, len(places) // 16_384)):
            short = (np.asarray(prototypes[part], np.float32) - self.mean) @ self.axes
            codes.add(np.asarray(short, np.float32))
        return replace(self, members=places, codes=codes)

    def search(self, queries: Floats, prototypes: Floats, n: int, scale: float) -> Found:
        """Find the n best places of each query.  queries: (Q, D), prototypes: all places'."""
        reduced = dots(queries, self.directions)  # (Q, d)
        places = self.candidates(reduced, n)  # (Q, R)
        exact = compare_places(prototypes, queries, places)  # (Q, R)
        every = np.arange(len(queries))[:, None]
        best = every, np.argsort(-exact, axis=1, kind="stable")[:, :n]
        middle, lowest = np.vecdot(queries, self.mean), exact.min(axis=1)
        rest = self.log_rest(middle, reduced, lowest, scale) + self.tuning.far
        return Found(
            places[best],
            exact[best],
            np.logaddexp(log_sum(exact, scale), rest).astype(np.float32),
        )

    @cached_property
    def directions(self) -> Floats:
        """The axes as rows.  (d, D)."""
        return np.ascontiguousarray(self.axes.T)

    def candidates(self, reduced: Floats, n: int) -> Rows:
        """The places that look best by their codes, enough for a shortlist of n, in order.

        (Q, d) -> (Q, R).
        """
        refine = min(int(self.tuning.refine * max(1.0, n / SHORTLIST)), len(self.members))
        _, found = self.codes.search(reduced, refine)
        places: Rows = np.sort(self.members[found], axis=1)
        return places

    def log_rest(self, middle: Floats, reduced: Floats, below: Floats, scale: float) -> Floats:
        """Log of the sum over places that score less than `below`.

        middle: (Q,) <query, mean>, reduced: (Q, d), below: (Q,) -> (Q,).
        """
        variance = np.vecdot(dots(reduced, self.covariance), reduced) + self.tuning.floor
        variance = np.maximum(variance, 1e-12)
        reach = (below - middle - scale * variance) / np.sqrt(variance)
        inside = np.array([log_normal(one) for one in reach.tolist()])
        whole = np.log(len(self.members)) + scale * middle + scale**2 * variance / 2
        return np.asarray(whole + inside, np.float32)


def compare_places(prototypes: Floats, queries: Floats, places: Rows) -> Floats:
    """<query, prototype> of each query with its own places, on all cores.  (Q, R) -> (Q, R)."""
    found = np.empty(places.shape, np.float32)
    try:
        faiss: Any = import_module("faiss")  # its types leave this function out
    except ImportError:
        for query, own, out in zip(queries, places, found, strict=True):
            np.vecdot(prototypes[own], query, out=out)
        return found
    arrays = (found, queries, prototypes, places)
    faiss.fvec_inner_products_by_idx(*map(faiss.swig_ptr, arrays), queries.shape[1], *places.shape)
    return found


def exact_pass(
    prototypes: Floats,
    places: Rows,
    queries: Floats,
    scale: float,
    n: int = SHORTLIST,
    *,
    multiply: Callable[[Floats, Floats], Floats] = dots,
) -> Found:
    """The exact shortlist and log sum, a block of places at a time.  queries: (Q, D).

    multiply: `multiplied` is faster for many queries, and rounds differently for every batch.
    """
    n = min(n, len(places))
    best, total = TopK(len(queries), n), np.full(len(queries), -np.inf, np.float32)
    for at in range(0, len(places), _BLOCK):
        part = places[at : at + _BLOCK]
        every = part[-1] - part[0] + 1 == len(part)
        rows = prototypes[part[0] : part[-1] + 1] if every else prototypes[part]
        scores = multiply(queries, rows)  # (Q, block)
        total = np.logaddexp(total, log_sum(scores, scale))
        best.add(at, scores)
    which, scores = best.sorted()
    return Found(places[which], scores, total)


def multiplied(queries: Floats, rows: Floats) -> Floats:
    """Every query with every row, as one matrix product.  (Q, D), (C, D) -> (Q, C)."""
    products: Floats = queries @ rows.T
    return products


def log_normal(reach: float) -> float:
    """log Φ(x), the chance to lie below x; far below, where Φ underflows, by its asymptote."""
    if reach > -37:
        return math.log(math.erfc(-reach / math.sqrt(2)) / 2)
    return -(reach**2) / 2 - math.log(-reach * math.sqrt(2 * math.pi)) + math.log1p(-(reach**-2))


def log_sum(scores: Floats, scale: float) -> Floats:
    """log sum_c exp(scale score_c).  (Q, C) -> (Q,)."""
    top = scores.max(axis=1)
    total: Floats = scale * top + np.log(np.exp(scale * (scores - top[:, None])).sum(axis=1))
    return total


def fit_coarse(
    prototypes: Floats, places: Rows, axes: int, generator: np.random.Generator
) -> Coarse:
    """Code the prototypes of `places` (those with photos) along so many axes."""
    import faiss

    most = min(_SAMPLE, max(_FEWEST_SAMPLED, _NUMBERS // prototypes.shape[1]))
    chosen = np.sort(generator.permutation(places)[:most])
    sample = np.array(prototypes[chosen], np.float32)
    mean = sample.mean(axis=0)
    sample -= mean
    axes = min(axes, len(mean))
    turned, _ = np.linalg.qr(generator.normal(size=(axes, axes)))
    directions = np.ascontiguousarray(principal_axes(sample, axes) @ turned, np.float32)  # (D, d)
    short = sample @ directions
    along = np.asarray(short.T @ short / len(sample), np.float32)  # (d, d)
    whole = np.vecdot(sample, sample).sum(dtype=np.float64) / len(sample)
    floor = float(whole - np.trace(along)) / max(len(mean) - axes, 1)
    codes = faiss.IndexPQFastScan(axes, axes, 4, faiss.METRIC_INNER_PRODUCT)
    codes.train(short)
    tuning = Tuning(floor=max(floor, 0.0), fitted=len(places))
    return Coarse(mean, directions, along, places, codes, tuning).renewed(prototypes, places)
