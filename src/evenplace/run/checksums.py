"""Checksums of what a run has learned, kept when it is written: damage is blamed on its file.

A file without one is passed over: another program may have put it there.  `recipe.toml` has none,
since a person may edit it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evenplace.errors import RunError
from evenplace.photos.files import write_json
from evenplace.retrieval.manifest import checksum

_NAME = "checksums.json"
_REMEDIES = {
    "model.safetensors": "restore a copy, or train in another folder",
    "describer.safetensors": "restore a copy, or choose it again: evenplace index --checkpoint",
    "calibration.json": "learn it again: evenplace tune",
    "fused.json": "learn it again: evenplace tune",
    "look.json": "learn it again: evenplace tune",
}


@contextmanager
def sealing(run: Path, *names: str) -> Iterator[None]:
    """Write files of a run and keep their checksums; whoever stops halfway leaves none of them."""
    known = _read(run)
    if known.keys() & set(names):
        _write(run, {name: known[name] for name in known.keys() - set(names)})
    yield
    fresh = {name: checksum(run / name) for name in names if (run / name).exists()}
    _write(run, _read(run) | fresh)


def check_files(run: Path) -> list[str]:
    """Read every file that has a checksum and compare; the names of those that are whole."""
    known = _read(run)
    for name, kept in sorted(known.items()):
        found = checksum(run / name) if (run / name).exists() else None
        if found != kept:
            state = "is missing" if found is None else "does not match its checksum"
            remedy = _REMEDIES.get(name, "restore a copy, or begin again in another folder")
            raise RunError(f"{run / name} {state}; {remedy}")
    return sorted(known)


def _read(run: Path) -> dict[str, str]:
    try:
        found = json.loads((run / _NAME).read_text())
        return {str(name): str(kept) for name, kept in found.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError) as cause:
        raise RunError(
            f"{run / _NAME} cannot be read ({cause}); delete it, and nothing is compared"
        ) from cause


def _write(run: Path, known: dict[str, str]) -> None:
    write_json(run / _NAME, dict(sorted(known.items())), indent=1)
