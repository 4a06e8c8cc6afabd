"""Every query with its answers, kept so that any figure can be drawn again without the model.

Also as the text files of VPR-methods-evaluation: one a query, paths below three headings.

Q queries · k hits
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from evenplace.arrays import Array, Bools, Doubles, Floats, Ints
from evenplace.errors import RunError
from evenplace.photos.files import whole_file

FAR = 2e7  # metres, half around the earth: what an answer in another zone is said to be off
_SOURCE, _CONDITION = "confidence_", "condition_"
QUERY, ANSWERS, POSITIVES = "Query path:", "Predictions paths:", "Positives paths:"


@dataclass(frozen=True)
class Predictions:
    """One row a query; hits from best to worst, nan and empty where there are fewer."""

    paths: list[str]
    positions: Doubles  # (Q, 2)
    zones: NDArray[np.int8]  # (Q,) the UTM zone of the position
    places: Ints  # (Q,) the query's own place, -1 for none
    tiers: NDArray[np.int8]  # (Q,) 0 head, 1 middle, 2 tail, -1 none
    photographed: Ints  # (Q,) photos of that place, 0 for none
    clusters: Ints  # (Q,) spot, for intervals
    positives: Ints  # (Q,) database photos that count as right
    first_right: Ints  # (Q,) rank of the first right hit, -1 for none
    first_centre: Ints  # (Q,) rank of the first shortlisted place that is right
    in_pool: Bools  # (Q,)
    confidence: Floats  # (Q,) the system's own
    estimates: Doubles  # (Q, 2) where the system says the query was taken
    hit_paths: NDArray[np.object_]  # (Q, k)
    hit_positions: Doubles  # (Q, k, 2)
    hit_zones: NDArray[np.int8]  # (Q, k) 0 where there is no hit
    hit_distances: Floats  # (Q, k)
    hit_right: Bools  # (Q, k)
    sources: dict[str, Floats] = field(default_factory=dict)  # (Q,) each
    conditions: dict[str, NDArray[np.str_]] = field(default_factory=dict)  # (Q,) each
    descriptors: NDArray[np.float16] | None = None  # (Q, D) where they are few enough to keep

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def right(self) -> Bools:
        """Whether the first answer is right.  (Q,)."""
        right: Bools = self.first_right == 0
        return right

    @property
    def errors(self) -> Doubles:
        """Metres between the estimated and the true position; nan without an answer.  (Q,)."""
        return _metres(self.estimates - self.positions, self.hit_zones[:, 0] == self.zones)

    @property
    def hit_metres(self) -> Doubles:
        """Metres between each hit and its query; nan without a hit.  (Q, k)."""
        away = self.hit_positions - self.positions[:, None]
        return _metres(away, self.hit_zones == self.zones[:, None])

    def __getitem__(self, chosen: Array) -> "Predictions":
        """Some of the queries, by a mask or by rows."""
        rows = np.arange(len(self))[chosen]
        return Predictions(**{f.name: _take(getattr(self, f.name), rows) for f in fields(self)})

    def write(self, path: Path) -> None:
        columns: dict[str, Any] = {}
        for name, (of, axis) in _COLUMNS.items():
            if (values := getattr(self, of)) is not None:
                columns[name] = _column(values if axis is None else values[..., axis])
        columns |= {_SOURCE + name: values for name, values in self.sources.items()}
        columns |= {_CONDITION + name: pa.array(v) for name, v in self.conditions.items()}
        with whole_file(path, RunError) as draft:
            pq.write_table(pa.table(columns), draft)

    @classmethod
    def read(cls, path: Path) -> "Predictions":
        if not path.exists():
            raise RunError(f"{path} does not exist; evaluate first: evenplace evaluate RUN")
        table = pq.read_table(path)
        if missing := set(_COLUMNS) - {"descriptor"} - set(table.column_names):
            raise RunError(
                f"{path} has no column {sorted(missing)[0]} (another version wrote it); "
                "evaluate again"
            )
        parts: dict[str, list[Any]] = {}
        for name in (name for name in _COLUMNS if name in table.column_names):
            parts.setdefault(_COLUMNS[name][0], []).append(_array(table[name]))
        found: dict[str, Any] = {
            of: axes[0] if len(axes) == 1 else np.stack(axes, axis=-1) for of, axes in parts.items()
        }
        found["paths"] = found["paths"].tolist()
        for prefix, of in ((_SOURCE, "sources"), (_CONDITION, "conditions")):
            named = [name for name in table.column_names if name.startswith(prefix)]
            found[of] = {name.removeprefix(prefix): _array(table[name]) for name in named}
        found["conditions"] = {name: v.astype(str) for name, v in found["conditions"].items()}
        return cls(**found)


def join_predictions(runs: Sequence[Predictions], *, one_map: bool = False) -> Predictions:
    """Put the queries of several evaluations behind each other.

    one_map: they are of the same streets, so queries within 10 m are one spot whichever
    evaluation they are of; otherwise the spots stay apart.
    """
    merged: dict[str, Any] = {}
    for one in fields(Predictions):
        parts = [getattr(run, one.name) for run in runs]
        if one.name == "clusters" and not one_map:
            sizes = np.cumsum([0, *(part.max(initial=-1) + 1 for part in parts[:-1])])
            parts = [part + before for part, before in zip(parts, sizes, strict=True)]
        merged[one.name] = _join(parts)
    if one_map:
        merged["clusters"] = find_spots(merged["positions"], merged["zones"])
    return Predictions(**merged)


def find_spots(positions: Doubles, zones: NDArray[np.integer] | int = 0) -> Ints:
    """Queries taken within the same 10 m square of a zone form one spot.  (Q, 2) -> (Q,)."""
    squares = np.floor(np.column_stack([np.broadcast_to(zones, len(positions)), positions / 10]))
    return np.unique(squares, axis=0, return_inverse=True)[1].ravel()


_COLUMNS = {  # in the file: of which field, and which of its last axis
    "path": ("paths", None),
    "zone": ("zones", None),
    "place": ("places", None),
    "tier": ("tiers", None),
    "photographed": ("photographed", None),
    "cluster": ("clusters", None),
    "positives": ("positives", None),
    "first_right": ("first_right", None),
    "first_centre": ("first_centre", None),
    "in_pool": ("in_pool", None),
    "confidence": ("confidence", None),
    "east": ("positions", 0),
    "north": ("positions", 1),
    "estimate_east": ("estimates", 0),
    "estimate_north": ("estimates", 1),
    "hit_path": ("hit_paths", None),
    "hit_east": ("hit_positions", 0),
    "hit_north": ("hit_positions", 1),
    "hit_distance": ("hit_distances", None),
    "hit_zone": ("hit_zones", None),
    "hit_right": ("hit_right", None),
    "descriptor": ("descriptors", None),
}


def _column(values: Any) -> Any:
    """(Q,) as it is, (Q, k) as lists of k."""
    if np.ndim(values) < 2:
        return values
    kind = pa.string() if values.dtype == object else None
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel(), kind), values.shape[1])


def _array(column: Any) -> Array:
    """A column as (Q,), lists of equal length as (Q, k)."""
    if not pa.types.is_fixed_size_list(column.type):
        flat: Array = column.to_numpy()
        return flat
    flat = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(column), column.type.list_size)


def _metres(away: Doubles, one_zone: Bools) -> Doubles:
    """How long each way is: (…, 2) -> (…); nan stays nan, and another zone is far."""
    metres = np.hypot(away[..., 0], away[..., 1])
    return np.where(one_zone | np.isnan(metres), metres, FAR)


def _take(values: Any, rows: Ints) -> Any:
    if values is None:
        return None
    if isinstance(values, dict):
        return {name: part[rows] for name, part in values.items()}
    return [values[row] for row in rows] if isinstance(values, list) else values[rows]


def _join(parts: list[Any]) -> Any:
    """Lists and arrays end to end; of dictionaries the names that all of them have."""
    if any(part is None for part in parts):
        return None
    if isinstance(parts[0], dict):
        shared = [name for name in parts[0] if all(name in part for part in parts)]
        return {name: np.concatenate([part[name] for part in parts]) for name in shared}
    return list(chain(*parts)) if isinstance(parts[0], list) else np.concatenate(parts)


@dataclass(frozen=True)
class TextAnswer:
    """One file: a query, its hits best first, and its positives, if the file lists them."""

    query: str
    hits: tuple[str, ...]
    positives: tuple[str, ...]


def write_texts(
    predictions: Predictions, folder: str | Path, positives: Sequence[Sequence[str]]
) -> int:
    """Write 000.txt, 001.txt … into a folder; returns how many.

    positives: every match of each query in the database, found or not.
    """
    width = max(3, len(str(len(predictions) - 1)))
    for number, query in enumerate(predictions.paths):
        hits = [path for path in predictions.hit_paths[number] if path]
        lines = [QUERY, query, "", ANSWERS, *hits, "", POSITIVES, *positives[number]]
        file = Path(folder) / f"{number:0{width}d}.txt"
        with whole_file(file, RunError, lasting=False) as draft:
            draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(predictions)


def read_texts(where: str | Path) -> list[TextAnswer]:
    """Read one file, or every .txt below a folder in the order of their names."""
    path = Path(where)
    files = sorted(path.rglob("*.txt")) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise RunError(f"{path} holds no .txt predictions; check the path")
    return [_read_text(file) for file in files]


def _read_text(file: Path) -> TextAnswer:
    parts: dict[str, list[str]] = {QUERY: [], ANSWERS: [], POSITIVES: []}
    current = None
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.strip() in parts:
            current = line.strip()
        elif line.strip() and current:
            parts[current].append(line.strip())
    if not parts[QUERY] or not parts[ANSWERS]:
        raise RunError(
            f"{file} has no {QUERY!r} and {ANSWERS!r}; give the files VPR-methods-evaluation writes"
        )
    return TextAnswer(parts[QUERY][0], tuple(parts[ANSWERS]), tuple(parts[POSITIVES]))
