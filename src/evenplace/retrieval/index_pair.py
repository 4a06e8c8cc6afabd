"""Two indexes of one database: one finds the places of a query, the other ranks their photos.

Q queries · D descriptor of the first index · E of the second
"""

from dataclasses import dataclass, replace

import numpy as np

from evenplace.arrays import Floats, unit
from evenplace.describe.describer import Describer
from evenplace.errors import IndexFileError, SettingError
from evenplace.retrieval.index import Index
from evenplace.retrieval.query_shift import shift_of

_SHARED = ("photos.arrow", "starts.npy")  # prototypes, and whose they are, may differ


@dataclass(frozen=True)
class Pair:
    """The index that finds places and the one that ranks photos; one may do both."""

    index: Index
    ranking: Index
    shifts: tuple[Floats, ...] = ()  # added to queries of a set, for each index, then as given

    def __post_init__(self) -> None:
        """Refuse two indexes whose rows are not the same photos; checksums tell without reading."""
        if _rows(self.index) != _rows(self.ranking):
            raise IndexFileError(
                f"{self.ranking.folder} ({len(self.ranking)} photos) does not hold the photos of "
                f"{self.index.folder} ({len(self.index)}) in the same order; type the command that "
                "was stopped again, or index the database again with both networks"
            )

    @property
    def indexes(self) -> tuple[Index, ...]:
        return (self.index,) if self.ranking is self.index else (self.index, self.ranking)

    def check_models(self, describer: Describer) -> None:
        """Refuse an index that another network wrote."""
        if len(describer.dims) != len(self.indexes):
            raise SettingError(
                f"a describer of {len(describer.dims)} networks cannot ask {len(self.indexes)} "
                "indexes; give Search ranked_by= where the describer has one, and only then"
            )
        for model, asked in zip(describer.fingerprints, self.indexes, strict=True):
            if model != asked.model:
                raise IndexFileError(
                    f"{asked.folder} was written by model {asked.model}, this one is {model}; "
                    "index the database again with this model"
                )

    def split(self, queries: Floats) -> tuple[Floats, ...]:
        """What each index is asked with, as it was given.  (Q, D + E) -> (Q, D), (Q, E)."""
        if self.ranking is self.index:
            return (queries,)
        parts = np.split(queries, [self.index.given], axis=1)
        return tuple(np.ascontiguousarray(part) for part in parts)

    def turn(self, queries: Floats) -> tuple[Floats, Floats]:
        """What finds the places and what ranks the photos, as the indexes keep descriptors."""
        parts = zip(self.indexes, self.split(queries), strict=True)
        turned = [index.codec.turn(part) for index, part in parts]
        if self.shifts:
            turned = [unit(t + shift) for t, shift in zip(turned, self.shifts, strict=False)]
        return turned[0], turned[-1]

    def given(self, queries: Floats) -> Floats:
        """What is compared with descriptors as they were given.  (Q, D + E) -> (Q, E)."""
        asked = self.split(queries)[-1]
        return unit(asked + self.shifts[-1]) if self.shifts else asked

    def moved(self, queries: Floats) -> "Pair":
        """For these queries, which come together: moved to where the database is."""
        plain = replace(self, shifts=())
        shifts = [
            shift_of(index, turned)
            for index, turned in zip(self.indexes, plain.turn(queries), strict=False)
        ]
        if self.ranking.codec.refines:
            exact = self.ranking.columns["exact"]
            shifts.append(shift_of(self.ranking, plain.split(queries)[-1], exact))
        return replace(self, shifts=tuple(shifts)) if any(map(np.any, shifts)) else plain

    def checked(self, descriptors: Floats) -> Floats:
        """Refuse queries that are not unit descriptors by the models that wrote the indexes."""
        queries = np.ascontiguousarray(descriptors, np.float32)
        dims = [index.given for index in self.indexes]
        if queries.ndim != 2 or queries.shape[1] != sum(dims):
            raise SettingError(
                f"queries have shape {queries.shape}, the index holds "
                f"{' and '.join(map(str, dims))} numbers a photo; describe them with the model "
                "that wrote the index"
            )
        for part in self.split(queries):
            norms = np.linalg.norm(part, axis=1)
            bad = np.flatnonzero(~(np.abs(norms - 1) < 1e-2))
            if len(bad):
                raise SettingError(
                    f"query {bad[0]} has length {norms[bad[0]]:.3g}; queries must have unit length"
                )
        return queries


def _rows(index: Index) -> list[str]:
    """The checksums of all that says which photo a row is."""
    manifest = index.manifest
    return [manifest.files[f"{manifest.part}/{name}"].sha256 for name in _SHARED]
