"""What an index consists of: a manifest that is switched in one step, and a lock for its writer.

The manifest names the files of one generation with their checksums.  A writer adds files beside
those in use and then moves a new manifest over the old one, so a reader sees one generation or
the other, and a writer that is killed leaves the last good one.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any, Self

from evenplace.errors import IndexFileError
from evenplace.photos.files import because, sync
from evenplace.photos.locks import only_writer

VERSION = 3
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
    files: dict[str, FileEntry] = field(default_factory=dict)  # by path below the index
    tuning: dict[str, float] = field(default_factory=dict)  # of the approximate shortlist
    spectra: tuple[str, ...] = ()  # which characteristic functions lie beside
    codec: str = "float16"  # how descriptors are kept
    loss: dict[str, float] = field(default_factory=dict)  # what that costs (`measure_loss`)

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

    def named(self, name: str) -> list[str]:
        """Where files of a name lie, in the order in which they were written."""
        found = [path for path in self.files if path.partition("/")[2] == name]
        return sorted(found, key=lambda path: int(path.partition("/")[0]))

    def check_sizes(self, folder: Path) -> None:
        """Refuse a missing or truncated file; contents are read by `check_contents`."""
        for name, entry in self.files.items():
            try:
                size = (folder / name).stat().st_size
            except FileNotFoundError as cause:
                raise _missing(folder / name) from cause
            if size != entry.bytes:
                raise IndexFileError(
                    f"{folder / name} has {size} bytes, the manifest says {entry.bytes}; "
                    "build it again"
                )

    def check_contents(self, folder: Path) -> None:
        """Read every file and compare it with its checksum.

        All are opened first: what a writer sweeps away meanwhile stays readable.
        """
        with ExitStack() as opened:
            handles = {name: _opened(folder / name, opened) for name in self.files}
            for name, handle in handles.items():
                if hashlib.file_digest(handle, "sha256").hexdigest() != self.files[name].sha256:
                    raise _damaged(folder / name)


def next_generation(folder: Path) -> int:
    try:
        return Manifest.read(folder).generation + 1
    except IndexFileError:
        return 1


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
            f"could not write {folder}, where the last good index is untouched: {because(cause)}"
        ) from cause


def sweep(folder: Path) -> None:
    """Remove what no manifest names: leftovers of writers that were killed, old generations.

    Readers that still have an old generation open keep it: their handles outlive the names.
    """
    used: set[str] = set()
    if (folder / NAME).exists():
        try:
            used = set(Manifest.read(folder).files)
        except IndexFileError:
            return  # damaged or of another version: nothing is known to be debris
    for part in folder.iterdir():
        if part.is_dir() and part.name.isdigit():
            _sweep_part(part, used)
        elif part.name.startswith(f".{NAME}."):
            part.unlink(missing_ok=True)


def _sweep_part(part: Path, used: set[str]) -> None:
    with suppress(PermissionError):  # Windows keeps a file that somebody reads; the next writer
        for file in part.iterdir():  # tries again
            if f"{part.name}/{file.name}" not in used:
                file.unlink(missing_ok=True)
        if not any(part.iterdir()):
            part.rmdir()


def _digest(plain: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _opened(path: Path, opened: ExitStack) -> BufferedReader:
    try:
        return opened.enter_context(path.open("rb"))
    except FileNotFoundError as cause:
        raise _missing(path) from cause


def _missing(path: Path) -> IndexFileError:
    return IndexFileError(f"{path} is missing; build the index again")


def _damaged(path: Path) -> IndexFileError:
    return IndexFileError(f"{path} does not match its checksum; build the index again")
