"""A store on other machines: the same answers as from files, or a sentence; never a wrong one."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenplace.errors import IndexFileError
from evenplace.places import Grid
from evenplace.retrieval import Index, Search, open_index
from evenplace.retrieval.build import index_descriptors
from evenplace.retrieval.milvus import MilvusStore, collection_of
from evenplace.retrieval.stores import EmbeddedStore
from evenplace.retrieval.update import add_photos
from tests.drawn import photos_at, unit

QUERIES = unit(6, 16, 5)


@pytest.fixture
def index(tmp_path: Path) -> Index:
    photos = photos_at(np.random.default_rng(0).uniform(0, 150, (120, 2)))
    places = Grid(20, min_photos=2).partition(photos)
    return index_descriptors(unit(120, 16, 1), photos, places, tmp_path / "index")


class Stub:
    """A Milvus that holds some collections and answers from the index; tests spoil its answers."""

    def __init__(self, index: Index, spoil: Callable[[list[Any]], list[Any]] = list) -> None:
        self.index, self.spoil = index, spoil
        self.collections = {collection_of(index, "evenplace")}

    def has_collection(self, name: str, **_: Any) -> bool:
        return name in self.collections

    def load_collection(self, name: str, **_: Any) -> None: ...

    def search(self, _: str, queries: list[Any], *, filter: str, limit: int, **__: Any) -> Any:  # noqa: A002
        chosen = np.arange(len(self.index))
        if filter.startswith("place in "):
            places = [int(one) for one in filter[len("place in [") : -1].split(",")]
            chosen = np.flatnonzero(np.isin(self.index.labels, places))
        alike = self.index.vectors(chosen) @ np.array(queries[0], np.float32)
        best = np.argsort(-alike)[:limit]
        hits = [{"row": int(chosen[at]), "distance": float(alike[at])} for at in best]
        return [self.spoil(hits)]


def refuses(_: list[Any]) -> list[Any]:
    raise ConnectionRefusedError("nobody listens")


def delays(_: list[Any]) -> list[Any]:
    raise TimeoutError("Deadline Exceeded")


def leaves_out(hits: list[Any]) -> list[Any]:
    return hits[:-1]


def repeats(hits: list[Any]) -> list[Any]:
    return [hits[0], *hits[:-1]]


def names_strangers(hits: list[Any]) -> list[Any]:
    return [{**hits[0], "row": 10**9}, *hits[1:]]


def says_nonsense(hits: list[Any]) -> list[Any]:
    return [{**hits[0], "distance": float("nan")}, *hits[1:]]


def test_a_store_that_answers_gives_the_answers_of_the_files(index: Index) -> None:
    store = MilvusStore(index, "stub", client=Stub(index))
    for settings in ({}, {"rerank": "fused"}, {"exact": True}, {"shortlist": 2}):
        ours = Search(index, **settings).search(QUERIES, 5)
        theirs = Search(index, store=store, **settings).search(QUERIES, 5)
        np.testing.assert_array_equal(theirs.rows, ours.rows)
        np.testing.assert_allclose(theirs.distances, ours.distances, atol=1e-4)
        np.testing.assert_allclose(theirs.confidence, ours.confidence, atol=1e-4)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (refuses, r"store stub does not answer \(nobody listens\)"),
        (delays, r"does not answer \(Deadline Exceeded\)"),
        (leaves_out, "photos"),
        (repeats, "twice"),
        (names_strangers, "not in the index"),
        (says_nonsense, "no cosines"),
    ],
)
def test_a_store_that_fails_is_a_sentence(
    index: Index, spoil: Callable[[list[Any]], list[Any]], words: str, exact: bool
) -> None:
    store = MilvusStore(index, "stub", client=Stub(index, spoil))
    with pytest.raises(IndexFileError, match=words):
        Search(index, store=store, exact=exact).search(QUERIES, 5)


def test_a_store_of_another_generation_is_refused(index: Index) -> None:
    stub = Stub(index)
    photos = photos_at(np.array([[5.0, 5.0]]))
    renamed = photos.table.set_column(photos.table.column_names.index("path"), "path", [["n.jpg"]])
    grown = add_photos(
        index.folder, unit(1, 16, 9), type(photos)(renamed.cast(photos.table.schema))
    )
    with pytest.raises(IndexFileError, match=r"no photos of generation 2.*evenplace index store"):
        MilvusStore(grown, "stub", client=stub)


def test_a_cluster_that_is_down_is_a_sentence(index: Index) -> None:
    began = time.perf_counter()
    with pytest.raises(IndexFileError, match=r"http://127.0.0.1:1 does not answer"):
        MilvusStore(index, "http://127.0.0.1:1", patience=1.0)
    assert time.perf_counter() - began < 30


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_milvus_lite_answers_as_the_files_through_generations(
    index: Index, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    uri = str(tmp_path / "milvus.db")
    store = MilvusStore.fill(index, uri)
    assert "Traceback" not in capfd.readouterr().err  # of an alias that is not there yet
    for settings in ({}, {"rerank": "fused"}, {"rerank": "kde"}, {"exact": True}):
        ours = Search(index, **settings).search(QUERIES, 5)
        theirs = Search(index, store=store, **settings).search(QUERIES, 5)
        np.testing.assert_allclose(theirs.distances, ours.distances, atol=1e-3)
        assert (theirs.rows == ours.rows).mean() > 0.98  # float32 breaks ties of float16
        np.testing.assert_allclose(theirs.confidence, ours.confidence, atol=1e-3)
    there, here = (one.nearest(QUERIES, 5) for one in (store, EmbeddedStore(index)))
    assert (there.rows == here.rows).mean() > 0.98
    generations = [index]
    for number in range(2):
        table = photos_at(np.array([[5.0 + number, 5.0]])).table
        at = table.column_names.index("path")
        table = table.set_column(at, "path", [[f"n{number}.jpg"]]).cast(table.schema)
        add_photos(index.folder, unit(1, 16, 9 + number), type(index.photos)(table))
        generations.append(open_index(index.folder))
        store = MilvusStore.fill(generations[-1], uri)
    kept = {one for one in store.client.list_collections() if one.startswith("evenplace_")}
    assert kept == {collection_of(one, "evenplace") for one in generations[1:]}
    assert store.client.describe_alias("evenplace")["collection_name"] == store.collection
    with pytest.raises(IndexFileError, match="holds no photos of generation 1"):
        MilvusStore(index, uri, client=store.client)
