"""Descriptors of a large database, in parts on disk: processes share them, a kill costs one.

    folder/<key>/part-000012.npy     descriptors of the readable ones of a thousand photos
    folder/<key>/part-000012.json    their rows, and the skipped with their reasons

The key tells weights, photos and size, so another model or another list makes other parts.

    N photos · D descriptor
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from evenplace.arrays import Floats, Ints
from evenplace.describe.describer import Described, Describer, Progress
from evenplace.errors import PhotoError
from evenplace.photos.files import stamp_file, whole_file, write_json
from evenplace.photos.table import Skipped

PART = 1024


def describe_parts(
    describer: Describer,
    paths: Sequence[str],
    folder: Path,
    *,
    rank: int = 0,
    ranks: int = 1,
    part: int = PART,
    progress: Progress | None = None,
) -> "Parts":
    """Describe this rank's parts, those that are not there yet: every `ranks`-th one.

    Parts are written whole or not at all, so that a run that was stopped goes on with the first
    missing one.  What is returned can be read once every rank has come this far.  Parts are cut
    between batches, so that as many ranks as one likes make the same batches: the same bits.
    """
    part = min(part, max(1, -(-len(paths) // ranks)))
    part += -part % describer.batch
    parts = Parts(folder / _key(describer, paths, part), len(paths), part, describer.dims)
    for number in range(rank, parts.count, ranks):
        first = number * part
        if not parts.about(number).exists():
            parts.write(number, describer.describe(paths[first : first + part]))
        if progress:
            progress(min(first + part, len(paths)), len(paths))
    return parts


@dataclass(frozen=True)
class Parts:
    """Parts in the order of the photos; an error names the first that is missing."""

    home: Path
    photos: int
    part: int  # photos in each but the last
    dims: tuple[int, ...]

    @property
    def count(self) -> int:
        return -(-self.photos // self.part)

    @cached_property
    def rows(self) -> Ints:
        """Which photos could be read.  (N,)."""
        told = [np.array(one["rows"], np.int64) + n * self.part for n, one in enumerate(self._told)]
        return np.concatenate([np.empty(0, np.int64), *told])

    @cached_property
    def skipped(self) -> tuple[Skipped, ...]:
        return tuple(Skipped(*one) for told in self._told for one in told["skipped"])

    @property
    def descriptors(self) -> "PartRows":
        """All of them, of which only the rows that are asked for are read.  (N, D + E)."""
        return PartRows(self, 0, sum(self.dims))

    def split(self) -> list["PartRows"]:
        """The descriptors of each network for itself.  (N, D), (N, E)."""
        ends = np.cumsum(self.dims).tolist()
        return [PartRows(self, end - dim, end) for dim, end in zip(self.dims, ends, strict=True)]

    def __iter__(self) -> Iterator[Floats]:
        return (np.load(self.file(number)) for number in range(self.count))

    def file(self, number: int) -> Path:
        return self.home / f"part-{number:06d}.npy"

    def about(self, number: int) -> Path:
        return self.file(number).with_suffix(".json")

    def write(self, number: int, found: Described) -> None:
        with whole_file(self.file(number)) as draft, draft.open("wb") as file:
            np.save(file, found.descriptors)
        skipped = [(one.path, one.reason) for one in found.skipped]
        told = {"rows": found.rows.tolist(), "skipped": skipped}
        write_json(self.about(number), told, PhotoError)  # last: where it is, the part is whole

    @cached_property
    def _told(self) -> list[dict[str, Any]]:
        missing = [n for n in range(self.count) if not self.about(n).exists()]
        if missing:
            raise PhotoError(
                f"{self.file(missing[0])} is missing: photos from {missing[0] * self.part} on were "
                "not described; run the command again, it goes on there"
            )
        return [json.loads(self.about(number).read_text()) for number in range(self.count)]


@dataclass(frozen=True)
class PartRows:
    """Rows of all parts as one array that is never in memory; a part is open while it is read."""

    parts: Parts
    first: int  # column
    last: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.parts.rows), self.last - self.first

    def __len__(self) -> int:
        return len(self.parts.rows)

    def __getitem__(self, rows: Any) -> Floats:
        wanted = np.arange(len(self))[rows]
        of = self.parts.rows[wanted] // self.parts.part  # which part each is in
        starts = np.searchsorted(self.parts.rows // self.parts.part, np.arange(self.parts.count))
        found = np.empty((len(wanted), self.shape[1]), np.float32)
        for number in np.unique(of):
            here = np.flatnonzero(of == number)
            held = np.load(self.parts.file(number), mmap_mode="r")
            found[here] = held[wanted[here] - starts[number], self.first : self.last]
        return found


def _key(describer: Describer, paths: Sequence[str], part: int) -> str:
    """A short digest of all that descriptors depend on, and of how they are cut into parts."""
    about = f"{part}|{describer.image_size}|{describer.fingerprints}"
    digest = hashlib.sha256(about.encode())
    for path in paths:
        stamp = stamp_file(path) if Path(path).exists() else f"absent|{path}"
        digest.update(f"{stamp}\n".encode())
    return digest.hexdigest()[:24]
