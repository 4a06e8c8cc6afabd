"""Queries that are photo files, answered one by one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenplace.describe.describer import Progress
from evenplace.errors import SettingError
from evenplace.photos.table import Skipped
from evenplace.retrieval.engine import Search
from evenplace.retrieval.hits import Hits, join_hits

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Asked:
    """Queries answered from their files: hits, the rows that could be read, and the rest."""

    hits: Hits
    rows: Rows
    skipped: tuple[Skipped, ...]


def ask_photos(
    engine: Search, paths: Sequence[str], k: int = 20, *, progress: Progress | None = None
) -> Asked:
    """Answer photo files one by one, so that each stage's time is what one query costs."""
    if engine.describer is None:
        raise SettingError("this engine has no describer; ask it with descriptors: search()")
    parts: list[Hits] = []
    rows: list[int] = []
    skipped: list[Skipped] = []
    for row, path in enumerate(paths):
        described = engine.describer.describe([path])
        skipped += described.skipped
        if len(described.rows):
            parts.append(engine.search(described.descriptors, k, pictures=[path]))
            spent = described.decode_ms + described.network_ms
            parts[-1].elapsed_ms["extract"] = np.array([spent])
            rows.append(row)
        if progress:
            progress(len(rows) + len(skipped), len(paths))
    found = join_hits(parts)
    return Asked(found, np.array(rows, dtype=np.int64), tuple(skipped))
