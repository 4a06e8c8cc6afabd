"""One writer at a time: a lock that the system takes back when its holder dies, however it does."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evenplace.errors import EvenPlaceError
from evenplace.photos.files import because

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_BEYOND = 64  # bytes: Windows lets nobody read what is locked, so the lock lies behind the number
_PAUSE = 0.2  # seconds between two looks


@contextmanager
def only_writer(path: Path, error: type[EvenPlaceError], *, wait: bool = False) -> Iterator[None]:
    """Hold the lock file `path`; where another process does, wait for it, or refuse.

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
