"""An index on disk: files that can be memory-mapped, and a manifest that says what they are.

    index/manifest.json       version, the model that wrote it, sizes, a checksum a file
    index/descriptors.npy     (N, D) float16, photos of a place side by side
    index/photos.parquet      the same rows: path, position, heading, time
    index/places.parquet      the places the classifier knows
    index/starts.npy          (C + 1,) rows starts[c] to starts[c + 1] belong to place c
    index/prototypes.npy      (C, D) float32
    index/impostors.npy       (N,) float32

Rows from starts[C] on are photos in no place of the classifier: no shortlist reaches them.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.errors import IndexFileError
from evenplace.photos.table import Photos
from evenplace.places.table import Places

VERSION = 1
ARRAYS = ("descriptors", "starts", "prototypes", "impostors")


@dataclass(frozen=True)
class Index:
    """A database ready to be searched; arrays stay on disk until they are touched."""

    folder: Path
    descriptors: NDArray[np.float16]  # (N, D)
    starts: NDArray[np.int64]  # (C + 1,)
    prototypes: NDArray[np.float32]  # (C, D)
    impostors: NDArray[np.float32]  # (N,)
    photos: Photos
    places: Places
    model: str
    scale: float  # turns cosines to prototypes into logits, as in training

    def __len__(self) -> int:
        return len(self.descriptors)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Database photos in each place.  (C,)."""
        return np.diff(self.starts)

    @property
    def labels(self) -> NDArray[np.int64]:
        """Place of each row, -1 for photos that no place of the classifier holds.  (N,)."""
        placed = np.repeat(np.arange(len(self.starts) - 1), self.sizes)
        return np.concatenate([placed, np.full(len(self) - len(placed), -1)])

    @property
    def bytes(self) -> int:
        return sum(file.stat().st_size for file in self.folder.iterdir())


def write_manifest(folder: Path, model: str, scale: float) -> None:
    files = sorted(p for p in folder.iterdir() if p.name != "manifest.json")
    manifest = {
        "version": VERSION,
        "model": model,
        "scale": scale,
        "files": {p.name: {"bytes": p.stat().st_size, "sha256": _checksum(p)} for p in files},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))


def open_index(folder: str | Path) -> Index:
    """Open an index without reading it; sizes are checked now, contents by `verify_index`."""
    folder = Path(folder)
    manifest = _manifest(folder)
    for name, entry in manifest["files"].items():
        size = (folder / name).stat().st_size if (folder / name).exists() else None
        if size != entry["bytes"]:
            found = "is missing" if size is None else f"has {size} bytes"
            raise IndexFileError(
                f"{folder / name} {found}, the manifest says {entry['bytes']}; build it again"
            )
    arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS}
    return Index(
        folder,
        photos=Photos.read(folder / "photos.parquet"),
        places=Places.read(folder / "places.parquet"),
        model=manifest["model"],
        scale=manifest["scale"],
        **arrays,
    )


def verify_index(folder: str | Path) -> None:
    """Read every file and compare it with its checksum."""
    folder = Path(folder)
    for name, entry in _manifest(folder)["files"].items():
        if _checksum(folder / name) != entry["sha256"]:
            raise IndexFileError(f"{folder / name} does not match its checksum; build it again")


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / "manifest.json"
    if not path.exists():
        raise IndexFileError(
            f"{folder} holds no index; build one: evenplace index RUN --database PHOTOS"
        )
    manifest: dict[str, Any] = json.loads(path.read_text())
    if manifest.get("version") != VERSION:
        raise IndexFileError(
            f"{folder} has index version {manifest.get('version')}, this EvenPlace reads "
            f"{VERSION}; build it again"
        )
    return manifest


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
