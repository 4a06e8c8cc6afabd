"""Files and folders written whole or not at all, by one writer at a time; and those we ship.

What every later step uses to put its results on disk.
"""

import codecs
import errno
import json
import os
import re
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from evenplace.errors import EvenPlaceError, PhotoError, RunError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Drafts of whole_file, and those that safetensors makes beside its target.
_DRAFT = re.compile(r"\.(.+\.[a-z0-9_]{8}(\.\w+)?|tmp\w{6})")
_BEYOND = 64  # bytes: Windows lets nobody read what is locked, so the lock lies behind the number
_PAUSE = 0.2  # seconds between two looks


@contextmanager
def whole_file(
    path: str | Path, error: type[EvenPlaceError] = PhotoError, *, lasting: bool = True
) -> Iterator[Path]:
    """Give a temporary neighbour of `path` to write to, and move it into place at the end.

    A reader sees the old file or the new one, never half of one; when the writing fails
    (a full disk, say) the temporary file is removed and `error` says so in one sentence.
    lasting: wait until the disk has it (some 9 ms), so that a power cut leaves the one or the
    other too; for thousands of small files that can be made again it is too long.
    """
    target = Path(path)
    draft: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name[:80]}.", suffix=target.suffix
        )
        os.close(handle)
        draft = Path(name)
        yield draft
        draft.chmod(target.stat().st_mode if target.exists() else 0o644)
        if lasting:
            sync(draft)
        draft.replace(target)
        if lasting:
            sync(target.parent)
    except OSError as cause:
        raise error(f"could not write {target}: {because(cause)}") from cause
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)


def write_text(path: str | Path, text: str, error: type[EvenPlaceError] = RunError) -> Path:
    """Write a text whole, or say why it could not be; where it is."""
    with whole_file(path, error) as draft:
        draft.write_text(text, encoding="utf-8")
    return Path(path)


def write_json(
    path: str | Path,
    plain: Any,
    error: type[EvenPlaceError] = RunError,
    *,
    indent: int | None = None,
) -> None:
    """The same of lists, numbers and texts by name."""
    write_text(path, json.dumps(plain, indent=indent), error)


def check_folder(folder: Path, error: type[EvenPlaceError] = PhotoError) -> None:
    """Refuse a folder that nothing could be written into, before work is done for it."""
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    for wrong, number in (
        (not there.is_dir(), errno.ENOTDIR), (not os.access(there, os.W_OK), errno.EACCES)
    ):  # fmt: skip
        if wrong:
            raise error(f"could not write into {folder}: {because(OSError(number, ''))}")


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """The same for a folder: a neighbour that becomes `path` in the end; an empty one gives way."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield draft
        draft.chmod(0o755)
        draft.touch()
        if path.exists():
            path.rmdir()
        draft.replace(path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def text_encoding(start: bytes) -> str:
    """How a text is written, by its first bytes: UTF-16 as spreadsheets have it, or UTF-8."""
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    if b"\0" in start[:2]:
        return "utf-16-be" if start[:1] == b"\0" else "utf-16-le"
    return "utf-8-sig"


def decode_text(data: bytes, *, whole: bool = True) -> str:
    """A text that somebody wrote, with or without a mark; what is not Unicode is Western European.

    whole: False where the last letter may be cut.
    """
    try:
        return codecs.getincrementaldecoder(text_encoding(data))().decode(data, whole)
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def sync(path: Path) -> None:
    """Wait until the disk has a file, or the names in a folder: they survive a power cut then."""
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no folders, and keeps their names by itself
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def stamp_file(path: str) -> str:
    """What tells a file from another, or from itself after a change: size | time | path."""
    stat = Path(path).stat()
    return f"{stat.st_size}|{stat.st_mtime_ns}|{path}"


def sweep_drafts(folder: Path) -> None:
    """Remove what writers that were killed left behind.  Only for who holds the folder's lock."""
    for file in folder.glob(".*"):
        if file.is_file() and _DRAFT.fullmatch(file.name):
            file.unlink(missing_ok=True)


def shipped_text(name: str) -> str:
    """A file that comes with the package, named from its folder: report/assets/page.css."""
    return resources.files("evenplace").joinpath(name).read_text(encoding="utf-8")


def shipped_tables(name: str) -> dict[str, Any]:
    """A TOML file that comes with the package, its lists as tuples."""
    tables: dict[str, Any] = _frozen(tomllib.loads(shipped_text(name)))
    return tables


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(one) for key, one in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log in JSON, none where there is no log."""
    lines = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:  # half a line, written when the run was stopped
            continue
    return lines


def because(error: OSError) -> str:
    """An operating system's error with its remedy, to end a sentence with."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full; free some space and run the command again"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "writing there is not allowed; choose another folder or change its rights"
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return "a file is in the way of a folder; choose another path"
    return f"{error.strerror or error}; choose another place"


@contextmanager
def only_writer(path: Path, error: type[EvenPlaceError], *, wait: bool = False) -> Iterator[None]:
    """Hold the lock file `path`; where another process does, wait for it, or refuse.

    The system takes the lock back when its holder dies, however it does.
    The file stays behind, empty of meaning; its text is the number of the last holder.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as cause:
        raise error(f"could not write {path}: {because(cause)}") from cause
    try:
        while not _grab(handle):
            if not wait:
                holder = os.pread(handle, _BEYOND, 0) if hasattr(os, "pread") else b""
                raise error(
                    f"{path.parent} is being written by process {holder.decode().strip() or '?'}; "
                    "wait for it"
                )
            time.sleep(_PAUSE)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, f"{os.getpid()}".ljust(_BEYOND).encode())
        yield
    finally:
        os.close(handle)  # which gives the lock back


def _grab(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            os.lseek(handle, _BEYOND, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
