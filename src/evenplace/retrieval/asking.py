"""Queries that are photo files, answered one by one."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from evenplace.describe.decoding import load_batches
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
    if engine.model is None:
        raise SettingError("this engine has no model; ask it with descriptors: search()")
    parts: list[Hits] = []
    rows: list[int] = []
    skipped: list[Skipped] = []
    for batch in load_batches(paths, engine.model.image_size, batch=1):
        skipped += batch.skipped
        for row in batch.rows:
            began = time.perf_counter()
            with torch.inference_mode():
                descriptor = engine.model.eval()(batch.pixels)[:1].numpy()
            spent = (time.perf_counter() - began) * 1e3
            parts.append(engine.search(descriptor, k))
            parts[-1].elapsed_ms["extract"] = np.array([spent])
            rows.append(row)
        if progress:
            progress(len(rows) + len(skipped), len(paths))
    found = join_hits(parts, k, engine.shortlist)
    return Asked(found, np.array(rows, dtype=np.int64), tuple(skipped))
