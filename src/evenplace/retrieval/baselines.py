"""faiss over every photo, behind the engine's call: what a shortlist of places is judged by.

Q queries · N photos · k hits
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import unknown_name
from evenplace.retrieval.hits import Ellipse, Hits, Position
from evenplace.retrieval.index import Index

Floats = NDArray[np.float32]
KINDS = ("flat", "ivf", "hnsw")
_BLOCK = 65_536
_NOWHERE = Position(float("nan"), float("nan"), Ellipse(*[float("nan")] * 3))


class FaissSearch:
    """All photos in a faiss index: flat is exact, ivf and hnsw are not.

    Answers distances and rows as `Search` does; there are no places, and confidence is minus
    the distance.
    """

    def __init__(self, index: Index, kind: str = "flat", *, probes: int = 32) -> None:
        if kind not in KINDS:
            raise unknown_name("faiss baseline", kind, KINDS)
        self.index = index
        self.faiss = _make(index, kind, probes)
        for first in range(0, len(index), _BLOCK):
            self.faiss.add(index.vectors(np.arange(first, min(first + _BLOCK, len(index)))))

    def search(self, descriptors: Floats, k: int = 20) -> Hits:
        began = time.perf_counter()
        squares, rows = self.faiss.search(np.ascontiguousarray(descriptors, np.float32), k)
        spent = (time.perf_counter() - began) * 1e3 / max(len(rows), 1)
        distances = np.sqrt(np.maximum(np.where(rows < 0, np.inf, squares), 0))
        nothing = np.empty((len(rows), 0))
        return Hits(
            rows=rows,
            distances=distances.astype(np.float32),
            cosines=np.where(rows < 0, np.nan, 1 - squares / 2).astype(np.float32),
            shortlist=nothing.astype(np.int64),
            posterior=nothing.astype(np.float32),
            confidence=-distances[:, 0].astype(np.float32),
            positions=(_NOWHERE,) * len(rows),
            elapsed_ms={"rank": np.full(len(rows), spent)},
        )


def _make(index: Index, kind: str, probes: int) -> Any:
    import faiss

    if kind == "flat":
        return faiss.IndexFlatL2(index.dim)
    if kind == "hnsw":
        graph = faiss.IndexHNSWFlat(index.dim, 32)
        graph.hnsw.efSearch = 4 * probes
        return graph
    lists = max(1, int(4 * len(index) ** 0.5))
    sample = np.sort(np.random.default_rng(0).permutation(len(index))[: 64 * lists])
    parted = faiss.IndexIVFFlat(faiss.IndexFlatL2(index.dim), index.dim, lists)
    parted.train(index.vectors(sample))
    parted.nprobe = min(probes, lists)
    return parted
