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
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from io import BufferedReader
from pathlib import Path
from threading import Event
from typing import Any, Self

from evenplace.errors import IndexFileError
from evenplace.photos.files import because, only_writer, sync

VERSION = 4
NAME = "manifest.json"
_LOCK = "lock"
_PAUSE = 1.0  # seconds between two turns of the disk


@dataclass(frozen=True)
class FileEntry:
    """How long a file is and what it must hash to."""

    bytes: int
    sha256: str
    grown: tuple["FileEntry", ...] = ()  # what was written behind it since

    @property
    def total(self) -> int:
        return self.bytes + sum(part.bytes for part in self.grown)

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Self:
        return cls(**plain | {"grown": tuple(cls.of(part) for part in plain["grown"])})


@dataclass(frozen=True)
class Manifest:
    """One generation of an index."""

    generation: int
    model: str  # fingerprint of the network that wrote the descriptors
    scale: float  # turns cosines to prototypes into logits
    prototypes: str  # "classifier": the model's; of the photos: "means", or what loss moved them
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
        files = {name: FileEntry.of(entry) for name, entry in plain.pop("files").items()}
        return cls(**plain | {"files": files, "spectra": tuple(plain["spectra"])})

    @property
    def part(self) -> str:
        """The folder of the generation, below the index."""
        return _part(self.generation)

    def check_sizes(self, folder: Path) -> None:
        """Refuse a missing or truncated file; contents are read by `check_contents`."""
        for name, entry in self.files.items():
            try:
                size = (folder / name).stat().st_size
            except FileNotFoundError as cause:
                raise _missing(folder / name) from cause
            grows = "/rows-" in name  # a later writer may have appended to it
            if size < entry.total or (size > entry.total and not grows):
                raise IndexFileError(
                    f"{folder / name} has {size} bytes, the manifest says {entry.total}; "
                    "build it again"
                )

    def check_contents(self, folder: Path) -> None:
        """Read every file and compare it with its checksum.

        All are opened first: what a writer sweeps away meanwhile stays readable.
        """
        with ExitStack() as opened:
            handles = {name: _opened(folder / name, opened) for name in self.files}
            for name, handle in handles.items():
                entry = self.files[name]
                for part in (entry, *entry.grown):
                    if _hashed(handle, part.bytes) != part.sha256:
                        raise _damaged(folder / name)


@dataclass
class Draft:
    """The next generation of an index while it is written."""

    path: Path  # where its files go
    known: dict[str, FileEntry] = field(default_factory=dict)  # by name, hashed on the way
    manifest: Manifest | None = None  # what readers open in the end; None: what they did

    @property
    def generation(self) -> int:
        return int(self.path.name)


def publish(path: Path, manifest: Manifest, known: dict[str, FileEntry]) -> None:
    """Hash what is not yet, wait until the disk has all, and make readers open this one."""
    files = {}
    for file in sorted(path.iterdir()):
        sync(file)
        entry = known.get(file.name) or FileEntry(file.stat().st_size, checksum(file))
        files[f"{path.name}/{file.name}"] = entry
    sync(path)
    replace(manifest, generation=int(path.name), files=files).write(path.parent)


@contextmanager
def settling(folder: Path) -> Iterator[None]:
    """Have the disk take meanwhile what is written into a folder; at the end little is left."""
    done = Event()

    def settle() -> None:
        while not done.wait(_PAUSE):
            for file in folder.iterdir():
                with suppress(FileNotFoundError):  # what arrived in blocks goes again
                    sync(file)

    with ThreadPoolExecutor(1) as disk:
        settled = disk.submit(settle)
        try:
            yield
        finally:
            done.set()
    settled.result()


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def writing(folder: Path) -> Iterator[Draft]:
    """Be the only writer of an index; leave no debris, and say in a sentence what went wrong."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with only_writer(folder / _LOCK, IndexFileError):
            sweep(folder)
            there = [int(part.name) for part in folder.iterdir() if part.name.isdigit()]
            draft = Draft(folder / _part(max(there, default=0) + 1))
            draft.path.mkdir()
            try:
                with settling(draft.path):
                    yield draft
                if draft.manifest is not None:
                    publish(draft.path, draft.manifest, draft.known)
            except BaseException:
                shutil.rmtree(draft.path, ignore_errors=True)
                raise
            finally:
                sweep(folder)
    except OSError as cause:
        raise IndexFileError(
            f"could not write {folder}, where the last good index is untouched: {because(cause)}"
        ) from cause


def _part(generation: int) -> str:
    return f"{generation:06d}"


def sweep(folder: Path) -> None:
    """Remove what no manifest names: leftovers of writers that were killed, old generations.

    Readers that still have an old generation open keep it: their handles outlive the names.
    """
    used = ""
    if (folder / NAME).exists():
        try:
            used = Manifest.read(folder).part
        except IndexFileError:
            return  # damaged or of another version: nothing is known to be debris
    for part in folder.iterdir():
        if part.is_dir() and part.name.isdigit() and part.name != used:
            shutil.rmtree(part, ignore_errors=True)  # Windows keeps a file that somebody reads
        elif part.name.startswith(f".{NAME}."):
            part.unlink(missing_ok=True)


def _digest(plain: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _hashed(handle: BufferedReader, count: int) -> str:
    """The checksum of the next so many bytes."""
    digest = hashlib.sha256()
    while count and (block := handle.read(min(count, 1 << 20))):
        digest.update(block)
        count -= len(block)
    return digest.hexdigest()


def _opened(path: Path, opened: ExitStack) -> BufferedReader:
    try:
        return opened.enter_context(path.open("rb"))
    except FileNotFoundError as cause:
        raise _missing(path) from cause


def _missing(path: Path) -> IndexFileError:
    return IndexFileError(f"{path} is missing; build the index again")


def _damaged(path: Path) -> IndexFileError:
    return IndexFileError(f"{path} does not match its checksum; build the index again")
