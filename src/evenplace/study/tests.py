"""Tests a study asks after training somewhere else: named ones, or a database and queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenplace.errors import PhotoError, SettingError
from evenplace.evaluation import Truth
from evenplace.photos import Photos, join_photos, read_photos
from evenplace.photos.protocols import RADIUS, find_protocols, read_protocol
from evenplace.study.data import Split


@dataclass(frozen=True)
class Asked:
    """A test by name: where to search, what to ask, and what counts as found."""

    name: str
    database: Photos
    queries: Photos
    truth: Truth


def read_asked(data: str | Path, protocol: str | None = None) -> list[Asked]:
    """The tests of a data set's folder: those it is known for, or database/ and queries/.

    A folder that holds a part of a named test is asked too, and its name says so.
    """
    where = Path(data)
    if not where.is_dir():
        raise PhotoError(f"there is no folder {where} to test on; check the path")
    names = [protocol] if protocol else find_protocols(where)
    if names:
        return [_named(name, where) for name in names]
    return [_plain(where.name, where / "database", where / "queries")]


def read_pair(database: Path, queries: Path, protocol: str | None = None) -> Asked:
    """A database and queries in folders of their own."""
    if protocol:
        raise SettingError(f"--protocol {protocol} reads a data set's folder; give it with --test")
    return _plain(queries.absolute().parent.name, database, queries)


@dataclass(frozen=True)
class Tests:
    """What is trained on, and what is asked of it."""

    __test__ = False  # pytest takes a class of this name for its own
    train: Photos
    asked: tuple[Asked, ...]

    def splits(self, one: Asked, seeds: int) -> list[Split]:
        """The same test for every seed of the training."""
        parts = (self.train, one.database, one.queries, one.truth)
        return [Split(one.name, seed, *parts, map=one.name) for seed in range(seeds)]


def read_train(folders: Sequence[Path], **which: Any) -> Photos:
    """What is trained on: one set or several behind each other, of the cities asked for."""
    return join_photos([read_photos(folder, **which) for folder in folders])


def _named(name: str, where: Path) -> Asked:
    test = read_protocol(name, where, allow_partial=True)
    truth = Truth(test.radius or RADIUS, frames=test.frames)
    said = name if test.whole else f"{name} (part)"
    return Asked(said, test.database, test.queries, truth)


def _plain(name: str, database: Path, queries: Path) -> Asked:
    for folder in (database, queries):
        if not folder.exists():
            raise PhotoError(
                f"{folder} does not exist; a test is a known data set, or a folder with database/ "
                "and queries/"
            )
    return Asked(name, read_photos(database), read_photos(queries), Truth())
