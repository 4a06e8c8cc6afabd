"""Places where the classes of several partitions meet, and any of them may vouch: CPlaNet's sum.

    score(c) = Σ_l p_l(parent_l(c)),    p_l = softmax(s <q, w_l>) over the classes of level l

No one vector a place gives this order, so the classes of the levels are kept beside.  A place
opened since has no class; it counts at each level as one of its own, at its photos' mean.

    Q queries · C places · P some of them · L levels · K classes of all levels · D descriptor
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Floats, unit
from evenplace.retrieval.array_files import Rows, dots, map_array, write_array
from evenplace.retrieval.shortlist_codes import Found, log_sum

if TYPE_CHECKING:
    from evenplace.networks.classifiers import LevelClassifiers

_FILES = ("levels-classes.npy", "levels-parents.npy", "levels-starts.npy")


@dataclass(frozen=True)
class Levels:
    """The classes of each level, and which of them each place lies in."""

    classes: Floats  # (K, D) unit, level by level
    parents: Rows  # (L, C) rows of `classes`, -1 for a place opened since
    starts: Rows  # (L + 1,) where the classes of each level begin

    @classmethod
    def of(cls, classifiers: "LevelClassifiers") -> Self:
        """What a trained classifier knows."""
        own = [unit(one.detach().cpu().numpy()) for one in classifiers.prototypes]
        starts = np.cumsum([0, *map(len, own)])
        parents = classifiers.parents.cpu().numpy() + starts[:-1, None]
        return cls(np.concatenate(own), parents, starts)

    def write(self, folder: Path) -> None:
        parts: tuple[NDArray[Any], ...] = (self.classes, self.parents, self.starts)
        for name, values in zip(_FILES, parts, strict=True):
            write_array(folder / name, values)

    @classmethod
    def open(cls, folder: Path) -> Self:
        return cls(*(np.array(map_array(folder / name)) for name in _FILES))

    def renumbered(self, numbers: Rows, count: int) -> Self:
        """With places opened among the known ones.  numbers: (C before,) what each is called."""
        parents = np.full((len(self.parents), count), -1)
        parents[:, numbers] = self.parents
        return replace(self, parents=parents)

    def find(self, queries: Floats, means: Floats, places: Rows, scale: float, n: int) -> Found:
        """The n best of `places` by the sum, scores as logits over the scale.  (Q, D) -> (Q, n)."""
        scores = self.scores(queries, means, places, scale)  # (Q, P)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :n]
        return Found(
            places[order], np.take_along_axis(scores, order, axis=1), log_sum(scores, scale)
        )

    def scores(self, queries: Floats, means: Floats, places: Rows, scale: float) -> Floats:
        """log score / s of some places.  means: (C, D) prototypes -> (Q, P)."""
        cosines = dots(queries, self.classes)  # (Q, K)
        fresh = self.parents[0, places] < 0
        beside = dots(queries, means[places[fresh]])  # (Q, opened since)
        total = np.full((len(queries), len(places)), -np.inf, np.float32)
        for level, row in enumerate(self.parents[:, places]):
            own = cosines[:, row]
            own[:, fresh] = beside
            whole = log_sum(cosines[:, self.starts[level] : self.starts[level + 1]], scale)
            total = np.logaddexp(total, scale * own - whole[:, None])
        return np.asarray(total / scale, np.float32)
