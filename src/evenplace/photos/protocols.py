"""Named tests: which photos are the database, which the queries, and what counts as found.

Scores of one data set differ by ten points between the ways it is cut, so each has a name, says
its numbers, and refuses a folder that does not hold them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from evenplace.errors import PhotoError, unknown_name
from evenplace.photos.layouts import msls, nordland, pitts30k, sfxl
from evenplace.photos.nearby import Nearby, find_frames, find_nearby
from evenplace.photos.table import Photos

RADIUS = 25.0
MSLS_VAL = ("cph", "sf")


@dataclass(frozen=True)
class TestSet:
    """Photos to search in and photos to search for, with what counts as found."""

    __test__ = False  # pytest takes a class of this name for its own
    name: str
    database: Photos
    queries: Photos
    radius: float | None = RADIUS  # metres
    frames: int | None = None  # or frames
    whole: bool = True  # whether it has the published numbers

    def positives(self) -> Nearby:
        """The database photos that count as found, for each query."""
        if self.frames is not None:
            return find_frames(self.database, self.queries, self.frames)
        return find_nearby(self.database, self.queries, self.radius or RADIUS)

    def describe(self) -> str:
        """One line for every result: name, numbers, tolerance."""
        within = f"±{self.frames} frames" if self.frames is not None else f"{self.radius:g} m"
        part = "" if self.whole else " (a part of it: no published score compares)"
        return (
            f"{self.name}: {len(self.database):,} database photos, "
            f"{len(self.queries):,} queries, found within {within}{part}"
        )


@dataclass(frozen=True)
class Protocol:
    """How to read a test, and the numbers it must have."""

    read: Callable[[Path], tuple[Photos, Photos]]
    database: int
    queries: tuple[int, ...]  # more than one where published copies differ
    frames: int | None = None
    only_findable: bool = False  # queries without a positive are no part of it


def read_protocol(name: str, path: str | Path, allow_partial: bool = False) -> TestSet:
    """Read a named test, refusing a folder with other numbers unless a part will do."""
    if name not in PROTOCOLS:
        raise unknown_name("protocol", name, PROTOCOLS)
    protocol = PROTOCOLS[name]
    database, queries = protocol.read(Path(path))
    found = TestSet(
        name, database, queries, None if protocol.frames is not None else RADIUS, protocol.frames
    )
    if protocol.only_findable:
        found = replace(found, queries=queries[found.positives().counts > 0])
    right = len(database) == protocol.database and len(found.queries) in protocol.queries
    if not right and not allow_partial:
        wanted = " or ".join(f"{count:,}" for count in protocol.queries)
        raise PhotoError(
            f"{name} has {protocol.database:,} database photos and {wanted} queries, but {path} "
            f"gives {len(database):,} and {len(found.queries):,}; complete the download, or pass "
            "--allow-partial (allow_partial=True) and name the numbers with the result"
        )
    return replace(found, whole=right)


def find_protocols(path: str | Path) -> list[str]:
    """The named tests that a data set's folder holds, whole or in part; none for other folders."""
    where = Path(path)
    if msls.recognises(where):
        return ["msls-val-740"]
    for name in ("processed/test", "test", "."):
        found = [f"sfxl-{v}" for v in ("v1", "v2") if (where / name / f"queries_{v}").is_dir()]
        if found and (where / name / "database").is_dir():
            return found
    for name in ("images/test", "test", "."):
        for database in ("database", "ref", "reference"):
            folder = where / name / database
            if nordland.recognises(folder):
                return [_which_nordland(where)]
            if pitts30k.recognises(folder):
                return ["pitts30k-test"]
    return []


def _which_nordland(path: Path) -> str:
    database, queries = (len(one) for one in _nordland(path))
    if queries < database / 5:
        return "nordland-1f"
    return "nordland-2f" if database == PROTOCOLS["nordland-2f"].database else "nordland-10f"


def _folder(path: Path, *names: str) -> Path:
    """The first of several folders that is there."""
    for name in names:
        if (path / name).is_dir():
            return path / name
    raise PhotoError(f"{path} has none of {', '.join(names)}; give the data set's own folder")


def _sfxl(path: Path, queries: str, home: str = "processed/test") -> tuple[Photos, Photos]:
    test = _folder(path, home, "test", ".")
    return sfxl.read(_folder(test, "database")), sfxl.read(_folder(test, queries))


def _msls(path: Path, subtask: str | None) -> tuple[Photos, Photos]:
    root = _folder(path, "train_val", ".")
    cities = [city for city in MSLS_VAL if (root / city).is_dir()]
    if not cities:
        raise PhotoError(f"{path} holds neither cph nor sf; give the folder of MSLS")
    read = partial(msls.read, root, cities=cities, subtask=subtask)
    return read(part="database"), read(part="query")


def _nordland(path: Path) -> tuple[Photos, Photos]:
    test = _folder(path, "images/test", "test", ".")
    database = nordland.read(_folder(test, "database", "ref", "reference"))
    return database, nordland.read(_folder(test, "queries", "query"))


def _nordland_tenth(path: Path) -> tuple[Photos, Photos]:
    """Every tenth frame is a query; where they are numbered among themselves, count in tens."""
    database, queries = _nordland(path)
    frame = queries.column("frame")
    if len(queries) > 1 and frame.max() - frame.min() == len(queries) - 1:
        at = queries.table.column_names.index("frame")
        queries = Photos(queries.table.set_column(at, "frame", [10 * frame]), queries.skipped)
    return database, queries


PROTOCOLS = {
    "sfxl-v1": Protocol(partial(_sfxl, queries="queries_v1"), 2_805_840, (1000,)),  # Flickr's
    "sfxl-v2": Protocol(partial(_sfxl, queries="queries_v2"), 2_805_840, (598,)),  # phones'
    # MSLS's cph and sf, official: subtask all, no panoramas, queries with a positive
    "msls-val-740": Protocol(partial(_msls, subtask="all"), 18_871, (740,), only_findable=True),
    # every query, as VPR-datasets-downloader writes them
    "msls-val-all": Protocol(partial(_msls, subtask=None), 18_871, (11_084, 11_120)),
    "pitts30k-test": Protocol(
        partial(_sfxl, queries="queries", home="images/test"), 10_000, (6816,)
    ),
    # VPR-Bench, GSV-Cities, SALAD, BoQ: winter searched with every tenth summer frame
    "nordland-1f": Protocol(_nordland_tenth, 27_592, (2760,), frames=1),
    "nordland-2f": Protocol(_nordland, 3450, (3450,), frames=2),  # SelaVPR's Nordland-test
    # Patch-NetVLAD, VPR-datasets-downloader: summer searched with winter
    "nordland-10f": Protocol(_nordland, 27_592, (27_592,), frames=10),
}
