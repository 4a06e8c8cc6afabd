"""One index as the service sees it: an engine, a name for it, and what the page asks of it.

N photos · C places · V corners
"""

import base64
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenplace.retrieval import Search
from evenplace.retrieval.answer_json import degrees
from evenplace.serve.schema import Tier

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_TIERS: tuple[Tier, ...] = ("head", "middle", "tail")


@dataclass(frozen=True)
class Snapshot:
    """An engine and a name for what it answers from.  What is derived is made once."""

    engine: Search
    version: str  # 8 hex digits
    photos: Path = Path()  # where relative paths start

    @cached_property
    def sizes(self) -> Ints:
        """Database photos of each place: (C,)."""
        return np.asarray(self.engine.index.sizes)

    @cached_property
    def headings(self) -> NDArray[np.float32]:
        return self.engine.index.photos.heading

    @cached_property
    def outlines(self) -> Floats:
        """(C, V, 2)."""
        return self.engine.index.places.outlines

    @cached_property
    def packed(self) -> dict[str, Any]:
        """Every place that has photos, as arrays a page decodes at once.

        Corners in metres from `origin`, four bytes each: exact to a centimetre within 100 km; in
        degrees too where the database is tied to the globe.
        """
        index, shown = self.engine.index, np.flatnonzero(self.sizes)
        corners = self.outlines[shown]
        origin = corners.min(axis=(0, 1)) if len(shown) else np.zeros(2)
        zones = index.places.zones[shown]
        tied = len(shown) and zones.all()
        globe = degrees(corners, zones[:, None]) if tied else np.empty(0)
        return {
            "index": self.version,
            "origin": origin.tolist(),
            "sides": int(corners.shape[1]) if len(shown) else 4,
            "places": _pack(shown, "<u4"),
            "corners": _pack(corners - origin, "<f4"),
            "degrees": _pack(globe, "<f8"),
            "tiers": _pack(index.places.tiers[shown], "<u1"),
            "photos": _pack(self.sizes[shown], "<u4"),
        }

    def tier(self, place: int) -> Tier:
        """The name of a place's tier; `none` outside every place."""
        known = self.engine.index.places.tiers
        return _TIERS[known[place]] if 0 <= place < len(known) else "none"

    def photo_id(self, row: int) -> str:
        return f"{self.version}-{row}"

    def path_of(self, row: int) -> str:
        return str(self.photos / self.engine.index.paths(np.array([row]))[0])

    def rows_of(self, place: int) -> Ints:
        """The rows of the photos of a place."""
        return self.engine.index.rows_of(np.array([place]))[0]

    def ranked(self, tier: Tier | None = None) -> Ints:
        """Places that have photos, most photographed first."""
        shown = self.sizes > 0
        if tier is not None:
            shown = shown & (self.engine.index.places.tiers == _TIERS.index(tier))
        places = np.flatnonzero(shown)
        return places[np.argsort(-self.sizes[places], kind="stable")]


def _pack(values: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype).tobytes()).decode()
