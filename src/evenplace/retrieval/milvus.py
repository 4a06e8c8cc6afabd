"""Milvus as the store: for more photos than one machine holds.

The place is the partition key, so a question goes only to the partitions of its shortlist.  Rows,
places, prototypes and paths stay in the index, which every machine that answers has a copy of.
A generation is a collection of its own; the alias of the store is switched to it when it is full,
and the generation before stays for whoever is still asking it.

Nothing that comes back is believed unseen: which photos a place holds is known here, so an answer
with others, too few, or no numbers is refused.

Q queries · D descriptor · N photos
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from evenplace.arrays import Floats
from evenplace.errors import IndexFileError
from evenplace.retrieval.array_files import Rows
from evenplace.retrieval.index import Index
from evenplace.retrieval.stores import Candidates, Nearest, photos_of

PATIENCE = 10.0  # seconds for one answer
_MOST = 16_384  # answers Milvus gives to one search
_BLOCK = 1000


class MilvusStore:
    """A collection with the photos of one generation of an index.

    uri: of a server, or a file name for Milvus Lite, which runs inside this process.  name: of the
    store within that server.
    """

    def __init__(
        self,
        index: Index,
        uri: str,
        name: str = "evenplace",
        *,
        patience: float = PATIENCE,
        client: Any = None,
    ) -> None:
        self.index, self.uri, self.patience = index, uri, patience
        self.collection = collection_of(index, name)
        with _asking(uri):
            self.client = client or _connected(uri, patience)
            if not self.client.has_collection(self.collection, timeout=patience):
                raise IndexFileError(
                    f"{uri} holds no photos of generation {index.manifest.generation} of "
                    f"{index.folder}; fill it: evenplace index store RUN {uri}"
                )
            self.client.load_collection(self.collection, timeout=patience)

    @classmethod
    def fill(
        cls, index: Index, uri: str, name: str = "evenplace", *, client: Any = None
    ) -> "MilvusStore":
        """Copy the index's descriptors into a collection, and switch the store to it."""
        with _asking(uri):
            client = client or _connected(uri, PATIENCE)
            _fill(index, client, name)
        return cls(index, uri, name, client=client)

    def candidates(self, queries: Floats, places: Sequence[Rows]) -> Candidates:
        rows, of, cuts = photos_of(self.index, places)
        cosines = np.empty(len(rows), np.float32)
        for query, own in enumerate(places):
            mine = slice(cuts[query], cuts[query + 1])
            cosines[mine] = self._compare(queries[query], own, rows[mine])
        return Candidates(rows, of, cosines, cuts)

    def nearest(self, queries: Floats, k: int, without: Sequence[Rows] | None = None) -> Nearest:
        rows = np.full((len(queries), k), -1)
        cosines = np.full(rows.shape, -np.inf, np.float32)
        for query, vector in enumerate(queries):
            hidden = np.empty(0, np.int64) if without is None else np.unique(without[query])
            filtered = f"row not in {hidden.tolist()}" if len(hidden) else ""
            found, alike = self._search(vector, filtered, min(k, len(self.index)))
            wanted = min(k, len(self.index) - len(hidden))
            if len(found) != wanted or np.isin(found, hidden).any():
                raise self._lies(f"{len(found)} photos instead of {wanted}")
            rows[query, :wanted], cosines[query, :wanted] = found, alike
        return Nearest(rows, cosines)

    def _compare(self, query: Floats, places: Rows, expected: Rows) -> Floats:
        """Cosines of the photos of some places, in the order of the rows expected."""
        if len(expected) > _MOST:
            raise IndexFileError(
                f"the shortlist holds {len(expected)} photos and Milvus answers {_MOST} at most; "
                "shorten the shortlist"
            )
        if not len(expected):
            return np.empty(0, np.float32)
        rows, cosines = self._search(query, f"place in {places.tolist()}", len(expected))
        order = np.argsort(expected)
        if not np.array_equal(np.sort(rows), expected[order]):
            raise self._lies(f"{len(rows)} photos, not the {len(expected)} of the places asked")
        found = np.empty(len(expected), np.float32)
        found[order] = cosines[np.argsort(rows)]
        return found

    def _search(self, query: Floats, filtered: str, limit: int) -> tuple[Rows, Floats]:
        with _asking(self.uri):
            hits = self.client.search(
                self.collection, [query.tolist()], filter=filtered, limit=limit,
                anns_field="descriptor", timeout=self.patience,
            )[0]  # fmt: skip
        rows = np.array([hit["row"] for hit in hits], np.int64)
        cosines = np.array([hit["distance"] for hit in hits], np.float32)
        inside = (rows >= 0) & (rows < len(self.index))
        if not inside.all() or len(np.unique(rows)) < len(rows):
            raise self._lies("photos that are not in the index, or twice")
        if not (np.abs(cosines) < 1.1).all():  # nan too
            raise self._lies("numbers that are no cosines")
        return rows, cosines

    def _lies(self, what: str) -> IndexFileError:
        return IndexFileError(
            f"{self.uri} answered with {what}; it does not hold generation "
            f"{self.index.manifest.generation}: fill it again: evenplace index store RUN {self.uri}"
        )


def collection_of(index: Index, name: str) -> str:
    """What a generation's collection is called; another index of the same number is another."""
    manifest = index.manifest
    rows = manifest.files[f"{manifest.part}/photos.arrow"].sha256[:8]
    return f"{name}_{manifest.generation:06d}_{index.model}_{rows}"


def _connected(uri: str, patience: float) -> Any:
    try:
        from pymilvus import MilvusClient
    except ImportError as cause:
        raise IndexFileError(
            f"{uri} is a Milvus store; install its client: pip install 'evenplace[milvus]'"
        ) from cause
    return MilvusClient(uri, timeout=patience)


@contextmanager
def _asking(uri: str) -> Iterator[None]:
    """Ask the store; whatever it does instead of answering is one sentence."""
    try:
        yield
    except IndexFileError:
        raise
    except Exception as cause:  # its client raises its own, gRPC's, and plain ones
        said = str(cause).splitlines()[0][:200] if str(cause) else type(cause).__name__
        raise IndexFileError(
            f"the store {uri} does not answer ({said}); start it, or answer from the files: "
            "remove store.json from the run"
        ) from cause


def _fill(index: Index, client: Any, name: str) -> None:
    from pymilvus import DataType

    collection = collection_of(index, name)
    before = sorted(one for one in client.list_collections() if one.startswith(f"{name}_"))
    if collection in before:
        client.drop_collection(collection)
    schema = client.create_schema(auto_id=False)
    schema.add_field("row", DataType.INT64, is_primary=True)
    schema.add_field("place", DataType.INT64, is_partition_key=True)
    schema.add_field("descriptor", DataType.FLOAT_VECTOR, dim=index.dim)
    indexed = client.prepare_index_params()
    indexed.add_index("descriptor", index_type="FLAT", metric_type="IP")
    client.create_collection(collection, schema=schema, index_params=indexed)
    for first in range(0, len(index), _BLOCK):
        client.insert(
            collection, _entities(index, np.arange(first, min(first + _BLOCK, len(index))))
        )
    client.flush(collection)
    current = _switch(client, collection, name)
    for old in before:
        if old not in (collection, current):
            client.drop_collection(old)


def _switch(client: Any, collection: str, alias: str) -> str | None:
    """Point the alias of the store at a collection; which it pointed at before."""
    log = logging.getLogger("pymilvus")
    level, current = log.level, None
    log.setLevel(logging.CRITICAL)  # it would write a traceback of what is caught here
    try:
        current = client.describe_alias(alias)["collection_name"]
    except Exception:  # there is no such alias yet; clients do not agree on how to say that
        pass
    finally:
        log.setLevel(level)
    (client.alter_alias if current else client.create_alias)(collection, alias)
    return current


def _entities(index: Index, rows: Rows) -> list[dict[str, Any]]:
    vectors, places = index.vectors(rows), index.places_of(rows)
    return [
        {"row": int(row), "place": int(place), "descriptor": vector.tolist()}
        for row, place, vector in zip(rows, places, vectors, strict=True)
    ]
