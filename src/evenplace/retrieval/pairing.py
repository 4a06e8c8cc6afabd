"""Two indexes of one database: one finds the places of a query, the other ranks their photos.

Q queries · D descriptor of the first index · E of the second
"""

import numpy as np
from numpy.typing import NDArray

from evenplace.describe.describer import Describer
from evenplace.errors import IndexFileError, SettingError
from evenplace.retrieval.index import Index

Floats = NDArray[np.float32]
_SHARED = ("photos.arrow", "starts.npy")  # prototypes, and whose they are, may differ


def check_models(describer: Describer, index: Index, ranking: Index | None) -> None:
    """Refuse an index that another network wrote."""
    indexes = [index] if ranking is None else [index, ranking]
    if len(describer.dims) != len(indexes):
        raise SettingError(
            f"a describer of {len(describer.dims)} networks cannot ask {len(indexes)} indexes; "
            "give Search ranked_by= where the describer has one, and only then"
        )
    for model, asked in zip(describer.fingerprints, indexes, strict=True):
        if model != asked.model:
            raise IndexFileError(
                f"{asked.folder} was written by model {asked.model}, this one is {model}; "
                "index the database again with this model"
            )


def check_same_photos(index: Index, ranking: Index) -> None:
    """Refuse two indexes whose rows are not the same photos; checksums tell without reading."""
    if _rows(index) != _rows(ranking):
        raise IndexFileError(
            f"{ranking.folder} ({len(ranking)} photos) does not hold the photos of {index.folder} "
            f"({len(index)}) in the same order; type the command that was stopped again, or index "
            "the database again with both networks"
        )


def _rows(index: Index) -> list[str]:
    """The checksums of all that says which photo a row is."""
    manifest = index.manifest
    return [manifest.files[f"{manifest.part}/{name}"].sha256 for name in _SHARED]


def split_queries(queries: Floats, index: Index, ranking: Index) -> tuple[Floats, Floats]:
    """What each index is asked with; both are asked with all of it where they are one.

    (Q, D + E) -> (Q, D), (Q, E).
    """
    if ranking is index:
        return queries, queries
    first, second = np.split(queries, [index.given], axis=1)
    return np.ascontiguousarray(first), np.ascontiguousarray(second)


def check_queries(queries: Floats, index: Index, ranking: Index) -> None:
    """Refuse queries that are not unit descriptors by the models that wrote the indexes."""
    dims = str(index.given) if ranking is index else f"{index.given} and {ranking.given}"
    wanted = index.given if ranking is index else index.given + ranking.given
    if queries.ndim != 2 or queries.shape[1] != wanted:
        raise SettingError(
            f"queries have shape {queries.shape}, the index holds {dims} numbers a photo; "
            "describe them with the model that wrote the index"
        )
    for part in split_queries(queries, index, ranking)[: 1 if ranking is index else 2]:
        norms = np.linalg.norm(part, axis=1)
        bad = np.flatnonzero(~(np.abs(norms - 1) < 1e-2))
        if len(bad):
            raise SettingError(
                f"query {bad[0]} has length {norms[bad[0]]:.3g}; queries must have unit length"
            )
