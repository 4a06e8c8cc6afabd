"""Which photos teach most: for a query, its most similar positive and its most similar negatives.

Q queries · N candidates · D descriptor · k positives · n negatives
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import RunError
from evenplace.photos.files import whole_file
from evenplace.photos.nearby import Nearby
from evenplace.training.specs import MiningSpec

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Look = Callable[[Ints], Floats]


@dataclass(frozen=True)
class Mined:
    """Queries, the positives and negatives of each, best first; numbers of candidates."""

    queries: Ints  # (Q,)
    positives: Ints  # (Q, k), repeated where there are fewer
    negatives: Ints  # (Q, n)
    shares: Floats | None = None  # (Q, k * regions), SFRS's teacher

    def __len__(self) -> int:
        return len(self.queries)

    def write(self, path: Path) -> None:
        arrays = {name: value for name, value in vars(self).items() if value is not None}
        with whole_file(path, RunError) as draft, draft.open("wb") as file:
            np.savez(file, **arrays)

    @classmethod
    def read(cls, path: Path) -> "Mined":
        with np.load(path) as file:
            return cls(**{name: file[name] for name in file.files})


def mine_triplets(
    queries: Ints,
    near: Nearby,
    positions: NDArray[np.float64],
    look: Look,
    dice: np.random.Generator,
    spec: MiningSpec,
    city: NDArray[np.integer] | None = None,
) -> Mined:
    """Describe the photos and choose.

    Full mining describes all candidates; partial mining the queries, their positives and a pool
    of `spec.pool` others drawn at random, as deep-vg does on large sets.  near: the candidates
    within the positive radius of each.  positions: (N, 2) or (N, 3).  look: describes candidates.
    city: (N,) of each, where negatives are to be of the query's own.
    """
    close = [near.rows[near.starts[q] : near.starts[q + 1]] for q in queries]
    close = [own[own != q] for own, q in zip(close, queries, strict=True)]
    pool = np.arange(len(positions))
    if spec.pool and spec.pool < len(positions):
        pool = np.sort(dice.choice(len(positions), spec.pool, replace=False))
    wanted = np.unique(np.concatenate([queries, pool, *close]))
    seen = look(wanted)  # (n, D)
    at = np.searchsorted(wanted, np.arange(len(positions)))  # where each candidate is in `seen`
    positives, negatives, kept = [], [], []
    for query, own in zip(queries, close, strict=True):
        asked = seen[at[query]]
        best = own[np.argsort(-(seen[at[own]] @ asked), kind="stable")]
        away = np.linalg.norm(positions[pool] - positions[query], axis=1)
        far = pool[(away > spec.negative) & (True if city is None else city[pool] == city[query])]
        if not len(far):
            continue
        alike = seen[at[far]] @ asked
        count = min(spec.negatives, len(far))
        top = np.argpartition(-alike, count - 1)[:count]
        hardest = far[top[np.argsort(-alike[top], kind="stable")]]
        kept.append(query)
        positives.append(np.resize(best, spec.positives))
        negatives.append(np.resize(hardest, spec.negatives))
    return Mined(np.array(kept, np.int64), _table(positives), _table(negatives))


def _table(rows: list[Ints]) -> Ints:
    return np.stack(rows).astype(np.int64) if rows else np.empty((0, 1), np.int64)
