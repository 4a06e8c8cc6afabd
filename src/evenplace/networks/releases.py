"""Weights their authors published: where they are, and how to have them on this machine.

A file is looked for in `$EVENPLACE_WEIGHTS`, by default `~/.cache/evenplace/weights`; what is
not there is fetched, its SHA-256 compared with the known one, and only then given its name.
Where nobody published a checksum, the first one seen is written beside the file and every
later use must match it.
"""

import hashlib
import os
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from evenplace.errors import WeightsError, unknown_name

Progress = Callable[[int, int], None]
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Release:
    """A published file.  sha256: whole, or the leading digits its publisher put in its name."""

    url: str
    sha256: str = ""
    by_hand: bool = False  # behind a page that must be clicked

    @property
    def file(self) -> str:
        return self.url.rsplit("/", 1)[-1]


_RELEASES = resources.files("evenplace") / "networks" / "releases.toml"
RELEASES = {
    name: Release(**one)
    for name, one in tomllib.loads(_RELEASES.read_text(encoding="utf-8")).items()
}


def cosplace_release(system: str, backbone: str, dim: int) -> Release:
    """CosPlace's and EigenPlaces's files, one a backbone and dimension."""
    names = {"vgg16": "VGG16", "resnet18": "ResNet18", "resnet50": "ResNet50"}
    names |= {"resnet101": "ResNet101", "resnet152": "ResNet152"}
    owner = {"cosplace": "gmberton/CosPlace", "eigenplaces": "gmberton/EigenPlaces"}[system]
    if backbone not in names:
        raise unknown_name(f"backbone with {system} weights", backbone, names)
    file = f"{names[backbone]}_{dim}_{system}.pth"
    return Release(f"https://github.com/{owner}/releases/download/v1.0/{file}")


def weights_folder() -> Path:
    """Where weight files are kept."""
    chosen = os.environ.get("EVENPLACE_WEIGHTS")
    return Path(chosen) if chosen else Path.home() / ".cache" / "evenplace" / "weights"


def fetch(release: str | Release, *, name: str = "", progress: Progress | None = None) -> Path:
    """The path of a published file, fetched and checked if it is not on this machine yet."""
    if isinstance(release, str):
        if release not in RELEASES:
            raise unknown_name("release", release, RELEASES)
        name, release = release, RELEASES[release]
    path = weights_folder() / name / release.file
    if not path.exists():
        _download(release, path, progress)
    _check(release, path)
    return path


def _download(release: Release, path: Path, progress: Progress | None) -> None:
    remedy = f"put the file from {release.url} at {path}"
    if release.by_hand:
        raise WeightsError(f"{path.name} can only be fetched through a browser; {remedy}")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    try:
        with urllib.request.urlopen(release.url, timeout=30) as answer, partial.open("wb") as file:
            _copy(answer, file, progress)
        partial.replace(path)
    except (urllib.error.URLError, OSError, TimeoutError) as error:
        reason = getattr(error, "reason", error)
        raise WeightsError(f"{release.file} cannot be fetched ({reason}); {remedy}") from None
    finally:
        partial.unlink(missing_ok=True)


def _copy(answer: Any, file: Any, progress: Progress | None) -> None:
    total, done = int(answer.headers.get("Content-Length") or 0), 0
    while block := answer.read(_CHUNK):
        file.write(block)
        done += len(block)
        if progress:
            progress(done, total)


def _check(release: Release, path: Path) -> None:
    note = path.with_name(path.name + ".sha256")
    known = release.sha256 or (note.read_text().strip() if note.exists() else "")
    if note.exists() and note.stat().st_mtime_ns >= path.stat().st_mtime_ns:
        found = note.read_text().strip()
    else:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    if known and not found.startswith(known):
        raise WeightsError(
            f"{path} has SHA-256 {found[:16]}…, not {known[:16]}…; delete it and fetch it again"
        )
    if not note.exists():
        note.write_text(found + "\n")
