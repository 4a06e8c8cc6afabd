"""Points of photos for a second look, found once.

`tune` keeps those that it looked at beside the trunk's output, and `index` finds the rest; where
an index comes first, `tune` reads what is in it.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evenplace.describe.describer import Progress
from evenplace.errors import RunError
from evenplace.photos.files import stamp_file, whole_file
from evenplace.retrieval import Index
from evenplace.retrieval.array_files import map_array, write_blocks
from evenplace.retrieval.local_features import build_local_features
from evenplace.retrieval.packed_features import KnownRows, Packing, pack_photos


def cached_points(folder: Path, features: str) -> KnownRows:
    """Rows that an earlier command kept; those of files that changed since are left out."""
    known: KnownRows = {}
    for listed in sorted(folder.glob(f"{_stem(features)}-*.photos")):
        rows = np.asarray(map_array(listed.with_suffix(".npy")))
        for row, stamp in zip(rows, listed.read_text().split("\n"), strict=True):
            path = stamp.split("|", 2)[2]
            if Path(path).exists() and stamp_file(path) == stamp:
                known[path] = row
    return known


def indexed_points(index: Index, features: str) -> KnownRows:
    """Rows that an index keeps, if it does."""
    kept = index.columns.get(features)
    if kept is None or kept.shape[1] != Packing(build_local_features(features).dim).width:
        return {}
    return dict(zip(index.photos.paths, np.asarray(index.columns[features]), strict=True))


def keep_points(
    features: str,
    paths: Sequence[str],
    known: KnownRows,
    folder: Path,
    progress: Progress | None = None,
) -> KnownRows:
    """Find the points of those photos that are not known, and keep them in the folder.

    A photo that is not there has no point, now; once it is back it is looked at.
    """
    width = Packing(build_local_features(features).dim).width
    unknown = [path for path in paths if path not in known]
    missing = [path for path in unknown if Path(path).exists()]
    known = known | dict.fromkeys(unknown, np.zeros(width, np.uint8))
    if not missing:
        return known
    kind, stamps = build_local_features(features), "\n".join(map(stamp_file, missing))
    kept = folder / f"{_stem(features)}-{hashlib.sha256(stamps.encode()).hexdigest()[:16]}.npy"
    folder.mkdir(parents=True, exist_ok=True)
    blocks = pack_photos(kind, missing, progress=progress)
    with whole_file(kept, RunError) as draft:
        write_blocks(draft, blocks, (len(missing), width), np.uint8)
    kept.with_suffix(".photos").write_text(stamps)  # last: what it lists is there
    return known | dict(zip(missing, np.asarray(map_array(kept)), strict=True))


def _stem(features: str) -> str:
    """How files of kept points begin: rows of another width are other files."""
    return f"{features}-{Packing(build_local_features(features).dim).width}"
