"""What ranks the photos of a shortlist.  Each rule is a small class behind one protocol.

C places · D descriptor · F frequencies · N photos · P candidates
"""

from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import SettingError, unknown_name
from evenplace.index import spectrum

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Pool:
    """The candidates of one query: photos of the shortlisted places, place by place."""

    rows: Rows  # (P,) rows of the index
    places: Rows  # (P,)
    cosines: Floats  # (P,) similarity of the query to each photo
    log_posterior: Floats  # (P,) log p(place | query) of each photo's place
    query: Floats  # (D,)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, kept: NDArray[np.bool_]) -> "Pool":
        return Pool(
            self.rows[kept],
            self.places[kept],
            self.cosines[kept],
            self.log_posterior[kept],
            self.query,
        )


@dataclass(frozen=True)
class Database:
    """What a rule may look at once, before the first query."""

    descriptors: NDArray[Any]  # (N, D), photos of place c in rows starts[c]:starts[c+1]
    starts: Rows  # (C + 1,)
    impostors: Floats  # (N,)

    @property
    def sizes(self) -> Rows:
        return np.diff(self.starts)


@dataclass(frozen=True)
class Ranking:
    """Candidates from best to worst, and how far each is; the unit is the rule's own."""

    order: Rows  # (P,) positions in the pool
    distances: Floats  # (P,) in that order


class Reranker(Protocol):
    """A rule: looks at the database once, then ranks pools."""

    def fit(self, database: Database) -> Self: ...

    def rank(self, pool: Pool) -> Ranking: ...


def _nearest_first(distances: Floats) -> Ranking:
    order = np.argsort(distances, kind="stable")
    return Ranking(order, distances[order])


def _places_first(place_distance: Floats, cosines: Floats) -> Ranking:
    """Rank places by their distance and the photos inside each by similarity."""
    order = np.lexsort((-cosines, place_distance))
    return Ranking(order, place_distance[order])


@dataclass(frozen=True)
class L2:
    """Euclidean distance between unit descriptors."""

    def fit(self, database: Database) -> Self:
        return self

    def rank(self, pool: Pool) -> Ranking:
        return _nearest_first(np.sqrt(np.maximum(2 - 2 * pool.cosines, 0)))


@dataclass(frozen=True)
class Cosine:
    """One minus the cosine: the order of L2, another unit."""

    def fit(self, database: Database) -> Self:
        return self

    def rank(self, pool: Pool) -> Ranking:
        return _nearest_first(1 - pool.cosines)


@dataclass
class CFD:
    """Characteristic Function Distance (Eq. 8-13).

    unit "place" ranks places and lists the photos of each by L2; "photo" takes the amplitude of
    the place and the phase of the photo.  unbiased removes from the amplitude what is only
    sample size.  The defaults are the paper's.
    """

    alpha: float = 0.7
    frequencies: str = "paper"
    count: int = 1024
    phase: str = "wrapped"
    unit: str = "place"
    unbiased: bool = False
    seed: int = 0
    _points: Floats = field(init=False, repr=False)  # (F, D)
    _spectra: spectrum.Spectrum = field(init=False, repr=False)  # (C, F)
    _amplitudes: Floats = field(init=False, repr=False)  # (C, F)
    _descriptors: NDArray[Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise SettingError(f"alpha={self.alpha} weighs the amplitude; use 0 to 1")
        if self.unit not in ("place", "photo"):
            raise unknown_name("unit", self.unit, ("place", "photo"))

    def fit(self, database: Database) -> Self:
        descriptors, starts = database.descriptors, database.starts
        self._points = spectrum.draw_frequencies(
            self.frequencies,
            self.count,
            descriptors.shape[1],
            np.random.default_rng(self.seed),
            spread=_spread(descriptors, starts) if self.frequencies == "matched" else 1.0,
        )
        spectra = spectrum.place_spectra(descriptors, starts, self._points)
        amplitude = spectrum.amplitudes(spectra, database.sizes, unbiased=self.unbiased)
        self._spectra, self._amplitudes = _with_nowhere(spectra), _with_nowhere(amplitude)
        self._descriptors = descriptors
        return self

    def rank(self, pool: Pool) -> Ranking:
        query = spectrum.characteristic(pool.query[None], self._points)[0]  # (F,)
        if self.unit == "photo":
            own = spectrum.characteristic(self._descriptors[pool.rows], self._points)  # (P, F)
            amplitude = self._amplitudes[pool.places]
            return _nearest_first(spectrum.cfd(query, own, amplitude, self.alpha, phase=self.phase))
        places, which = np.unique(pool.places, return_inverse=True)
        distance = spectrum.cfd(
            query, self._spectra[places], self._amplitudes[places], self.alpha, phase=self.phase
        )
        return _places_first(distance[which], pool.cosines)

    def reliabilities(self) -> Floats:
        """r of each place: how scattered it is, which says nothing of the match.  (C,)."""
        return spectrum.reliability(self._amplitudes[:-1])


@dataclass(frozen=True)
class KDE:
    """CFD's own limit: the density of a place at the query.

    With Gaussian frequencies E_t[Re Phi_q conj(Phi_j)] is a kernel density (Bochner), and at a
    useful width it is far below the noise of sampled frequencies, so take the closed form:

        D = -log mean_i exp(scale <q, z_i>)
    """

    scale: float = 30.0

    def fit(self, database: Database) -> Self:
        return self

    def rank(self, pool: Pool) -> Ranking:
        places, which = np.unique(pool.places, return_inverse=True)
        energy = np.zeros(len(places))
        np.add.at(energy, which, np.exp(self.scale * (pool.cosines - pool.cosines.max())))
        density = np.log(energy / np.bincount(which)) + self.scale * pool.cosines.max()
        return _places_first(-density[which].astype(np.float32), pool.cosines)


@dataclass
class Fused:
    """Place posterior and photo similarity, balanced for how often each place was photographed.

        score = s (cos - impostor r_i) + posterior (log p(place | query) - balance log n_place)

    log n takes back what a crowded place gains by having more photos to be similar with; r_i
    (see index.impostors) takes back what a photo gains by resembling everything.
    """

    scale: float = 30.0
    posterior: float = 0.5
    balance: float = 0.5
    impostor: float = 0.5
    _impostors: Floats = field(init=False, repr=False)
    _log_sizes: Floats = field(init=False, repr=False)

    def fit(self, database: Database) -> Self:
        self._impostors = np.asarray(database.impostors)
        log_sizes = np.log(np.maximum(database.sizes, 1)).astype(np.float32)
        self._log_sizes = _with_nowhere(log_sizes)
        return self

    def rank(self, pool: Pool) -> Ranking:
        likeness = self.scale * (pool.cosines - self.impostor * self._impostors[pool.rows])
        place = pool.log_posterior - self.balance * self._log_sizes[pool.places]
        return _nearest_first(-(likeness + self.posterior * place).astype(np.float32))


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


def _with_nowhere(values: NDArray[Any]) -> NDArray[Any]:
    """Add a last row of zeros, which label -1 finds: photos in no place have no amplitude."""
    return np.concatenate([values, np.zeros_like(values[:1])])


def _spread(descriptors: NDArray[Any], starts: Rows) -> float:
    """Root mean squared distance of photos to their place's mean, places of two and more."""
    total, count = 0.0, 0
    for place in np.flatnonzero(np.diff(starts) > 1):
        rows = descriptors[starts[place] : starts[place + 1]].astype(np.float32)
        total += float(((rows - rows.mean(axis=0)) ** 2).sum())
        count += len(rows) - 1
    return (total / count) ** 0.5 if count else 1.0
