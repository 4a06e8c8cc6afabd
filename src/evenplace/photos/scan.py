"""Finding picture files: a walk that streams, so that millions of names never wait in a list.

A zip of photos is unpacked once into a folder beside it, where its photos stay.
"""

import fnmatch
import os
import shutil
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from evenplace.errors import PhotoError
from evenplace.photos.files import because, whole_folder
from evenplace.photos.pictures import SUFFIXES

BATCH = 1 << 16
_HIDDEN = (".", "__MACOSX")
_OURS = ".unpacked"  # in a folder that was made of an archive: of what


def check_exists(path: Path) -> None:
    """Refuse a path that is not there."""
    if not path.exists():
        raise PhotoError(f"{path} does not exist; check the path")


def walk_pictures(folder: Path, pattern: str | None = None) -> Iterator[str]:
    """Yield every picture file below `folder`, as the system lists them.

    `pattern` is a shell pattern for the file's name; without it the usual suffixes count.
    Hidden files and folders (macOS leaves `._photo.jpg` beside photo.jpg, and `__MACOSX` in a zip)
    are passed over; a folder that links lead to as well, or in a circle, is walked once.
    """
    waiting, links, known = [os.fspath(folder)], list[str](), set[tuple[int, int]]()
    while waiting or links:
        here = waiting.pop() if waiting else links.pop(links.index(min(links)))
        stat = os.stat(here)  # noqa: PTH116, a million of them
        if (stat.st_dev, stat.st_ino) in known:
            continue
        known.add((stat.st_dev, stat.st_ino))
        with os.scandir(here) as entries:
            for entry in entries:
                if entry.name.startswith(_HIDDEN):
                    continue
                if entry.is_dir():
                    (links if entry.is_symlink() else waiting).append(entry.path)
                elif _wanted(entry.name, pattern):
                    yield entry.path


def picture_paths(folder: Path, pattern: str | None = None) -> pa.Array:
    """Every picture below `folder`, sorted, in Arrow's memory (a tenth of a list of strings).

    A list `<folder>_images_paths.txt` beside the folder is used instead of a walk.
    """
    check_exists(folder)
    listed = folder.parent / f"{folder.name}_images_paths.txt"
    found = _listed(folder, listed, pattern) if listed.is_file() else walk_pictures(folder, pattern)
    chunks = []
    while batch := list(islice(found, BATCH)):
        chunks.append(_texts(batch))
    if not chunks:
        looked = pattern or ", ".join(SUFFIXES)
        raise PhotoError(
            f"{folder} holds no photos (looked for {looked}); check the path or pass pattern="
        )
    paths = pa.chunked_array(chunks).combine_chunks()
    return paths.take(pc.sort_indices(paths))


def _texts(paths: list[str]) -> pa.Array:
    try:
        return pa.array(paths, pa.large_string())
    except UnicodeEncodeError as cause:
        name = os.fsencode(cause.object).decode("utf-8", "backslashreplace")
        raise PhotoError(
            f"{name} has a name that is not UTF-8; rename it, or the folder"
        ) from cause


def other_files(folder: Path) -> Counter[str]:
    """How many files below a folder are no pictures, by their endings."""
    names = (name for name in walk_pictures(folder, "*") if not _wanted(name, None))
    return Counter(Path(name).suffix.lower() for name in names)


def say_others(others: Counter[str]) -> str:
    """What folders held besides pictures; empty if nothing."""
    kinds = ", ".join(f"{count} {kind or 'without ending'}" for kind, count in
                      others.most_common(5))  # fmt: skip
    total = others.total()
    return f"passed over {total:,} files that are no pictures ({kinds})" if total else ""


def first_pictures(folder: Path, count: int) -> list[str]:
    """A few pictures of a folder, without walking all of it: enough to tell its layout."""
    return list(islice(walk_pictures(folder), count)) if folder.is_dir() else []


def _listed(folder: Path, listed: Path, pattern: str | None) -> Iterator[str]:
    with listed.open(encoding="utf-8") as lines:
        for line in lines:
            name = line.strip()
            if name and _wanted(name.rsplit("/", 1)[-1], pattern):
                yield str(folder / name)


def _wanted(name: str, pattern: str | None) -> bool:
    return fnmatch.fnmatch(name, pattern) if pattern else name.lower().endswith(SUFFIXES)


def is_archive(path: str | Path) -> bool:
    return Path(path).suffix.lower() == ".zip" and Path(path).is_file()


def unpacked(archive: Path) -> Path:
    """The folder of an archive's files; where all are in one folder, as file managers zip, that."""
    folder = _unpack(archive)
    while len(inside := [one for one in folder.iterdir() if not one.name.startswith(_HIDDEN)]) == 1:
        if not inside[0].is_dir():
            break
        folder = inside[0]
    return folder


def _unpack(archive: Path) -> Path:
    """NAME.zip → NAME.unzipped, made if it is not there, or was made of other files.

    Whole or not at all: it is unpacked under another name first.
    """
    folder = archive.with_suffix(".unzipped")
    if folder.exists() and not (folder / _OURS).exists():
        raise PhotoError(f"{folder} is in the way of {archive}; rename one of them")
    try:
        with zipfile.ZipFile(archive) as files:
            held = repr([(one.filename, one.CRC) for one in files.infolist()]).encode()
            stamp = f"{zlib.crc32(held):08x}"
            if folder.exists() and (folder / _OURS).read_text(encoding="utf-8") == stamp:
                return folder
            wanted = sum(one.file_size for one in files.infolist())
            free = shutil.disk_usage(archive.parent).free
            if wanted > free:
                raise PhotoError(
                    f"{archive} unpacks to {wanted / 1e9:,.1f} GB and {free / 1e9:,.1f} GB are "
                    "free; make room, or unpack a part of it by hand"
                )
            with whole_folder(folder) as draft:
                files.extractall(draft)
                (draft / _OURS).write_text(stamp, encoding="utf-8")
                shutil.rmtree(folder, ignore_errors=True)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as cause:
        raise PhotoError(f"{archive} cannot be unpacked ({cause}); make it again") from cause
    except OSError as cause:
        raise PhotoError(f"could not unpack {archive}: {because(cause)}") from cause
    return folder
