"""Named tests (`photos.protocols`) asked of an index."""

from pathlib import Path

from evenplace.errors import RunError
from evenplace.photos.protocols import TestSet, read_protocol
from evenplace.retrieval import open_index


def read_test(index: Path, name: str, path: Path, allow_partial: bool = False) -> TestSet:
    """Read a named test and make sure that the index is of its database.

    A few photos that could not be decoded are no obstacle to a part; more photos than the test
    has always are.
    """
    test = read_protocol(name, path, allow_partial)
    indexed = len(open_index(index))
    if indexed > len(test.database) or (indexed < len(test.database) and not allow_partial):
        raise RunError(
            f"{index} has {indexed:,} photos and {name} has {len(test.database):,}; index that "
            f"database first: evenplace index {index.parent} --database PHOTOS"
        )
    return test
