"""Descriptors of a large database, in parts on disk: processes share them, a kill costs one.

    folder/<key>/part-000012.npz    descriptors and rows of a thousand photos, and the skipped

The key tells weights, photos and size, so another model or another list makes other parts.

    N photos · D descriptor
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evenplace.describe.describer import Described, Progress, describe_photos
from evenplace.describe.paired import Describing
from evenplace.errors import PhotoError
from evenplace.photos.files import whole_file
from evenplace.photos.table import Skipped

_PART = 1024


def extract_photos(
    network: Describing,
    paths: Sequence[str],
    folder: str | Path,
    *,
    rank: int = 0,
    ranks: int = 1,
    part: int = _PART,
    progress: Progress | None = None,
) -> None:
    """Describe this rank's parts, those that are not there yet: every `ranks`-th one.

    Parts are written whole or not at all, so that a run that was stopped goes on with the first
    missing one.  The last rank to end leaves all of them for `read_extracted`.
    """
    if network.batch and part % network.batch:
        part += network.batch - part % network.batch  # descriptors depend on their batch
    home = Path(folder) / extraction_key(network, paths, part)
    todo = [n for n in range(_parts(paths, part)) if n % ranks == rank]
    for number in todo:
        if not _file(home, number).exists():
            own = paths[number * part : (number + 1) * part]
            _write(_file(home, number), describe_photos(network, own))
        if progress:
            progress(min((number + 1) * part, len(paths)), len(paths))


def read_extracted(
    network: Describing, paths: Sequence[str], folder: str | Path, *, part: int = _PART
) -> Described:
    """All parts in the order of the photos; an error names the first that is missing."""
    if network.batch and part % network.batch:
        part += network.batch - part % network.batch
    home = Path(folder) / extraction_key(network, paths, part)
    descriptors, rows, skipped = [], [], []
    for number in range(_parts(paths, part)):
        if not _file(home, number).exists():
            raise PhotoError(
                f"{_file(home, number)} is missing: photos from {number * part} on were not "
                "described; run the extraction again, it goes on there"
            )
        with np.load(_file(home, number)) as file:
            descriptors.append(file["descriptors"])
            rows.append(file["rows"] + number * part)
            skipped += [Skipped(*one) for one in json.loads(str(file["skipped"]))]
    if not rows:
        return Described(np.empty((0, network.dim), np.float32), np.empty(0, np.int64), ())
    return Described(np.concatenate(descriptors), np.concatenate(rows), tuple(skipped))


def extraction_key(network: Describing, paths: Sequence[str], part: int) -> str:
    """A short digest of all that descriptors depend on, and of how they are cut into parts."""
    digest = hashlib.sha256(f"{part}|{network.image_size}|{network.spec}".encode())
    for name, tensor in network.state_dict().items():
        if not name.startswith("classifiers."):
            digest.update(name.encode())
            digest.update(tensor.cpu().contiguous().numpy().tobytes())
    for path in paths:
        stat = Path(path).stat() if Path(path).exists() else None
        about = f"{stat.st_size}|{stat.st_mtime_ns}" if stat else "absent"
        digest.update(f"{path}|{about}\n".encode())
    return digest.hexdigest()[:24]


def _parts(paths: Sequence[str], part: int) -> int:
    return -(-len(paths) // part)


def _file(home: Path, number: int) -> Path:
    return home / f"part-{number:06d}.npz"


def _write(path: Path, found: Described) -> None:
    skipped = json.dumps([(one.path, one.reason) for one in found.skipped])
    with whole_file(path, PhotoError) as draft, draft.open("wb") as file:
        np.savez(file, descriptors=found.descriptors, rows=found.rows, skipped=np.array(skipped))
