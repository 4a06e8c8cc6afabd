"""What an index consists of: a manifest that is switched in one step, and a lock for its writer.

The manifest names the files of one generation with their checksums.  A writer adds files beside
those in use and then moves a new manifest over the old one, so a reader sees one generation or
the other, and a writer that is killed leaves the last good one.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from evenplace.errors import IndexFileError
from evenplace.photos.files import sync
from evenplace.photos.locks import only_writer

VERSION = 2
NAME = "manifest.json"
_LOCK = "lock"


@dataclass(frozen=True)
class FileEntry:
    """How long a file is and what it must hash to."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """One generation of an index."""

    generation: int
    model: str  # fingerprint of the network that wrote the descriptors
    scale: float  # turns cosines to prototypes into logits
    prototypes: str  # "classifier": the model's; "means": of the photos of each place
    base: str  # folder of the bulk
    delta: str | None = None  # folder of what came and went since
    files: dict[str, FileEntry] = field(default_factory=dict)  # by path below the index
    tuning: dict[str, float] = field(default_factory=dict)  # of the approximate shortlist
    spectra: tuple[str, ...] = ()  # which characteristic functions lie beside

    def write(self, folder: Path) -> None:
        """Make this the generation that readers open from now on."""
        plain = {"version": VERSION, **asdict(self)}
        text = json.dumps(plain | {"digest": _digest(plain)}, indent=1)
        draft = folder / f".{NAME}.{os.getpid()}"
        with draft.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(folder / NAME)
        sync(folder)

    @classmethod
    def read(cls, folder: Path) -> Self:
        try:
            plain: dict[str, Any] = json.loads((folder / NAME).read_bytes())
        except FileNotFoundError as cause:
            raise IndexFileError(
                f"{folder} holds no index; build one: evenplace index RUN --database PHOTOS"
            ) from cause
        except (ValueError, UnicodeDecodeError) as cause:
            raise _damaged(folder / NAME) from cause
        version = plain.pop("version", None)
        if version != VERSION:
            raise IndexFileError(
                f"{folder} has index version {version}, this EvenPlace reads {VERSION}; "
                "build it again"
            )
        if plain.pop("digest", None) != _digest({"version": VERSION, **plain}):
            raise _damaged(folder / NAME)
        files = {name: FileEntry(**entry) for name, entry in plain.pop("files").items()}
        return cls(**plain | {"files": files, "spectra": tuple(plain["spectra"])})

    def check_sizes(self, folder: Path) -> None:
        """Refuse a missing or truncated file; contents are read by `check_contents`."""
        for name, entry in self.files.items():
            size = (folder / name).stat().st_size if (folder / name).exists() else None
            if size != entry.bytes:
                found = "is missing" if size is None else f"has {size} bytes"
                raise IndexFileError(
                    f"{folder / name} {found}, the manifest says {entry.bytes}; build it again"
                )

    def check_contents(self, folder: Path) -> None:
        """Read every file and compare it with its checksum."""
        self.check_sizes(folder)
        for name, entry in self.files.items():
            if checksum(folder / name) != entry.sha256:
                raise _damaged(folder / name)

    def under(self, part: str) -> dict[str, FileEntry]:
        """The files of one folder of the index."""
        return {name: e for name, e in self.files.items() if name.startswith(f"{part}/")}


def entries(
    folder: Path, part: str, known: dict[str, FileEntry] | None = None
) -> dict[str, FileEntry]:
    """Hash what was written into index/part, and wait until the disk has it.

    known: by file name, what was hashed on the way.
    """
    found = {}
    for file in sorted((folder / part).iterdir()):
        sync(file)
        entry = (known or {}).get(file.name)
        found[f"{part}/{file.name}"] = entry or FileEntry(file.stat().st_size, checksum(file))
    sync(folder / part)
    return found


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Be the only writer of an index; leave no debris, and say in a sentence what went wrong."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with only_writer(folder / _LOCK, IndexFileError):
            sweep(folder)
            try:
                yield
            finally:
                sweep(folder)
    except OSError as cause:
        raise IndexFileError(
            f"could not write {folder} ({cause.strerror or cause}); the last good index is "
            "untouched: free some space or choose another place"
        ) from cause


def sweep(folder: Path) -> None:
    """Remove what no manifest names: leftovers of writers that were killed, old generations.

    Readers that still have an old generation open keep it: their mappings outlive the names.
    """
    used: set[str] = set()
    if (folder / NAME).exists():
        try:
            manifest = Manifest.read(folder)
        except IndexFileError:
            return  # damaged or of another version: nothing is known to be debris
        used = {manifest.base, manifest.delta or ""}
    for part in folder.iterdir():
        if part.is_dir() and part.name.startswith(("base-", "delta-")) and part.name not in used:
            shutil.rmtree(part, ignore_errors=True)
        elif part.name.startswith(f".{NAME}."):
            part.unlink(missing_ok=True)


def _digest(plain: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _damaged(path: Path) -> IndexFileError:
    return IndexFileError(f"{path} does not match its checksum; build the index again")
