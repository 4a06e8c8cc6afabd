"""Files written whole or not at all: what every later step uses to put its results on disk."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evenplace.errors import EvenPlaceError, PhotoError


@contextmanager
def whole_file(path: str | Path, error: type[EvenPlaceError] = PhotoError) -> Iterator[Path]:
    """Give a temporary neighbour of `path` to write to, and move it into place at the end.

    A reader sees the old file or the new one, never half of one; when the writing fails
    (a full disk, say) the temporary file is removed and `error` says so in one sentence.
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
        draft.chmod(0o644)
        draft.replace(target)
    except OSError as cause:
        raise error(
            f"could not write {target} ({cause.strerror or cause}); "
            "free some space or choose another place"
        ) from cause
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)
