"""What a study is made on: a drawn town, a data set at hand, any folder of photos, named tests."""

import hashlib
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evenplace.city import draw_city
from evenplace.errors import PhotoError, SettingError
from evenplace.evaluation import Truth
from evenplace.photos import Photos, read_photos
from evenplace.photos.choose import split_by_position
from evenplace.photos.nearby import find_nearby
from evenplace.photos.protocols import RADIUS, find_protocols, read_protocol
from evenplace.training.loop import Announce

HEADINGS = {"timisoara": 45.0}  # there, position alone does not say which building is seen
QUERY_SHARE = 0.3


@dataclass(frozen=True)
class Split:
    """Photos to train on, to search in and to ask with, under one seed."""

    name: str
    seed: int
    train: Photos
    database: Photos
    queries: Photos
    truth: Truth = field(default_factory=Truth)
    map: str = ""  # splits of one map ask about the same streets

    @property
    def digest(self) -> str:
        """Changes when any photo, its place or what counts as right does."""
        return _digest(self.train, self.database, self.queries, told=str(self.truth))

    @property
    def trained_on(self) -> str:
        """Changes when any photo to train on does: tests of one training share its run."""
        return _digest(self.train)

    @property
    def searched_in(self) -> str:
        """Changes when any photo of the database does."""
        return _digest(self.database)


def _digest(*sets: Photos, told: str = "") -> str:
    parts = [told]
    for photos in sets:
        spots = photos.positions.round(3).tobytes() + photos.heading.tobytes()
        parts.append(hashlib.sha256(spots + "\n".join(photos.paths).encode()).hexdigest())
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:12]


def read_splits(
    data: str,
    seeds: int,
    folder: Path,
    *,
    first: int = 0,
    photos: int | None = None,
    queries: int | None = None,
    radius: float = 25.0,
    heading: float | None = None,
    development: bool = False,
    announce: Announce | None = None,
    **which: Any,
) -> list[Split]:
    """One split a seed, from the first seed on.

    data: "town" draws one for each seed into `folder`; a name under EVENPLACE_DATA (timisoara,
    cambridge) or any folder is parted by position, 70 % database and 30 % queries; a folder that
    has database/ and queries/ is taken as it is, and seeds then change the training alone.
    photos, queries: how many at most (of a town: how many).  development: leave the test queries
    alone and ask with photos of the database instead, for choices that a test then judges.
    which: the city, zone or bbox of its photos, as `read_photos` takes them.
    """
    if seeds < 1 or first < 0:
        raise SettingError(f"seeds={seeds} from {first} asks for no run; use 1 or more, from 0 on")
    truth = Truth(radius, HEADINGS.get(data) if heading is None else heading)
    numbers = range(first, first + seeds)
    if data == "town":
        many, asked = photos or 2000, queries or 400
        towns = {seed: drawn_town(folder, many, asked, seed, announce) for seed in numbers}
        splits = [_town(town, seed, truth) for seed, town in towns.items()]
    else:
        splits = _read_folder(data, numbers, photos, queries, truth, which)
    return [_within_database(split, queries) for split in splits] if development else splits


def _read_folder(
    data: str,
    seeds: range,
    photos: int | None,
    queries: int | None,
    truth: Truth,
    which: dict[str, Any],
) -> list[Split]:
    where = find_folder(data)
    sets = sorted(one.name for one in where.glob("quer*") if one.is_dir())
    if (where / "database").is_dir() and sets and "queries" not in sets:
        raise SettingError(
            f"{where} holds a database and {', '.join(sets)}: a test "
            f"of its own; name it: --train {where / 'database'} --test {where}"
        )
    if (where / "database").is_dir() and (where / "queries").is_dir():
        database = _at_most(read_photos(where / "database", **which), photos)
        asked_with = _at_most(read_photos(where / "queries", **which), queries)
        return [Split(data, seed, database, database, asked_with, truth, data) for seed in seeds]
    everything = _at_most(read_photos(where, **which), photos)
    return [_part(data, everything, seed, queries, truth) for seed in seeds]


def drawn_town(
    folder: Path, photos: int, queries: int, seed: int, announce: Announce | None = None
) -> Path:
    """A town in its own folder below another one, drawn unless it is there."""
    town = folder / f"town-{photos}-{queries}-{seed}"
    if not town.exists():
        progress = announce(f"drawing town {seed}") if announce else None
        draw_city(town, photos=photos, queries=queries, seed=seed, progress=progress)
    return town


def _town(town: Path, seed: int, truth: Truth) -> Split:
    database = read_photos(town / "database")
    return Split("town", seed, database, database, read_photos(town / "queries"), truth, town.name)


def _part(data: str, photos: Photos, seed: int, queries: int | None, truth: Truth) -> Split:
    """Split by position; queries nothing in the database could answer are left out."""
    database, asked = split_by_position(photos, (1 - QUERY_SHARE, QUERY_SHARE), seed)
    asked = asked[find_nearby(database, asked, truth.radius).counts > 0]
    if not len(asked):
        raise PhotoError(
            f"no position of {data} lies within {truth.radius:g} m of another; "
            "give a larger --radius, or a folder with database/ and queries/"
        )
    return Split(data, seed, database, database, _at_most(asked, queries), truth, data)


def _within_database(split: Split, queries: int | None) -> Split:
    """The same split without its queries: nothing of the test is seen."""
    inner = _part(split.name, split.database, split.seed, queries, split.truth)
    return replace(inner, map=split.map)


def sets_at_hand() -> list[str]:
    """Names of the data sets under EVENPLACE_DATA."""
    root = Path(os.environ.get("EVENPLACE_DATA", "../shared/data"))
    return sorted(one.name for one in root.iterdir() if one.is_dir()) if root.is_dir() else []


def find_folder(data: str) -> Path:
    """A folder of photos, or the set of that name under EVENPLACE_DATA."""
    if Path(data).is_dir():
        return Path(data)
    named = Path(os.environ.get("EVENPLACE_DATA", "../shared/data")) / data
    if named.is_dir():
        return named / "images" if (named / "images").is_dir() else named
    raise PhotoError(
        f"there is no data {data!r}: neither a folder, nor a set in {named.parent}; "
        "use town, or set EVENPLACE_DATA"
    )


def _at_most(photos: Photos, count: int | None) -> Photos:
    """Some of the photos, whole spots at a time, the same whatever the seed of a split."""
    if count is None or count >= len(photos):
        return photos
    kept, _ = split_by_position(photos, (count, len(photos) - count), 0)
    return kept


def read_test(data: Path, train: Photos, protocol: str | None = None) -> list[Split]:
    """The tests of a data set's folder: those it is known for, or database/ and queries/.

    A folder that holds a part of a named test is asked too, and its name says so.
    """
    if not data.is_dir():
        raise PhotoError(f"there is no folder {data} to test on; check the path")
    splits = []
    for name in [protocol] if protocol else find_protocols(data):
        test = read_protocol(name, data, allow_partial=True)
        said = name if test.whole else f"{name} (part)"
        truth = Truth(test.radius or RADIUS, frames=test.frames)
        splits.append(Split(said, 0, train, test.database, test.queries, truth, said))
    return splits or [read_pair(data / "database", data / "queries", train)]


def read_pair(database: Path, queries: Path, train: Photos) -> Split:
    """A database and queries in folders of their own."""
    for folder in (database, queries):
        if not folder.exists():
            raise PhotoError(
                f"{folder} does not exist; a test is a known data set, or a folder with database/ "
                "and queries/"
            )
    name = queries.absolute().parent.name
    return Split(name, 0, train, read_photos(database), read_photos(queries), map=name)
