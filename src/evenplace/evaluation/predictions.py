"""Every query with its answers, kept so that any figure can be drawn again without the model."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from evenplace.errors import RunError
from evenplace.photos.files import whole_file


@dataclass(frozen=True)
class Predictions:
    """One row a query; hits from best to worst, -1 and empty where there are fewer."""

    paths: list[str]
    positions: NDArray[np.float64]  # (Q, 2)
    places: NDArray[np.int64]  # (Q,) the query's own place, -1 for none
    tiers: NDArray[np.int8]  # (Q,) 0 head, 1 middle, 2 tail, -1 none
    photographed: NDArray[np.int64]  # (Q,) photos of that place, 0 for none
    clusters: NDArray[np.int64]  # (Q,) spot, for intervals
    first_right: NDArray[np.int64]  # (Q,) rank of the first right hit, -1 for none
    first_centre: NDArray[np.int64]  # (Q,) rank of the first shortlisted place that is right
    in_pool: NDArray[np.bool_]  # (Q,)
    confidence: NDArray[np.float32]  # (Q,)
    hit_paths: list[list[str]]  # (Q, k)
    hit_positions: NDArray[np.float64]  # (Q, k, 2)
    hit_distances: NDArray[np.float32]  # (Q, k)
    hit_right: NDArray[np.bool_]  # (Q, k)

    def __len__(self) -> int:
        return len(self.paths)

    def write(self, path: Path) -> None:
        table = pa.table(
            {
                "path": self.paths,
                "east": self.positions[:, 0],
                "north": self.positions[:, 1],
                "place": self.places,
                "tier": self.tiers,
                "photographed": self.photographed,
                "cluster": self.clusters,
                "first_right": self.first_right,
                "first_centre": self.first_centre,
                "in_pool": self.in_pool,
                "confidence": self.confidence,
                "hit_path": self.hit_paths,
                "hit_east": list(self.hit_positions[:, :, 0]),
                "hit_north": list(self.hit_positions[:, :, 1]),
                "hit_distance": list(self.hit_distances),
                "hit_right": list(self.hit_right),
            }
        )
        with whole_file(path, RunError) as draft:
            pq.write_table(table, draft)

    @classmethod
    def read(cls, path: Path) -> "Predictions":
        if not path.exists():
            raise RunError(f"{path} does not exist; evaluate first: evenplace evaluate RUN")
        table = pq.read_table(path)
        flat = {name: table[name].to_numpy() for name in table.column_names if name[:3] != "hit"}
        hits = {name: np.array(table[name].to_pylist()) for name in _HIT_NUMBERS}
        return cls(
            paths=table["path"].to_pylist(),
            positions=np.stack([flat["east"], flat["north"]], axis=1),
            places=flat["place"],
            tiers=flat["tier"],
            photographed=flat["photographed"],
            clusters=flat["cluster"],
            first_right=flat["first_right"],
            first_centre=flat["first_centre"],
            in_pool=flat["in_pool"],
            confidence=flat["confidence"],
            hit_paths=table["hit_path"].to_pylist(),
            hit_positions=np.stack([hits["hit_east"], hits["hit_north"]], axis=2),
            hit_distances=hits["hit_distance"].astype(np.float32),
            hit_right=hits["hit_right"],
        )


def join_predictions(runs: Sequence[Predictions]) -> Predictions:
    """Put the queries of several evaluations behind each other; their spots stay apart."""
    merged: dict[str, Any] = {}
    for field in fields(Predictions):
        parts = [getattr(run, field.name) for run in runs]
        if field.name == "clusters":
            sizes = np.cumsum([0, *(part.max(initial=-1) + 1 for part in parts[:-1])])
            parts = [part + before for part, before in zip(parts, sizes, strict=True)]
        listed = isinstance(parts[0], list)
        merged[field.name] = list(chain(*parts)) if listed else np.concatenate(parts)
    return Predictions(**merged)


_HIT_NUMBERS = ("hit_east", "hit_north", "hit_distance", "hit_right")
