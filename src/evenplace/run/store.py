"""A run whose descriptors are asked in a store on other machines: run/store.json remembers it."""

import json
import secrets
from dataclasses import asdict, dataclass

from evenplace.errors import RunError
from evenplace.photos.files import write_json
from evenplace.retrieval import Index, open_index
from evenplace.retrieval.milvus import MilvusStore
from evenplace.run.run_folder import RunFolder


@dataclass(frozen=True)
class StoreAddress:
    """uri: of a Milvus cluster, or a file name for Milvus Lite; name: the run's own within it."""

    uri: str
    name: str


def store_of(run: RunFolder) -> StoreAddress | None:
    """The store a run remembers, if it has one."""
    path = run / "store.json"
    if not path.exists():
        return None
    try:
        return StoreAddress(**json.loads(path.read_text()))
    except (ValueError, TypeError) as cause:
        raise RunError(
            f"{path} names no store ({cause}); fill one: evenplace index store {run.path} URI"
        ) from cause


def fill_store(run: RunFolder, uri: str | None = None) -> StoreAddress | None:
    """Put the newest generation into the run's store, or into the one at `uri` from now on.

    Nothing happens where a run has none.  Where another network ranks, its descriptors are asked.
    """
    known = store_of(run)
    if uri is not None:
        name = known.name if known and known.uri == uri else f"run_{secrets.token_hex(4)}"
        known = StoreAddress(uri, name)
    if known is None:
        return None
    MilvusStore.fill(open_index(run.indexes[0]), known.uri, known.name)
    write_json(run / "store.json", asdict(known))
    return known


def open_store(run: RunFolder, index: Index) -> MilvusStore | None:
    """The run's store for this generation of the index that ranks; None where it has no store."""
    known = store_of(run)
    return None if known is None else MilvusStore(index, known.uri, known.name)
