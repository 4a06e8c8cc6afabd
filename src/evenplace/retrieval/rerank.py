"""What ranks the photos of a shortlist.  Each rule is a small class behind one protocol.

C places · D descriptor · F frequencies · N photos · P candidates · T candidates of a batch
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Floats
from evenplace.errors import RunError, SettingError, unknown_name
from evenplace.photos.files import write_json
from evenplace.retrieval import spectrum
from evenplace.retrieval.array_files import Rows, dots
from evenplace.retrieval.candidates import Pool, Pools, Ranking, Rankings, rank_pools
from evenplace.retrieval.spectrum import COUNT, PHASES, PolarSpectra, as_turns, blend


class Searched(Protocol):
    """What a rule may look at once, before the first query."""

    @property
    def sizes(self) -> Rows:
        """Photos in each place.  (C,)."""

    @property
    def impostors(self) -> Floats:
        """How much each photo looks like somewhere else.  (N,)."""

    def vectors(self, rows: Rows) -> Floats:
        """Descriptors of some photos.  (P,) -> (P, D)."""

    def spectra(self, name: str, count: int, seed: int) -> PolarSpectra:
        """Characteristic functions of all places."""


@dataclass(frozen=True)
class Database:
    """Descriptors and places in plain arrays, for rules on anybody's descriptors."""

    descriptors: NDArray[Any]  # (N, D), photos of place c in rows starts[c]:starts[c+1]
    starts: Rows  # (C + 1,)
    impostors: Floats  # (N,)

    @property
    def sizes(self) -> Rows:
        return np.diff(self.starts)

    def vectors(self, rows: Rows) -> Floats:
        return np.asarray(self.descriptors[rows], np.float32)

    def spectra(self, name: str, count: int, seed: int) -> PolarSpectra:
        return PolarSpectra.draw(name, self.descriptors, self.starts, count, seed)


class Reranker(Protocol):
    """A rule: looks at the database once, then ranks pools."""

    def fit(self, database: Searched) -> Self: ...

    def rank(self, pool: Pool) -> Ranking: ...


class Measure:
    """A rule that gives every candidate a distance; it can measure many queries at once."""

    @property
    def by_place(self) -> bool:
        """Whether all photos of a place are equally far."""
        return False

    def fit(self, database: Searched) -> Self:
        return self

    def measure(self, pools: Pools) -> Floats:
        """How far each candidate is.  (T,)."""
        raise NotImplementedError

    def rank(self, pool: Pool) -> Ranking:
        return self.rank_all(pool.alone())[0]

    def rank_all(self, pools: Pools) -> Rankings:
        """The rankings of a batch."""
        return rank_pools(pools, self.measure(pools), by_place=self.by_place)


@dataclass(frozen=True)
class L2(Measure):
    """Euclidean distance between unit descriptors."""

    def measure(self, pools: Pools) -> Floats:
        distances: Floats = np.sqrt(np.maximum(2 - 2 * pools.cosines, 0))
        return distances


@dataclass(frozen=True)
class Cosine(Measure):
    """One minus the cosine: the order of L2, another unit."""

    def measure(self, pools: Pools) -> Floats:
        return 1 - pools.cosines


@dataclass
class CFD(Measure):
    """Characteristic Function Distance (Eq. 8-13).

    unit "place" ranks places and lists the photos of each by L2; "photo" takes the amplitude of
    the place and the phase of the photo.  unbiased removes from the amplitude what is only
    sample size.  The defaults are the paper's.
    """

    alpha: float = 0.7
    frequencies: str = "paper"
    count: int = COUNT
    phase: str = "wrapped"
    unit: str = "place"
    unbiased: bool = False
    seed: int = 0
    _spectra: PolarSpectra = field(init=False, repr=False, compare=False)
    _database: Searched = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise SettingError(f"alpha={self.alpha} weighs the amplitude; use 0 to 1")
        if self.unit not in ("place", "photo"):
            raise unknown_name("unit", self.unit, ("place", "photo"))
        if self.phase not in PHASES:
            raise unknown_name("phase", self.phase, PHASES)

    @property
    def by_place(self) -> bool:
        return self.unit == "place"

    def fit(self, database: Searched) -> Self:
        self._database = database
        self._spectra = database.spectra(self.frequencies, self.count, self.seed)
        return self

    def measure(self, pools: Pools) -> Floats:
        angles = dots(pools.queries, self._spectra.points)  # (Q, F)
        if self.unit == "photo":
            return self._measure_photos(pools, angles)
        query, place, which = pools.segments()
        distances = self._spectra.distances(
            as_turns(angles)[query], place, self.alpha, phase=self.phase, unbiased=self.unbiased
        )
        return distances[which]

    def _measure_photos(self, pools: Pools, angles: Floats) -> Floats:
        mine = self._database.vectors(pools.rows) @ self._spectra.points.T  # (T, F)
        delta: Floats = (mine - angles[pools.of]).astype(np.float32)
        if self.phase == "weighted":
            turn = 2 * (1 - np.cos(delta)).mean(axis=1)
        else:
            turn = (spectrum.wrapped(delta) ** 2).mean(axis=1)
        mean, spread = self._spectra.levels[pools.places, int(self.unbiased)].T
        return blend(np.asarray(turn, np.float32), mean, spread, pools.places, self.alpha)


@dataclass(frozen=True)
class KDE(Measure):
    """CFD's own limit: the density of a place at the query.

    With Gaussian frequencies E_t[Re Phi_q conj(Phi_j)] is a kernel density (Bochner), and at a
    useful width it is far below the noise of sampled frequencies, so take the closed form:

        D = -log mean_i exp(scale <q, z_i>)
    """

    scale: float = 30.0

    @property
    def by_place(self) -> bool:
        return True

    def measure(self, pools: Pools) -> Floats:
        query, _, which = pools.segments()
        above = (pools.cosines - pools.largest[pools.of]).astype(np.float64)
        energy = np.bincount(which, np.exp(self.scale * above))
        density = np.log(energy / np.bincount(which)) + self.scale * pools.largest[query]
        return np.asarray(-density[which], np.float32)


@dataclass
class Fused(Measure):
    """Place posterior and photo similarity, balanced for how often each place was photographed.

        score = s (cos - impostor r_i) + posterior (log p(place | query) - balance log n_place)

    log n takes back what a crowded place gains by having more photos to be similar with; r_i
    (see index.impostors) takes back what a photo gains by resembling everything.
    """

    scale: float = 30.0
    posterior: float = 0.5
    balance: float = 0.5
    impostor: float = 0.5
    _impostors: Floats = field(init=False, repr=False, compare=False)
    _log_sizes: Floats = field(init=False, repr=False, compare=False)

    @classmethod
    def read(cls, path: Path) -> Self:
        """The score that a run has learned."""
        try:
            kept = json.loads(path.read_text())
            return cls(**{name: float(kept[name]) for name in _WEIGHTS})
        except (ValueError, KeyError, TypeError) as cause:
            raise RunError(
                f"{path} is no fused score ({cause}); learn it again: evenplace tune {path.parent}"
            ) from cause

    def without(self, terms: Iterable[str]) -> Self:
        """The same score, some of its terms left out."""
        left: dict[str, Any] = dict.fromkeys(terms, 0.0)
        return replace(self, **left)

    def write(self, path: Path) -> None:
        write_json(path, {name: getattr(self, name) for name in _WEIGHTS}, indent=1)

    def fit(self, database: Searched) -> Self:
        self._impostors = database.impostors
        log_sizes = np.log(np.maximum(database.sizes, 1)).astype(np.float32)
        self._log_sizes = np.append(log_sizes, np.float32(0))  # place -1 finds the last
        return self

    def measure(self, pools: Pools) -> Floats:
        likeness = self.scale * (pools.cosines - self.impostor * self._impostors[pools.rows])
        place = pools.log_posterior - self.balance * self._log_sizes[pools.places]
        return -(likeness + self.posterior * place).astype(np.float32)


_WEIGHTS = ("scale", "posterior", "balance", "impostor")  # of `Fused`, as they are kept
RERANKERS: dict[str, type[Any]] = {
    "l2": L2,
    "cosine": Cosine,
    "cfd": CFD,
    "kde": KDE,
    "fused": Fused,
}


def build_reranker(name: str, **settings: Any) -> Reranker:
    """Build a rule by name; `cfd-multiscale` and `cfd-matched` are short for frequencies=."""
    kind, _, mode = name.partition("-")
    if kind not in RERANKERS or (mode and kind != "cfd"):
        raise unknown_name("reranker", name, [*RERANKERS, "cfd-multiscale", "cfd-matched"])
    if mode:
        settings = {"frequencies": mode, **settings}
    rule: Reranker = RERANKERS[kind](**settings)
    return rule


def rank_batch(rule: Reranker, pools: Pools) -> Rankings:
    """The rankings of a batch by any rule."""
    if isinstance(rule, Measure):
        return rule.rank_all(pools)
    return Rankings.join([rule.rank(pools[query]) for query in range(len(pools))], pools.cuts)


def spectra_for(name: str) -> tuple[str, ...]:
    """The characteristic functions that an index should hold for a rule, by name."""
    rule = build_reranker(name)
    return (rule.frequencies,) if isinstance(rule, CFD) else ()
