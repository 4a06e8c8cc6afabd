"""A second look: the best candidates ranked again by what matches in the pictures.

    d' = scale · d / spread - inliers · log(1 + max(0, n - 10))

where d is the rule's distance, spread its deviation among the candidates looked at, so that one
pair of weights fits rules of any unit, and n the points that a robust fit keeps.  The weights are
learned on photos held out in turn (`learned_weights.fit_look`).  The first few are looked at first,
and the rest only if those do not settle it.

    P candidates · N candidates looked at
"""

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evenplace.arrays import Floats
from evenplace.describe.decoding import in_order
from evenplace.describe.onnx_engine import own_cores
from evenplace.errors import PhotoError, SettingError
from evenplace.retrieval.answers import Hit
from evenplace.retrieval.array_files import Rows
from evenplace.retrieval.candidates import Pools, Ranking, Rankings
from evenplace.retrieval.index import Index
from evenplace.retrieval.local_features import (
    Features,
    LocalFeatures,
    build_local_features,
    features_of,
)
from evenplace.retrieval.packed_features import Packing, kept_points
from evenplace.retrieval.point_matching import verify, worth

Picture = str | bytes | Image.Image | Features
COUNT = 50
FIRST = 5  # candidates before it is asked whether they settle it
_HELD = 1024  # photos whose features are held in memory where the index keeps none


@dataclass(frozen=True)
class LookWeights:
    """What a rule's distance and matches count; at `settled` inliers nobody looks further.

    The weights unless learned are near those of one city, Timișoara; settled 0 looks at all.
    """

    scale: float = 0.5
    inliers: float = 2.2
    settled: int = 0

    def settles(self, inliers: Floats) -> bool:
        """Whether these say enough."""
        return bool(self.settled and np.nan_to_num(inliers).max(initial=0) >= self.settled)

    def rank(self, ranking: Ranking, inliers: Floats) -> Ranking:
        """Rank candidates again; those nobody looked at keep their distance, in the new unit.

        inliers: (N,) of the first ones, in blocks of five as they would be looked at.
        """
        first = next(
            (end for end in range(FIRST, len(inliers), FIRST) if self.settles(inliers[:end])),
            len(inliers),
        )
        seen = np.full(len(ranking.order), np.nan, np.float32)
        seen[:first] = inliers[:first]
        spread = float(np.std(ranking.distances[: len(inliers)], dtype=np.float64))
        unit = self.scale / spread if spread > 0 else 0.0
        away = unit * (ranking.distances - ranking.distances[0])
        distances = (away - self.inliers * worth(np.nan_to_num(seen))).astype(np.float32)
        order = np.argsort(distances, kind="stable")
        return Ranking(ranking.order[order], distances[order], seen[order])


class SecondLook:
    """Looks at the photos of an index; several threads may ask.

    count: how many candidates of a query at most.  features: a kind by name; where the index
    keeps features of that kind they are read, else found in the photos as they are needed.
    """

    def __init__(
        self,
        index: Index,
        count: int = COUNT,
        features: str | LocalFeatures = "xfeat",
        weights: LookWeights | None = None,
    ) -> None:
        if not isinstance(count, int | np.integer) or count < 1:
            raise SettingError(
                f"verify={count!r} looks at no candidate; use a whole number, 1 or more, or "
                "0 to look once"
            )
        self.index, self.count = index, count
        self.kind = build_local_features(features) if isinstance(features, str) else features
        self.weights = weights or LookWeights()
        self.packing = Packing(self.kind.dim)
        self.kept = kept_points(index, self.kind)
        self._held: OrderedDict[int, Features | None] = OrderedDict()
        self._lock = Lock()

    def __str__(self) -> str:
        return say_look(self.kind.name, self.count, self.weights)

    def on(self, index: Index) -> "SecondLook":
        """The same on another generation of the index."""
        return SecondLook(index, self.count, self.kind, self.weights)

    def see(self, picture: Picture) -> Features:
        """The points of a query; none where the picture cannot be read.

        As many as are kept of a photo, so that a rehearsal with kept ones is like the real thing.
        """
        return self._see(picture) or Features.nothing(self.kind.dim)

    def _see(self, picture: Picture) -> Features | None:
        if isinstance(picture, Features):
            return picture.best(self.packing.count)
        try:
            return features_of(self.kind, picture).best(self.packing.count)
        except PhotoError:
            return None

    def rank(self, rows: Rows, ranking: Ranking, query: Features) -> Ranking:
        """Look at the best candidates of one query and rank them again.

        rows: (P,) of the index.  A query without points is ranked as it was.
        """
        best = rows[ranking.order[: self.count]]
        if not len(query) or not len(best):
            return replace(ranking, inliers=np.full(len(ranking.order), np.nan, np.float32))
        inliers = np.zeros(len(best), np.float32)
        for first in range(0, len(best), FIRST):
            some = slice(first, first + FIRST)
            inliers[some] = self.count_inliers(query, best[some])
            if self.weights.settles(inliers):
                break
        return self.weights.rank(ranking, inliers)

    def rank_batch(
        self, pools: Pools, rankings: Rankings, pictures: Sequence[Picture]
    ) -> tuple[Rankings, NDArray[np.float64]]:
        """The same of a batch, and the milliseconds it took of each query."""
        looked, clock = [], [time.perf_counter()]
        for query, picture in enumerate(pictures):
            looked.append(self.rank(pools[query].rows, rankings[query], self.see(picture)))
            clock.append(time.perf_counter())
        return Rankings.join(looked, pools.cuts), np.diff(clock) * 1e3

    def count_inliers(self, query: Features, rows: Rows) -> Floats:
        """How many points of a query match each of some photos; nan: it is not there to look at.

        -> (N,).
        """

        def count(row: int) -> float:
            seen = self._features(row)
            return np.nan if seen is None else verify(query, seen, self.kind).inliers

        return np.array(list(in_order(count, rows.tolist(), own_cores())), np.float32)

    def pairs(self, query: Picture, row: int) -> Floats:
        """The points that a picture and a photo share, as shares of each one's width and height.

        -> (M, 4): x and y in the picture, x and y in the photo.
        """
        own, other = self.see(query), self.features(row)
        match = verify(own, other, self.kind)
        sides = np.array([own.width, own.height, other.width, other.height], np.float32)
        points: Floats = np.concatenate([match.query, match.candidate], axis=1)
        shares: Floats = (points / np.maximum(sides, 1e-9)).astype(np.float32)
        return shares

    def with_pairs(self, hits: list[Hit], picture: Picture, count: int) -> list[Hit]:
        """The hits, the first of them with the points they share; None of those not there."""
        own = self.see(picture)
        seen = [
            hit if self._features(hit.row) is None else replace(hit, pairs=self.pairs(own, hit.row))
            for hit in hits[:count]
        ]
        return seen + hits[count:]

    def features(self, row: int) -> Features:
        """The points of a photo of the index; none of one that cannot be read."""
        return self._features(row) or Features.nothing(self.kind.dim)

    def _features(self, row: int) -> Features | None:
        if self.kept is None:
            return self._find(row)
        found = self.packing.unpack(self.kept[[row]][0])
        return found if found.width else None  # no sides: it could not be read, and is not blank

    def _find(self, row: int) -> Features | None:
        with self._lock:
            if row in self._held:
                self._held.move_to_end(row)
                return self._held[row]
        found = self._see(self.index.paths(np.array([row]))[0])
        with self._lock:
            self._held[row] = found
            if len(self._held) > _HELD:
                self._held.popitem(last=False)
        return found


def refuse_absent(paths: Sequence[str], whose: str) -> None:
    """Refuse to look at pictures of which none is there: answers would say they were looked at."""
    if len(paths) and not any(Path(path).exists() for path in paths):
        raise PhotoError(
            f"a second look needs the {whose}, and {paths[0]} is not there, nor are others; bring "
            "them back, or look once: --verify 0"
        )


def say_look(features: str, count: int, weights: LookWeights) -> str:
    """How candidates are looked at, in words that are the same for the same."""
    return f"{features} on the first {count} by {weights}"
