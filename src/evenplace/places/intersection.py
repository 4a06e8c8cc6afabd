"""Several coarse partitions whose overlaps are the fine places (CPlaNet).

Few parameters, fine places: a classifier learns each coarse partition, and a fine place's score is
the sum of its parents'.

# N photos · C fine places · m coarse partitions · B queries
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evenplace.arrays import Doubles, Floats, Ints
from evenplace.errors import SettingError
from evenplace.places.cities import CutByCity
from evenplace.places.keys import Span, look_up, tally
from evenplace.places.maps import Sheet
from evenplace.places.table import Places, box_outlines


@dataclass(frozen=True)
class Intersection(CutByCity):
    """Overlay coarse partitions: photos that share all their coarse places share a fine one.

    The id of a fine place is the row of its parent in each coarse partition.  A photo outside a
    coarse place is outside.
    """

    partitions: Sequence[CutByCity] = ()
    min_photos: int = 1
    parents: tuple[Places, ...] = field(default=(), repr=False)  # what a partition cut, once it has

    name = "intersection"

    def __post_init__(self) -> None:
        parents = (Places.from_plain(one) if isinstance(one, dict) else one for one in self.parents)
        object.__setattr__(self, "parents", tuple(parents))
        if len(self.partitions) + len(self.parents) < 2:
            raise SettingError(
                f"an intersection is of two partitions or more, not of {len(self.partitions)}"
            )

    def _cut(self, sheet: Sheet) -> Places:
        parents = tuple(one.partition(sheet.photos) for one in self.partitions)
        span = _rows(parents)
        found = tally(span.pack([one.labels for one in parents]), span.total, self.min_photos)
        bare = tuple(replace(one, labels=np.empty(0, np.int64)) for one in parents)
        return Places.build(
            replace(self, partitions=(), parents=bare),
            sheet,
            labels=found.labels,
            ids=span.unpack(found.keys),
            counts=found.counts,
        )

    def find(self, ids: Ints, positions: Doubles, heading: Floats) -> Ints:
        """Which fine place each position lies in: (N, 2) -> (N,)."""
        span = _rows(self.parents)
        labels = [one.locate(positions, heading) for one in self.parents]
        return look_up(span.pack(ids.T), span.pack(labels), span.total)

    def outlines(self, ids: Ints) -> Doubles:
        """The box where a place's parents overlap: (C, m) -> (C, 4, 2)."""
        low = np.full((len(ids), 2), -np.inf)
        high = np.full((len(ids), 2), np.inf)
        for parent, rows in zip(self.parents, ids.T, strict=True):
            corners = parent.outlines[rows]
            low, high = np.maximum(low, corners.min(axis=1)), np.minimum(high, corners.max(axis=1))
        return box_outlines(np.concatenate([low, high], axis=1))

    def settings(self) -> dict[str, Any]:
        return {"min_photos": self.min_photos, "parents": [one.to_plain() for one in self.parents]}


def _rows(parents: Sequence[Places]) -> Span:
    """Every combination of places, one of each partition."""
    return Span((0,) * len(parents), tuple(map(len, parents)))
