"""Milvus as the store: for more photos than one machine holds.

The place is the partition key, so a question goes only to the partitions of its shortlist.  Rows,
places, prototypes and paths stay in the index, which every machine that answers has a copy of.

Q queries · D descriptor · N photos
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import IndexFileError
from evenplace.retrieval.index import Index
from evenplace.retrieval.stores import Candidates, Nearest

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
_MOST = 16_384  # answers Milvus gives to one search
_BLOCK = 1000


class MilvusStore:
    """A collection with the photos of one generation of an index.

    uri: of a server, or a file name for Milvus Lite, which runs inside this process.
    """

    def __init__(self, index: Index, uri: str, name: str = "evenplace") -> None:
        from pymilvus import MilvusClient

        self.index = index
        self.name = f"{name}_{index.model}_{index.manifest.generation}"
        self.client = MilvusClient(uri)
        if not self.client.has_collection(self.name):
            raise IndexFileError(
                f"{uri} has no collection {self.name}; fill it first: MilvusStore.fill(index, uri)"
            )
        self.client.load_collection(self.name)

    @classmethod
    def fill(cls, index: Index, uri: str, name: str = "evenplace") -> "MilvusStore":
        """Make the collection and copy the index's descriptors into it."""
        from pymilvus import DataType, MilvusClient

        client = MilvusClient(uri)
        collection = f"{name}_{index.model}_{index.manifest.generation}"
        if client.has_collection(collection):
            client.drop_collection(collection)
        schema = client.create_schema(auto_id=False)
        schema.add_field("row", DataType.INT64, is_primary=True)
        schema.add_field("place", DataType.INT64, is_partition_key=True)
        schema.add_field("descriptor", DataType.FLOAT_VECTOR, dim=index.dim)
        indexed = client.prepare_index_params()
        indexed.add_index("descriptor", index_type="FLAT", metric_type="IP")
        client.create_collection(collection, schema=schema, index_params=indexed)
        for first in range(0, len(index), _BLOCK):
            rows = np.arange(first, min(first + _BLOCK, len(index)))
            client.insert(collection, list(_entities(index, rows)))
        client.flush(collection)
        client.close()
        return cls(index, uri, name)

    def candidates(self, queries: Floats, places: Sequence[Rows]) -> Candidates:
        parts = [self._ask(query, own) for query, own in zip(queries, places, strict=True)]
        cuts = np.cumsum([0, *(len(rows) for rows, _, _ in parts)])
        before = np.cumsum([0, *map(len, places)])
        rows, of, cosines = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Candidates(rows, of + np.repeat(before[:-1], np.diff(cuts)), cosines, cuts)

    def nearest(self, queries: Floats, k: int, without: Sequence[Rows] | None = None) -> Nearest:
        rows = np.full((len(queries), k), -1)
        cosines = np.full(rows.shape, -np.inf, np.float32)
        for query, vector in enumerate(queries):
            hidden = [] if without is None else without[query].tolist()
            hits = self.client.search(
                self.name,
                [vector.tolist()],
                filter=f"row not in {hidden}" if hidden else "",
                limit=k,
                anns_field="descriptor",
            )[0]
            rows[query, : len(hits)] = [hit["row"] for hit in hits]
            cosines[query, : len(hits)] = [hit["distance"] for hit in hits]
        return Nearest(rows, cosines)

    def _ask(self, query: Floats, places: Rows) -> tuple[Rows, Rows, Floats]:
        """All photos of some places, in the order the embedded store has them.

        Rows, which of the places each is of, cosines.
        """
        wanted = int(self.index.sizes[places].sum())
        if wanted > _MOST:
            raise IndexFileError(
                f"the shortlist holds {wanted} photos and Milvus answers {_MOST} at most; "
                "shorten the shortlist"
            )
        hits = self.client.search(
            self.name,
            [query.tolist()],
            filter=f"place in {places.tolist()}",
            limit=max(wanted, 1),
            output_fields=["place"],
            anns_field="descriptor",
        )[0]
        rows = np.array([hit["row"] for hit in hits], np.int64)
        where = np.array([hit["entity"]["place"] for hit in hits], np.int64)
        cosines = np.array([hit["distance"] for hit in hits], np.float32)
        rank = np.argsort(places)[np.searchsorted(places, where, sorter=np.argsort(places))]
        order = np.lexsort((rows, rank))
        return rows[order], rank[order], cosines[order]


def _entities(index: Index, rows: Rows) -> list[dict[str, Any]]:
    vectors, places = index.vectors(rows), index.places_of(rows)
    return [
        {"row": int(row), "place": int(place), "descriptor": vector.tolist()}
        for row, place, vector in zip(rows, places, vectors, strict=True)
    ]
